"""A simulated trajectory, the gradient of a scalar through it, and its Jacobian."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, cast

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _core
from mujacobian._arguments import Array, count, shaped
from mujacobian._differenced import may_difference
from mujacobian._gradient import Adjoint, Gradient, SecondAdjoint, Segment
from mujacobian._history import Histories, actuator_channels, sensor_channels
from mujacobian._inputs import Inputs
from mujacobian._kept_steps import kept_steps
from mujacobian._manifold import Manifold, pull_poses
from mujacobian._parameters import Parameters
from mujacobian._parts import call_by_workers
from mujacobian._pushforward import ColumnPush, DirectionPush, Jacobian
from mujacobian._refused import RefusedSteps
from mujacobian._summary import describe
from mujacobian._threads import each
from mujacobian._workers import Distribution
from mujacobian.errors import ArgumentError, ArgumentTypeError, MujacobianError

Result = TypeVar("Result", "Gradient", "Jacobian")
# changes of the first state and of the controls, and of the parameters if they change
Direction = (
    tuple[ArrayLike | None, ArrayLike | None]
    | tuple[ArrayLike | None, ArrayLike | None, ArrayLike | None]
)


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """The result of `mujacobian.rollout`. Batches have a leading axis.

    Attributes:
      states: `(T + 1, nq + nv + na)`, rows of (qpos, qvel, act): the first state, then the state
        after every step.
      sensordata: `(T, ns)`, the sensor values of each step, at the state before the step.
      model: the simulated model. Do not change it as long as you compute derivatives.

    The other attributes are what `gradient` and `jacobian` need.
    """

    model: mujoco.MjModel
    states: Array
    sensordata: Array
    inputs: Inputs
    # (n, rows, nstate): mjSTATE_INTEGRATION before every `every`-th step
    kept: Array
    every: int
    params: tuple[Parameters, Array] | None
    threads: int
    fallback: str | None = None
    distribution: Distribution | None = None

    def __repr__(self) -> str:
        steps = self.sensordata.shape[-2]
        facts = [f"{steps} steps of {self.model.opt.timestep:g} s"]
        if self.params is not None:
            facts.append(f"{len(self.params[0])} parameters")
        return describe("Trajectory", facts, states=self.states, sensordata=self.sensordata)

    def gradient(
        self,
        d_states: ArrayLike | None = None,
        d_sensors: ArrayLike | None = None,
        *,
        tangent: bool = False,
        window: int | None = None,
    ) -> Gradient:
        """Return the exact gradient of a scalar from its derivatives by states and sensors.

        The cost is a few simulations, whatever the number of inputs. A `RuntimeWarning` names the
        step at which the derivative has grown by a factor of 1e8. An overflow raises
        `MujacobianError`.

        Args:
          d_states: derivatives with respect to every state, in the shape of `states`. Quaternions
            are normalized to q / |q|: only the part that rotates them counts, and gradients with
            respect to them are orthogonal to them.
          d_sensors: derivatives with respect to the sensors, in the shape of `sensordata`.
          tangent: use the tangent coordinates of `A` (nx = 2 nv + na) for derivatives with respect
            to states, instead of the layout of `states`. This holds for `d_states` and the result.
          window: truncated backpropagation with windows of w steps. The gradient is cut at the
            states before steps w, 2 w, 3 w, ...: an input receives contributions only from the
            rest of its own window, including the state at the end of it. The result is then not
            the gradient of the scalar.

        Example:
          >>> import mujoco, mujacobian, numpy as np
          >>> model = mujoco.MjModel.from_xml_string(
          ...     "<mujoco><worldbody><body><joint name='pivot'/><geom size='.1'/></body>"
          ...     "</worldbody><actuator><motor joint='pivot'/></actuator></mujoco>")
          >>> trajectory = mujacobian.rollout(model, [0, 0], np.ones((50, 1)))
          >>> d_states = np.zeros_like(trajectory.states)
          >>> d_states[-1, 0] = 1  # the scalar is the last angle
          >>> trajectory.gradient(d_states).controls.shape
          (50, 1)
        """
        manifold = Manifold(self.model)
        n = self.batch
        states, rows, sensed = self._cotangents(manifold, d_states, d_sensors, tangent)
        given = rows if tangent else manifold.pull(states, rows)
        if window is not None:
            window = count("window", window)
        if self.distribution is not None:
            cotangents = (None if d_states is None else rows, sensed)
            distributed = call_by_workers(
                self, "gradient", cotangents, tangent=tangent, window=window
            )
            return cast(Gradient, distributed)

        histories = self._histories(window)
        if sensed is not None:
            sensed = histories.pull_sensors(sensed)
        core = None if self.params is None else self.params[0].core
        # differences are offered with respect to the state, controls and forces only
        rk4 = self.model.opt.integrator == int(mujoco.mjtIntegrator.mjINT_RK4)
        wrenches = self.inputs.wrenches is not None and rk4
        refused = self._refused(core is None and self.inputs.mocap is None and not wrenches)
        adjoint = Adjoint(
            self.model, self.inputs, given, sensed, core=core, window=window, refused=refused
        )
        self._each(lambda k, data: adjoint.pull_back(k, data, self.segments(k, data)))
        adjoint.judge(is_batch=self.is_batch)
        made = adjoint.gradient
        if refused is not None:
            made = replace(made, differenced=refused.differenced)
        made = replace(made, controls=histories.pull_controls(made.controls))
        if not tangent:
            made = replace(made, state=manifold.lift(states[:, 0], made.state))
        if made.mocap is not None:
            made = replace(made, mocap=pull_poses(self.inputs.poses(), made.mocap))
        if self.params is not None and made.params is not None:
            chain = self.params[0].jacobian(self.params[1], self.model)
            # row by row, so that the products of a batch are bitwise those of single rollouts
            rows = np.array([row @ chain for row in made.params])
            made = replace(made, params=rows.reshape(n, chain.shape[1]))
        return made if self.is_batch else _first(made)

    def jvp(
        self,
        direction: Direction,
        *,
        tangent: bool = False,
        sensors: bool = True,
    ) -> tuple[Array, Array | None]:
        """Return the changes of all states and sensors along a direction, in forward mode.

        All other inputs of the rollout are constants.

        Args:
          direction: changes of the first state and of the controls, in the shapes of `state` and
            `controls` of a gradient; None is zero. A third entry is a change of the parameters.
          tangent: use the tangent coordinates of `A` for changes of states, instead of the layout
            of `states`.
          sensors: compute the changes of the sensors, too; otherwise None is returned in their
            place.

        Example:
          >>> import mujoco, mujacobian, numpy as np
          >>> model = mujoco.MjModel.from_xml_string(
          ...     "<mujoco><worldbody><body><joint name='pivot'/><geom size='.1'/></body>"
          ...     "</worldbody><actuator><motor joint='pivot'/></actuator></mujoco>")
          >>> trajectory = mujacobian.rollout(model, [0, 0], np.ones((50, 1)))
          >>> trajectory.jvp((None, np.ones((50, 1))))[0].shape
          (51, 2)
        """
        manifold = Manifold(self.model)
        n, T = self.batch, self.steps
        states = self.states.reshape(n, T + 1, manifold.size)
        along, controls, params = self._direction(manifold, direction, tangent)
        if self.distribution is not None:
            change = (along, controls, *(() if params is None else (params,)))
            distributed = call_by_workers(self, "jvp", (change,), tangent=tangent, sensors=sensors)
            return cast("tuple[Array, Array | None]", distributed)
        moved = np.zeros((n, T + 1, manifold.nx))
        moved[:, 0] = along if tangent else manifold.reduce(states[:, 0], along)
        sensed = np.zeros((n, T, self.model.nsensordata)) if sensors else None
        core = self._core_direction(params, self._chain(params))
        histories = self._histories()
        self._push_direction(histories.push_controls(controls), core, moved, sensed)
        if sensed is not None:
            sensed = histories.push_sensors(sensed)
        made = moved if tangent else manifold.push(states, moved)
        if self.is_batch:
            return made, sensed
        return made[0], None if sensed is None else sensed[0]

    def hvp(
        self,
        direction: Direction,
        d_states: ArrayLike | None = None,
        d_sensors: ArrayLike | None = None,
        *,
        tangent: bool = False,
    ) -> Gradient:
        """Return the derivative of the gradient along a direction: a Hessian-vector product.

        The scalar is the sum of all states and sensors, weighted with `d_states` and `d_sensors`,
        as functions of the first state, the controls and the parameters. For a loss that is not
        linear in them, the product with the Hessian of the loss has another term:
        `gradient(L_xx dx, L_yy dy)` with the changes `dx, dy` from `jvp` and the second derivatives
        of the loss. The cost is that of about two gradients, and less for further products of the
        same trajectory. All other inputs of the rollout are constants.

        Args:
          direction: changes of the first state and of the controls, in the shapes of `state` and
            `controls` of a gradient; None is zero. With a third entry, a change of the parameters,
            or None, which is zero, the result has `params`, too. Otherwise parameters are
            constants.
          d_states: as in `gradient`.
          d_sensors: as in `gradient`.
          tangent: use tangent coordinates, as in `gradient`, for `d_states`, the direction of the
            state and the result. The Hessian is then that in exponential coordinates of all states,
            and symmetric. Without it, quaternions are normalized to q / |q|.

        Returns:
          A `Gradient` with `state` and `controls`, `params` if the direction has three entries, and
          the `norms` of the changes of the derivative with respect to every state. All else is
          None. A parameter without a second derivative raises `UnsupportedFeatureError`.

        Example:
          >>> import mujoco, mujacobian, numpy as np
          >>> model = mujoco.MjModel.from_xml_string(
          ...     "<mujoco><worldbody><body><joint name='pivot'/><geom size='.1'/></body>"
          ...     "</worldbody><actuator><motor joint='pivot'/></actuator></mujoco>")
          >>> trajectory = mujacobian.rollout(model, [1, 0], np.ones((50, 1)))
          >>> d_states = np.zeros_like(trajectory.states)
          >>> d_states[-1, 0] = 1  # the scalar is the last angle
          >>> trajectory.hvp(([1, 0], None), d_states).controls.shape
          (50, 1)
        """
        manifold = Manifold(self.model)
        n, T = self.batch, self.steps
        states, rows, sensed = self._cotangents(manifold, d_states, d_sensors, tangent)
        given = rows if tangent else manifold.pull(states, rows)
        moved_state, controls, params = self._direction(manifold, direction, tangent)
        if self.distribution is not None:
            change = (moved_state, controls, *(() if params is None else (params,)))
            distributed = call_by_workers(
                self, "hvp", (change, None if d_states is None else rows, sensed), tangent=tangent
            )
            return cast(Gradient, distributed)
        moved = np.zeros((n, T + 1, manifold.nx))
        moved[:, 0] = moved_state if tangent else manifold.reduce(states[:, 0], moved_state)
        chain = self._chain(params)
        core, raw = self._core_direction(params, chain)
        histories = self._histories()
        controls = histories.push_controls(controls)
        if sensed is not None:
            sensed = histories.pull_sensors(sensed)
        # steps between checkpoints are evaluated again in every pass, to save memory
        keeping = kept_steps(self, n) if self.every == 1 else nullcontext(None)
        with keeping as kept:
            self._push_direction(controls, (core, raw), moved, None, kept, sensed)
            changes = None if tangent else manifold.curve(states, rows, moved)
            last = np.zeros((n, manifold.nx)) if changes is None else changes[:, -1].copy()
            adjoint = SecondAdjoint(
                self.model, given, sensed, moved, controls, changes, last, core, raw, kept
            )
            self._each(lambda k, data: adjoint.pull_back(k, data, self.segments(k, data)))
        made = adjoint.product(is_batch=self.is_batch)
        made = replace(made, controls=histories.pull_controls(made.controls))
        if not tangent:
            lifted = manifold.lift_product(
                states[:, 0], adjoint.cotangents, made.state, moved_state
            )
            made = replace(made, state=lifted)
        if params is not None and self.params is not None:
            curve = self.params[0].curve
            products = [
                second @ chain + curve(self.params[1], along, first, self.model, chain)
                for along, first, second in zip(
                    params, adjoint.by_params, adjoint.made_params, strict=True
                )
            ]
            made = replace(made, params=np.reshape(products, params.shape))
        return made if self.is_batch else _first(made)

    def hessian(
        self,
        wrt: str = "params",
        d_states: ArrayLike | None = None,
        d_sensors: ArrayLike | None = None,
        *,
        tangent: bool = False,
    ) -> Array:
        """Return the second derivative of a scalar with respect to the parameters, symmetric.

        The scalar is that of `hvp`, which is called once for every parameter.

        Args:
          wrt: "params", the parameters given to the rollout.
          d_states: as in `gradient`.
          d_sensors: as in `gradient`.
          tangent: use tangent coordinates for `d_states`, as in `gradient`.

        Example:
          >>> import mujoco, mujacobian, numpy as np
          >>> model = mujoco.MjModel.from_xml_string(
          ...     "<mujoco><worldbody><body name='bob'><joint name='pivot' axis='0 1 0'/>"
          ...     "<geom size='.1' pos='0 0 -1'/></body></worldbody></mujoco>")
          >>> params = mujacobian.Parameters(model, ["body_mass", "dof_damping", "dof_armature"])
          >>> model.dof_damping[0] = 0.1
          >>> trajectory = mujacobian.rollout(model, [1, 0], np.zeros((50, 0)), params=params)
          >>> d_states = np.zeros_like(trajectory.states)
          >>> d_states[-1, 0] = 1  # the scalar is the last angle
          >>> trajectory.hessian("params", d_states).shape
          (3, 3)
        """
        if wrt != "params":
            raise ArgumentError(f'wrt must be "params", got {wrt!r}')
        if self.params is None:
            raise ArgumentError("the rollout was given no params: use rollout(..., params=...)")
        size = len(self.params[0])
        lead = (self.batch,) if self.is_batch else ()
        columns = np.empty((*lead, size, size))
        for k, unit in enumerate(np.eye(size)):
            along = np.broadcast_to(unit, (*lead, size))
            made = self.hvp((None, None, along), d_states, d_sensors, tangent=tangent)
            columns[..., k] = made.params
        return np.asarray(0.5 * (columns + columns.swapaxes(-1, -2)))

    def _cotangents(
        self,
        manifold: Manifold,
        d_states: ArrayLike | None,
        d_sensors: ArrayLike | None,
        tangent: bool,
    ) -> tuple[Array, Array, Array | None]:
        """Return the states, and the derivatives by states and sensors, with a batch axis."""
        n, T = self.batch, self.steps
        width = manifold.nx if tangent else manifold.size
        rows = np.zeros((n, T + 1, width))
        if d_states is not None:
            given = shaped("d_states", d_states, (*self.states.shape[:-1], width))
            rows = given.reshape(n, T + 1, width)
        sensed = None
        if d_sensors is not None:
            given = shaped("d_sensors", d_sensors, self.sensordata.shape)
            sensed = given.reshape(n, T, self.model.nsensordata)
        return self.states.reshape(n, T + 1, manifold.size), rows, sensed

    def _direction(
        self, manifold: Manifold, direction: Direction, tangent: bool
    ) -> tuple[Array, Array, Array | None]:
        """Return the changes of the first states and of the controls, with a batch axis.

        The third result is the change of the parameters, or None if they are constants.
        """
        if not isinstance(direction, tuple | list) or len(direction) not in (2, 3):
            raise ArgumentTypeError(
                "direction must be a pair of changes of the first state and of the controls, or "
                "have a third entry, the change of the parameters, got "
                f"{type(direction).__name__}"
            )
        n, T, nu = self.batch, self.steps, self.model.nu
        lead = (n,) if self.is_batch else ()
        width = manifold.nx if tangent else manifold.size
        state, controls = np.zeros((n, width)), np.zeros((n, T, nu))
        if direction[0] is not None:
            state = shaped("direction[0]", direction[0], (*lead, width)).reshape(n, width)
        if direction[1] is not None:
            controls = shaped("direction[1]", direction[1], (*lead, T, nu)).reshape(n, T, nu)
        if len(direction) == 2:
            return state, controls, None
        if self.params is None:
            raise ArgumentError("the rollout was given no params: use rollout(..., params=...)")
        size = len(self.params[0])
        params = np.zeros((n, size))
        if direction[2] is not None:
            params = shaped("direction[2]", direction[2], (*lead, size)).reshape(n, size)
        return state, controls, params

    def _chain(self, params: Array | None) -> Array:
        """Return the derivatives of the core's parameters, if a direction changes parameters."""
        if params is None or self.params is None:
            return np.zeros((0, 0))
        return self.params[0].jacobian(self.params[1], self.model)

    def _core_direction(
        self, params: Array | None, chain: Array
    ) -> tuple[list[tuple[int, int, int]], Array]:
        """Return the parameters of the core that may change, and their changes."""
        if params is None or self.params is None:
            return [], np.zeros((self.batch, 0))
        # row by row, so that the products of a batch are bitwise those of single rollouts
        return self.params[0].core, np.array([chain @ row for row in params])

    def _push_direction(
        self,
        controls: Array,
        params: tuple[list[tuple[int, int, int]], Array],
        moved: Array,
        sensed: Array | None,
        kept: list[_core.KeptTrajectory] | None = None,
        d_sensors: Array | None = None,
    ) -> None:
        """Fill the changes of all states, of which the first one is given, and of the sensors."""
        work = DirectionPush(self.model, controls, *params, moved, sensed, kept, d_sensors)
        self._each(lambda k, data: work.push(k, data, self.segments(k, data, reverse=False)))
        for k, t in np.argwhere(~np.isfinite(moved).all(axis=2))[:1]:
            which = f"rollout {k}: " if self.is_batch else ""
            raise MujacobianError(f"{which}the change of the state overflows before step {t}")

    def jacobian(
        self,
        wrt: str = "params",
        *,
        tangent: bool = False,
        sensors: bool | Sequence[int] = True,
    ) -> Jacobian:
        """Return the exact Jacobian of all states and sensors.

        It is computed in forward mode, which is fast for few columns.

        Args:
          wrt: "params", the parameters given to the rollout, or "state", the first state.
          tangent: use the tangent coordinates of `A` for the rows of states and the columns of the
            first state, instead of the layout of `states`.
          sensors: compute the Jacobian of the sensors, too, or only of these entries of
            `sensordata`, in this order. A sensor whose derivative with respect to a parameter is
            not supported raises `UnsupportedFeatureError`.

        Example:
          >>> import mujoco, mujacobian, numpy as np
          >>> model = mujoco.MjModel.from_xml_string(
          ...     "<mujoco><worldbody><body><joint/><geom size='.1' pos='0 1 0'/></body>"
          ...     "</worldbody></mujoco>")
          >>> trajectory = mujacobian.rollout(model, [1, 0], np.zeros((50, 0)))
          >>> trajectory.jacobian("state").states.shape
          (51, 2, 2)
        """
        if wrt not in ("params", "state"):
            raise ArgumentError(f'wrt must be "params" or "state", got {wrt!r}')
        if wrt == "params" and self.params is None:
            raise ArgumentError("the rollout was given no params: use rollout(..., params=...)")
        chosen = self._chosen_sensors(sensors)
        if self.distribution is not None:
            distributed = call_by_workers(
                self, "jacobian", (), wrt=wrt, tangent=tangent, sensors=sensors
            )
            return cast(Jacobian, distributed)
        manifold = Manifold(self.model)
        n, T, ns = self.batch, self.steps, self.model.nsensordata
        core, directions, columns = [], None, manifold.nx
        if wrt == "params" and self.params is not None:
            core = self.params[0].core
            directions = np.ascontiguousarray(self.params[0].jacobian(self.params[1], self.model).T)
            columns = len(directions)
        # the core has one row per column
        moved = np.zeros((n, T + 1, columns, manifold.nx))
        if wrt == "state":
            moved[:, 0] = np.eye(manifold.nx)
        sensed = None if chosen is None else np.zeros((n, T, columns, ns))
        weights = np.isin(np.arange(ns), [] if chosen is None else chosen).astype(np.float64)

        refused = self._refused(wrt == "state")
        work = ColumnPush(self.model, core, directions, moved, sensed, weights, refused)
        self._each(lambda k, data: work.push(k, data, self.segments(k, data, reverse=False)))
        for k, t in np.argwhere(~np.isfinite(moved).all(axis=(2, 3)))[:1]:
            which = f"rollout {k}: " if self.is_batch else ""
            raise MujacobianError(f"{which}the Jacobian overflows in the state before step {t}")
        states = self.states.reshape(n, T + 1, manifold.size)
        made = moved if tangent else manifold.push(states[:, :, None], moved)
        made = made.swapaxes(-1, -2)
        read = None
        if sensed is not None:
            read = self._histories().push_sensors(sensed.swapaxes(-1, -2))[:, :, chosen]
        if wrt == "state" and not tangent:
            made = manifold.lift(states[:, :1, None], made)
            read = None if read is None else manifold.lift(states[:, :1, None], read)
        result = Jacobian(made, read, () if refused is None else refused.differenced)
        return result if self.is_batch else _first(result)

    def _refused(self, is_possible: bool) -> RefusedSteps | None:
        """Return the object that differences refused steps; None if they raise an error."""
        # differences of a step do not see controls and sensors that act in others
        coupled = bool(actuator_channels(self.model) or sensor_channels(self.model))
        if not is_possible or coupled or not may_difference(self.model, self.fallback):
            return None
        return RefusedSteps(self.model, is_batch=self.is_batch)

    def _histories(self, window: int | None = None) -> Histories:
        """Return the histories of delayed actuators and sensors."""
        return Histories(self.model, self.kept, self.steps, window)

    def _chosen_sensors(self, sensors: bool | Sequence[int]) -> list[int] | None:
        """Return the chosen entries of sensordata, or None if there are none."""
        ns = self.model.nsensordata
        if isinstance(sensors, bool):
            return list(range(ns)) if sensors else None
        chosen = [int(k) for k in sensors]
        if any(k not in range(ns) for k in chosen):
            raise ArgumentError(f"sensors must be entries of sensordata below {ns}, got {chosen}")
        return chosen

    @property
    def is_batch(self) -> bool:
        """True if results have a leading axis."""
        return self.states.ndim == 3

    @property
    def batch(self) -> int:
        """Number of rollouts."""
        return len(self.kept)

    @property
    def steps(self) -> int:
        """Number of steps of a rollout."""
        return int(self.states.shape[-2]) - 1

    def _each(self, work: Callable[[int, mujoco.MjData], None]) -> None:
        each(self.model, self.batch, self.threads, work)

    def segments(self, k: int, data: mujoco.MjData, *, reverse: bool = True) -> Iterator[Segment]:
        """Yield the segments of rollout k between its checkpoints, with all states in them."""
        T = self.steps
        if self.every == 1:
            yield 0, T, self.kept[k]
            return
        starts = range(0, T, self.every)
        for first in reversed(starts) if reverse else starts:
            last = min(first + self.every, T)
            start = np.empty((last - first, self.kept.shape[-1]))
            state, rows = self.kept[k, first // self.every], self.inputs.rows(k, first, last)
            _core.simulate_into(
                self.model,
                data,
                state=state,
                steps=last - first,
                **rows,
                every=1,
                start=start,
                states=None,
                sensors=None,
            )
            yield first, last, start


def _first(batch: Result) -> Result:
    """Return the first of a batch of results."""
    given = {each.name: getattr(batch, each.name) for each in fields(batch)}
    made: dict[str, Any] = {
        name: x[0] if isinstance(x, np.ndarray) else x for name, x in given.items()
    }
    return type(batch)(**made)
