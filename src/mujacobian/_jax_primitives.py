"""Primitives of JAX for rollouts: simulation, forward mode, reverse mode, second derivatives.

A primitive has the inputs of the rollouts as its first arguments, in the order of `names`. The
recorded states follow: the states and the rows of mjSTATE_INTEGRATION. They are functions of the
inputs, so that rules for changes of the inputs include their changes.

| primitive | other arguments | results | linear in |
|---|---|---|---|
| `record` | | states, sensordata, rows | |
| `push` | changes of the inputs | changes of states, sensordata | changes |
| `pull` | cotangents of states, sensordata | gradients | cotangents |
| `twice` | cotangents, changes | changes of the gradients | cotangents, changes |
| `push_twice` | changes, other changes | changes of changes | both changes |

`push` is transposed to `pull`, and `twice` to itself, because second derivatives are symmetric.
`push_twice` is never computed, but its transpose is `twice`. For plain rollouts the core computes
`record`, `push` and `pull` without the interpreter, through XLA's foreign function interface.
Rollouts with `fallback` run in the interpreter, which may have to compute differences and to warn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any
from weakref import finalize

import mujoco
import numpy as np

from mujacobian import _core
from mujacobian._handle import NAMES, Handle, model_of, repeat
from mujacobian._host import flattened
from mujacobian._rollout import INTEGRATION
from mujacobian._stepper import stepper
from mujacobian.errors import MissingPackageError, UnsupportedFeatureError, UnusableError

try:
    import jax
    import jax.numpy as jnp
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
except ImportError as error:
    raise MissingPackageError("mujacobian.jax needs JAX: pip install 'mujacobian[jax]'") from error

Names = tuple[str, ...]
Shapes = tuple[tuple[int, ...], ...]

PUSHED = ("state", "controls")  # the inputs with changes in the core


def _register() -> None:
    """Register the handlers of the core with the newest version of XLA's interface that fits."""
    first, last = _core.ffi_versions()
    problem: Exception | None = None
    for minor in range(last, first - 1, -1):
        try:
            for name, handler in _core.ffi_handlers(minor, repeat, model_of).items():
                jax.ffi.register_ffi_target(f"mujacobian_{name}", handler, platform="cpu")
        except Exception as error:  # XLA raises its own types
            problem = error
        else:
            return
    raise UnusableError(
        f"mujacobian.jax knows versions 0.{first} to 0.{last} of XLA's foreign function interface, "
        f"but not that of jaxlib {version('jaxlib')}: {problem}"
    )


_register()


def _register_model(handle: Handle) -> None:
    """Let compiled programs find the stepper of the handle's model, while the model exists."""
    if handle.is_registered:
        return
    model = handle.host().model
    _core.ffi_register(handle.token, stepper(model).core)
    finalize(model, _core.ffi_unregister, handle.token)
    handle.is_registered = True


def _runs_in_core(handle: Handle) -> bool:
    return handle.host().is_plain and handle.options[2] is None


def _mask(names: Sequence[str]) -> int:
    return sum(1 << NAMES.index(name) for name in names)


def _call(name: str, handle: Handle, mask: int, shapes: Any, arguments: Sequence[Any]) -> Any:  # noqa: ANN401
    """Return the results of a handler of the core."""
    _register_model(handle)
    call = jax.ffi.ffi_call(f"mujacobian_{name}", [_like(shape) for shape in shapes])
    options = handle.options[1]
    return call(
        *arguments,
        token=np.int64(handle.token),
        mask=np.int64(mask),
        threads=np.int64(options),
    )


def _callback(work: Callable[..., Any], shapes: Any, *arguments: Any) -> Any:  # noqa: ANN401
    """Return the results of Python code, a sequence."""
    results = tuple(_like(shape) for shape in shapes)

    def run(*given: Any) -> Any:  # noqa: ANN401
        made = flattened(work)(*given)
        return tuple(made.values()) if isinstance(made, dict) else tuple(made)

    return jax.pure_callback(run, results, *arguments)


def _like(shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, np.float64)  # type: ignore[no-untyped-call]


def _recorded_shapes(handle: Handle, names: Names, inputs: Sequence[Any]) -> Shapes:
    """Return the shapes of states, sensordata and rows."""
    model = handle.host().model
    *lead, T, _ = inputs[names.index("controls")].shape
    rows = -(-T // handle.options[0]), mujoco.mj_stateSize(model, INTEGRATION)
    size = model.nq + model.nv + model.na
    return (*lead, T + 1, size), (*lead, T, model.nsensordata), (*lead, *rows)


def _shapes_of(names: Names, inputs: Sequence[Any], chosen: Names) -> Shapes:
    return tuple(tuple(inputs[names.index(name)].shape) for name in chosen)


def _by_name(names: Names, arrays: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(names, arrays, strict=True))


def _record(*inputs: Any, handle: Handle, names: Names) -> Any:  # noqa: ANN401
    shapes = _recorded_shapes(handle, names, inputs)
    host = handle.host()
    if _runs_in_core(handle):
        return _call("simulate", handle, _mask(names), shapes, inputs)
    return _callback(host.simulate, shapes, _by_name(names, inputs))


def _push(*arguments: Any, handle: Handle, names: Names, moved: Names) -> Any:  # noqa: ANN401
    n = len(names)
    inputs, recorded, changes = arguments[:n], arguments[n : n + 2], arguments[n + 2 :]
    shapes = _recorded_shapes(handle, names, inputs)[:2]
    host = handle.host()
    if _runs_in_core(handle) and set(moved) <= set(PUSHED):
        return _call("push", handle, _mask(moved), shapes, (*recorded, *changes))
    given = _by_name(names, inputs)
    return _callback(host.push, shapes, given, *recorded, _by_name(moved, changes))


def _pull(*arguments: Any, handle: Handle, names: Names, wanted: Names) -> Any:  # noqa: ANN401
    n = len(names)
    inputs, others = arguments[:n], arguments[n:]
    shapes = _shapes_of(names, inputs, wanted)
    host = handle.host()
    if _runs_in_core(handle):
        poses = [inputs[names.index("mocap")]] if "mocap" in wanted else []
        return _call("pull_back", handle, _mask(wanted), shapes, (*others, *poses))
    work = partial(host.pull_back, wanted=wanted)
    return _callback(work, shapes, _by_name(names, inputs), *others)


def _twice(
    *arguments: Any,  # noqa: ANN401
    handle: Handle,
    names: Names,
    wanted: Names,
    moved: Names,
) -> Any:  # noqa: ANN401
    n = len(names)
    inputs, others, changes = arguments[:n], arguments[n : n + 4], arguments[n + 4 :]
    work = partial(handle.host().pull_twice, wanted=wanted)
    shapes = _shapes_of(names, inputs, wanted)
    return _callback(work, shapes, _by_name(names, inputs), *others, _by_name(moved, changes))


def _push_twice(*_: Any, **__: Any) -> Any:  # noqa: ANN401
    raise UnsupportedFeatureError(
        "rollout", "forward mode of forward mode is not supported: use jax.hessian"
    )


def _primitive(name: str, compute: Callable[..., Any], shapes: Callable[..., Shapes]) -> Any:  # noqa: ANN401
    """Return a primitive with results of double precision."""
    made: Any = Primitive(f"mujacobian_{name}")
    made.multiple_results = True

    @made.def_impl  # type: ignore[untyped-decorator]
    def run(*arguments: Any, **params: Any) -> Any:  # noqa: ANN401
        # wait, so that errors and warnings come from the line of the call
        results = _compiled(made, tuple(params.items()))(*arguments)
        return jax.block_until_ready(results)  # type: ignore[no-untyped-call]

    @made.def_abstract_eval  # type: ignore[untyped-decorator]
    def evaluate(*arguments: Any, **params: Any) -> Any:  # noqa: ANN401
        return [jax.core.ShapedArray(shape, np.float64) for shape in shapes(*arguments, **params)]

    def lower(ctx: Any, *arguments: Any, **params: Any) -> Any:  # noqa: ANN401
        host = params["handle"].host()
        ctx.module_context.add_keepalive((host, params["handle"]))  # for the compiled program
        return mlir.lower_fun(compute, multiple_results=True)(ctx, *arguments, **params)

    def batch(arguments: Any, axes: Any, **params: Any) -> Any:  # noqa: ANN401
        size = next(
            x.shape[axis] for x, axis in zip(arguments, axes, strict=True) if axis is not None
        )
        given = (
            jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
            for x, axis in zip(arguments, axes, strict=True)
        )
        results = made.bind(*given, **params)
        return results, [0] * len(results)

    mlir.register_lowering(made, lower)
    batching.primitive_batchers[made] = batch
    return made


@lru_cache(maxsize=128)
def _compiled(primitive: Any, params: Any) -> Any:  # noqa: ANN401
    """Return a primitive for arrays outside of compiled programs."""
    return jax.jit(partial(primitive.bind, **dict(params)))


def _shapes_of_push(*arguments: Any, handle: Handle, names: Names, **_: Any) -> Shapes:  # noqa: ANN401
    return _recorded_shapes(handle, names, arguments)[:2]


def _shapes_of_pull(*arguments: Any, names: Names, wanted: Names, **_: Any) -> Shapes:  # noqa: ANN401
    return _shapes_of(names, arguments, wanted)


def _shapes_of_record(*inputs: Any, handle: Handle, names: Names) -> Shapes:  # noqa: ANN401
    return _recorded_shapes(handle, names, inputs)


record = _primitive("record", _record, _shapes_of_record)
push = _primitive("push", _push, _shapes_of_push)
pull = _primitive("pull", _pull, _shapes_of_pull)
twice = _primitive("twice", _twice, _shapes_of_pull)
push_twice = _primitive("push_twice", _push_twice, _shapes_of_push)


def _nonzero(names: Sequence[str], tangents: Sequence[Any]) -> tuple[Names, list[Any]]:
    """Return the names and values of the tangents that are not symbolic zeros."""
    pairs = [
        (name, x) for name, x in zip(names, tangents, strict=True) if not isinstance(x, ad.Zero)
    ]
    return tuple(name for name, _ in pairs), [x for _, x in pairs]


def _zeros(like: Sequence[Any]) -> list[Any]:
    return [ad.Zero(jax.core.ShapedArray(x.shape, np.float64)) for x in like]


def _sum(terms: list[Any], like: Sequence[Any]) -> list[Any]:
    """Return the sum of lists of arrays, or symbolic zeros if there are none."""
    if not terms:
        return _zeros(like)
    return [sum(arrays[1:], arrays[0]) for arrays in zip(*terms, strict=True)]


def _spread(count: int, places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """Return a list of `count` entries with the values at these places, and None elsewhere."""
    by_place = dict(zip(places, values, strict=True))
    return [by_place.get(place) for place in range(count)]


def _push_record(primals: Any, tangents: Any, **params: Any) -> Any:  # noqa: ANN401
    made = record.bind(*primals, **params)
    moved, changes = _nonzero(params["names"], tangents)
    if not moved:
        return made, _zeros(made)
    pushed = push.bind(*primals, made[0], made[2], *changes, **params, moved=moved)
    return made, [*pushed, *_zeros(made[2:])]


def _push_push(primals: Any, tangents: Any, **params: Any) -> Any:  # noqa: ANN401
    n, moved = len(params["names"]), params["moved"]
    made = push.bind(*primals, **params)
    names, changes = _nonzero(params["names"], tangents[:n])
    terms = []
    if names:
        terms.append(push_twice.bind(*primals, *changes, **params, others=names))
    chosen, second = _nonzero(moved, tangents[n + 2 :])
    if chosen:
        terms.append(push.bind(*primals[: n + 2], *second, **{**params, "moved": chosen}))
    return made, _sum(terms, made)


def _push_pull(primals: Any, tangents: Any, **params: Any) -> Any:  # noqa: ANN401
    n = len(params["names"])
    made = pull.bind(*primals, **params)
    moved, changes = _nonzero(params["names"], tangents[:n])
    terms = []
    if moved:
        terms.append(twice.bind(*primals, *changes, **params, moved=moved))
    if not all(isinstance(x, ad.Zero) for x in tangents[n + 2 :]):
        terms.append(pull.bind(*primals[: n + 2], *_given(tangents[n + 2 :]), **params))
    return made, _sum(terms, made)


def _push_rest(primals: Any, tangents: Any, **params: Any) -> Any:  # noqa: ANN401
    raise UnsupportedFeatureError("rollout", "third derivatives of rollouts are not supported")


def _given(cotangents: Sequence[Any]) -> list[Any]:
    """Return the cotangents as arrays, also those that are symbolic zeros."""
    return [ad.instantiate_zeros(x) for x in cotangents]  # type: ignore[no-untyped-call]


def _is_linear(argument: Any) -> bool:  # noqa: ANN401
    """Return whether a cotangent of this argument is wanted."""
    return bool(ad.is_undefined_primal(argument))  # type: ignore[no-untyped-call]


def _transpose_push(cotangents: Any, *arguments: Any, **params: Any) -> Any:  # noqa: ANN401
    n, moved = len(params["names"]), params["moved"]
    wanted, places = _linear(moved, arguments[n + 2 :])
    rest = {name: params[name] for name in ("handle", "names")}
    made = pull.bind(*arguments[: n + 2], *_given(cotangents), **rest, wanted=wanted)
    return [None] * (n + 2) + _spread(len(moved), places, made)


def _transpose_pull(cotangents: Any, *arguments: Any, **params: Any) -> Any:  # noqa: ANN401
    n = len(params["names"])
    moved, changes = _nonzero(params["wanted"], cotangents)
    rest = {name: params[name] for name in ("handle", "names")}
    made = push.bind(*arguments[: n + 2], *changes, **rest, moved=moved)
    given = zip(arguments[n + 2 :], made, strict=True)
    return [None] * (n + 2) + [x if _is_linear(y) else None for y, x in given]


def _transpose_twice(cotangents: Any, *arguments: Any, **params: Any) -> Any:  # noqa: ANN401
    n, moved = len(params["names"]), params["moved"]
    if any(map(_is_linear, arguments[n + 2 : n + 4])):
        return _push_rest(None, None)
    wanted, places = _linear(moved, arguments[n + 4 :])
    along, changes = _nonzero(params["wanted"], cotangents)
    rest = {name: params[name] for name in ("handle", "names")}
    made = twice.bind(*arguments[: n + 4], *changes, **rest, wanted=wanted, moved=along)
    return [None] * (n + 4) + _spread(len(moved), places, made)


def _transpose_push_twice(cotangents: Any, *arguments: Any, **params: Any) -> Any:  # noqa: ANN401
    """One of the two lists of changes is linear, and the other one is known."""
    n, moved, others = len(params["names"]), params["moved"], params["others"]
    middle = n + 2 + len(moved)
    first, second = arguments[n + 2 : middle], arguments[middle:]
    is_first = any(map(_is_linear, first))
    names, unknown = (moved, first) if is_first else (others, second)
    along, known = (others, second) if is_first else (moved, first)
    wanted, places = _linear(names, unknown)
    rest = {name: params[name] for name in ("handle", "names")}
    given = *arguments[: n + 2], *_given(cotangents), *known
    pulled = twice.bind(*given, **rest, wanted=wanted, moved=along)
    made = _spread(len(names), places, pulled)
    nothing = [None] * len(known)
    return [None] * (n + 2) + (made + nothing if is_first else nothing + made)


def _linear(names: Sequence[str], arguments: Sequence[Any]) -> tuple[Names, list[int]]:
    """Return the names and places of the arguments for which a cotangent is wanted."""
    places = [k for k, x in enumerate(arguments) if _is_linear(x)]
    return tuple(names[k] for k in places), places


for _p, _forward, _backward in (
    (record, _push_record, None),
    (push, _push_push, _transpose_push),
    (pull, _push_pull, _transpose_pull),
    (twice, _push_rest, _transpose_twice),
    (push_twice, _push_rest, _transpose_push_twice),
):
    ad.primitive_jvps[_p] = _forward
    if _backward is not None:
        ad.primitive_transposes[_p] = _backward
