"""The cost of a plan: a weighted sum of norms of residuals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _core
from mujacobian._arguments import Array, numbers, require_model, shaped
from mujacobian._manifold import Manifold, tangent_size
from mujacobian._summary import describe
from mujacobian.control.compressed import Compressed
from mujacobian.control.constraint import Constraint, checked_constraints
from mujacobian.control.norm import Null, expand_norm
from mujacobian.control.rows import Rows
from mujacobian.control.term import Term
from mujacobian.control.user_residual import Evaluator, UserResidual
from mujacobian.errors import ArgumentError, ArgumentTypeError, UnsupportedFeatureError


class Cost:
    """The cost sum_i weight_i norm_i(residual_i - target_i) of a knot (ILQ-1).

    Planners minimize the mean over the knots, and terms with `knots="last"` once at the last knot
    (ILQ-18). The gradient is exact. The Hessian contains the
    second derivatives of the norms, but not those of the residuals (Gauss-Newton), which the
    planner adds on request.

    Args:
      model: model whose sensors and controls the terms use.
      terms: terms of the cost, with distinct names.
      constraints: constraints that plans with this cost satisfy, with distinct names; by default
        none. They are no part of the cost itself.

    Attributes:
      terms: list of the terms.
      constraints: list of the constraints.
      weights: `(terms,)`, current weights, initially those of the terms. They may be changed
        between plans.

    Example:
      >>> import mujoco
      >>> from mujacobian import control
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint name='pivot' axis='0 1 0'/><geom size='.1'/></body>"
      ...     "</worldbody><actuator><motor joint='pivot'/></actuator>"
      ...     "<sensor><jointpos name='angle' joint='pivot'/></sensor></mujoco>")
      >>> cost = control.Cost(model, [
      ...     control.Term("reach", control.sensor(model, "angle") - 1.0, control.L2(0.1)),
      ...     control.Term("effort", control.controls(model), weight=1e-3)])
      >>> cost([[1.0]], [[2.0]], [0.0])
      array([0.002])
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        terms: Sequence[Term],
        constraints: Sequence[Constraint] = (),
    ) -> None:
        require_model(model)
        self.terms, self.constraints = list(terms), checked_constraints(constraints)
        if not self.terms:
            raise ArgumentError("a cost needs at least one term")
        for term in self.terms:
            if not isinstance(term, Term):
                raise ArgumentTypeError(f"terms must be control.Term, got {type(term).__name__}")
        names = [term.name for term in self.terms]
        if len(set(names)) < len(names):
            raise ArgumentError(f"names of terms must differ, got {', '.join(names)}")
        self.ns, self.nu, self.nx = model.nsensordata, model.nu, tangent_size(model)
        self.nstate = model.nq + model.nv + model.na
        self.weights = np.array([term.weight for term in self.terms], dtype=np.float64)
        # the core evaluates terms of rows, Python evaluates user-defined terms
        self.own = [k for k, t in enumerate(self.terms) if isinstance(t.residual, Rows)]
        self.users = [k for k in range(len(self.terms)) if k not in self.own]
        self._manifold = Manifold(model)
        self._evaluators = self._make_evaluators()
        self._compress(model)

    def __repr__(self) -> str:
        pairs = zip(self.terms, self.weights, strict=True)
        facts = [f"{term.name}: weight {weight:g}, {term.norm}" for term, weight in pairs]
        facts += [f"{each.name}: constraint of {len(each.rows)} rows" for each in self.constraints]
        return describe(f"Cost: {len(self.terms)} terms", facts)

    @property
    def is_nonnegative(self) -> bool:
        """Whether no term can be negative, so that partial sums are lower bounds of the cost."""
        return not any(isinstance(term.norm, Null) for term in self.terms)

    def __call__(
        self,
        sensordata: ArrayLike,
        controls: ArrayLike,
        times: ArrayLike,
        states: ArrayLike | None = None,
    ) -> Array:
        """Return the cost at n knots, `(n,)`, whose mean is the cost of a plan with these knots.

        Args:
          sensordata: `(n, ns)`, sensor readings after `mj_step`, which are those of the state
            before the step.
          controls: `(n, nu)`, controls.
          times: `(n,)`, s, times of the knots.
          states: `(n, nq + nv + na)`, states; required only by user-defined residuals.
        """
        norms = self.by_term(sensordata, controls, times, states)
        total: Array = weigh(norms, self.knot_weights(numbers("times", times))).sum(axis=1)
        return total

    def by_term(
        self,
        sensordata: ArrayLike,
        controls: ArrayLike,
        times: ArrayLike,
        states: ArrayLike | None = None,
    ) -> Array:
        """Return the norms without weights, `(n, terms)`; the arguments are those of `__call__`."""
        t, s, u, x = self._arguments(sensordata, controls, times, states)
        out = np.empty((len(t), len(self.terms)))
        out[:, self.own] = self.norms(s, u, self.offsets(t))[:, : len(self.own)]
        out[:, self.users] = self.user_norms(t, x, u)
        return out

    def expand(
        self,
        sensordata: ArrayLike,
        controls: ArrayLike,
        times: ArrayLike,
        C: ArrayLike,
        D: ArrayLike,
        states: ArrayLike | None = None,
    ) -> tuple[Array, Array]:
        """Return the gradient `(n, nx + nu)` and Hessian `(n, nx + nu, nx + nu)` (ILQ-3).

        Args:
          sensordata: `(n, ns)`, sensor readings.
          controls: `(n, nu)`, controls.
          times: `(n,)`, s, times of the knots.
          C: `(n, ns, nx)`, derivatives of the sensors with respect to the state, from
            `mujacobian.linearize_batch`.
          D: `(n, ns, nu)`, derivatives of the sensors with respect to the controls.
          states: `(n, nq + nv + na)`, states; required only by user-defined residuals.
        """
        t, s, u, x = self._arguments(sensordata, controls, times, states)
        n = len(t)
        c, d = (
            shaped("C", C, (n, self.ns, self.nx)),
            shaped("D", D, (n, self.ns, self.nu)),
        )
        gradient, hessian = self.blank(n)
        weights = self.knot_weights(t)
        self.core.expand_into(
            sensordata=s,
            controls=u,
            offsets=self.offsets(t),
            weights=self.core_weights(weights),
            C=c,
            D=d,
            gradient=gradient,
            hessian=hessian,
        )
        self.add_users(t, x, u, weights, gradient, hessian)
        return gradient, hessian[:, :, : gradient.shape[1]].copy()

    def blank(self, n: int) -> tuple[Array, Array]:
        """Return zero arrays for the core: a gradient, and a Hessian with padded rows."""
        nz = self.nx + self.nu
        return np.zeros((n, nz)), np.zeros((n, nz, -(-nz // 4) * 4))

    def knot_weights(self, times: Array) -> Array:
        """Return the weights of all terms at the knots of a plan, `(n, terms)`."""
        return self._checked_weights() * self.factors(times)

    def factors(self, times: Array) -> Array:
        """Return the factors of the weights at the knots of a plan, `(n, terms)`."""
        out = np.ones((len(times), len(self.terms)))
        for k, term in enumerate(self.terms):
            if not term.is_uniform:
                out[:, k] = term.factors(times)
        return out

    def step_weights(self, times: Array) -> Array:
        """Return the weights of simulated steps, `(n, terms)`, each of which begins a plan."""
        factors = [term.step_factors(times) for term in self.terms]
        return self._checked_weights() * np.stack(factors, axis=1)

    def own_rows(self) -> Iterator[tuple[int, slice]]:
        """Yield the number and the place of the rows of each term that the core evaluates."""
        first = 0
        for k in self.own:
            count = len(self.terms[k].residual)
            yield k, slice(first, first + count)
            first += count

    def differentiate_rows(
        self, sensordata: Array, controls: Array, offsets: Array
    ) -> tuple[Array, Array]:
        """Return the rows that the core evaluates, and their derivatives by sensors and controls.

        The shapes are `(n, rows)`, NaN for rows that are off, and `(n, rows, ns + nu)`.
        """
        n, count = offsets.shape
        values, gradients = np.empty((n, count)), np.empty((n, count, self.ns + self.nu))
        self.core.rows_into(
            sensordata=sensordata,
            controls=controls,
            offsets=offsets,
            values=values,
            gradients=gradients,
        )
        return values[:, : self.own_count], gradients[:, : self.own_count]

    def curve_rows(
        self, sensordata: Array, controls: Array, offsets: Array, core_weights: Array
    ) -> Array:
        """Return the second derivatives due to functions of rows (ILQ-21).

        They are those of the weighted sum by sensors and controls, `(n, ns + nu, ns + nu)`, at
        constant derivatives of the norms by their rows. `core_weights` are those of `core_weights`.
        """
        width = self.ns + self.nu
        hessian = np.zeros((len(offsets), width, width))
        self.core.curve_into(
            sensordata=sensordata,
            controls=controls,
            offsets=offsets,
            weights=core_weights,
            hessian=hessian,
        )
        return hessian

    def offsets(self, times: Array) -> Array:
        """Return constant - target of all rows at these times; NaN switches a row off.

        The last rows are those of the constraints, which are off: a `Lagrangian` switches them on.
        """
        parts = [np.empty((len(times), 0))]
        for k in self.own:
            term = self.terms[k]
            assert isinstance(term.residual, Rows)
            parts.append(term.residual.constant - term.targets(times))
        parts.append(np.full((len(times), 2 * self.constrained), np.nan))
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def core_weights(self, weights: Array, penalties: Array | float = 0.0) -> Array:
        """Return the weights of the terms of the core, given those of all terms `(n, terms)`.

        The last ones are `penalties`, `(n, constraints)`, for the upper and for the lower bounds.
        """
        own, count = len(self.own), len(self.constraints)
        out = np.empty((len(weights), own + 2 * count))
        out[:, :own] = weights[:, self.own]
        out[:, own : own + count] = out[:, own + count :] = penalties
        return out

    def norms(self, sensordata: Array, controls: Array, offsets: Array) -> Array:
        """Return the norms of the terms of the core, `(n, own + 2 constraints)`."""
        out = np.empty((len(offsets), len(self.own) + 2 * len(self.constraints)))
        self.core.evaluate_into(
            sensordata=sensordata, controls=controls, offsets=offsets, norms=out
        )
        return out

    def constraint_rows(self) -> Iterator[tuple[Constraint, slice]]:
        """Yield each constraint and the place of its rows among those of all constraints."""
        first = 0
        for constraint in self.constraints:
            yield constraint, slice(first, first + len(constraint.rows))
            first += len(constraint.rows)

    def user_norms(self, times: Array, states: Array, controls: Array) -> Array:
        """Return the norms of user-defined terms, `(n, users)`; inf if a value is not finite."""
        norms = np.empty((len(self.users), len(times)))
        for k, out in zip(self.users, norms, strict=True):
            norm, value = self.terms[k].norm, self._evaluators[k].value(times, states, controls)
            r = value - self.terms[k].targets(times)
            p, q = norm.parameters
            _core.norm_into(
                norm.kind, p=p, q=q, rows=r, values=out, slopes=None, curvatures=None, bends=None
            )
            out[~np.isfinite(value).all(axis=1)] = np.inf
        return norms.T

    def add_users(
        self,
        times: Array,
        states: Array,
        controls: Array,
        weights: Array,
        gradient: Array,
        hessian: Array,
    ) -> None:
        """Add the derivatives of the user-defined terms to arrays from `blank`.

        `weights` is `(n, terms)`. A term may be infinite at knots where its weight is 0.
        """
        nz = gradient.shape[1]
        for k in self.users:
            term, on = self.terms[k], np.flatnonzero(weights[:, k])
            if not len(on):
                continue
            knots = times[on], states[on], controls[on]
            rz = self._evaluators[k].jacobian(*knots)
            r = self._evaluators[k].value(*knots) - term.targets(times[on])
            _, slope, curvature, bend = expand_norm(term.norm, r)
            weight = weights[on, k, None]
            turned = np.einsum("nk,nkz->nz", np.nan_to_num(r), rz)
            gradient[on] += weight * np.einsum("nk,nkz->nz", slope, rz)
            hessian[on, :, :nz] += weight[:, :, None] * (
                np.einsum("nk,nkz,nky->nzy", curvature, rz, rz, optimize=True)
                + bend[:, None, None] * turned[:, :, None] * turned[:, None, :]
            )

    def _make_evaluators(self) -> dict[int, Evaluator]:
        """Return the functions of the user-defined terms."""
        made = {}
        for k in self.users:
            name, residual = self.terms[k].name, self.terms[k].residual
            assert isinstance(residual, UserResidual)
            made[k] = Evaluator(name, residual, self._manifold, self.nu)
        return made

    def require_unconstrained(self, user: str) -> None:
        """Raise if the cost has constraints, which `user` does not support."""
        for constraint in self.constraints:
            raise ArgumentError(
                f"{constraint.owner}: {user} cannot keep constraints, only control.ILQR can"
            )

    def require_second_derivatives(self) -> None:
        """Raise if a term has no exact second derivatives."""
        for k in self.users:
            raise UnsupportedFeatureError(
                f'term "{self.terms[k].name}"', "user-defined residuals have no second derivatives"
            )

    def _checked_weights(self) -> Array:
        weights = shaped("weights", self.weights, (len(self.terms),))
        if (weights < 0).any():
            name = self.terms[int(np.argmax(weights < 0))].name
            raise ArgumentError(f'the weight of term "{name}" must be at least 0')
        return weights

    def _arguments(
        self,
        sensordata: ArrayLike,
        controls: ArrayLike,
        times: ArrayLike,
        states: ArrayLike | None,
    ) -> tuple[Array, Array, Array, Array]:
        t = numbers("times", times)
        if t.ndim != 1:
            raise ArgumentError(f"times must have shape (n,), got {t.shape}")
        s = shaped("sensordata", sensordata, (len(t), self.ns))
        u = shaped("controls", controls, (len(t), self.nu))
        if states is None:
            if self.users:
                raise ArgumentError(
                    "states are needed, because the cost has user-defined residuals"
                )
            return t, s, u, np.empty((len(t), 0))
        return t, s, u, shaped("states", states, (len(t), self.nstate))

    def _compress(self, model: mujoco.MjModel) -> None:
        """Make the core and everything else that depends on the model."""
        compressed, terms, first = Compressed(model), [], 0
        self.reads = np.zeros((len(self.terms), self.ns), dtype=bool)  # of each sensor reading
        for k in self.own:
            term = self.terms[k]
            assert isinstance(term.residual, Rows)
            size, norm = len(term.residual), term.norm
            if not size:
                raise ArgumentError(f'term "{term.name}" has no rows')
            compressed.add(term.owner, term.residual)
            self.reads[k] = compressed.reads(term.residual)
            terms.append((first, size, norm.kind, *norm.parameters))
            first += size
        constants = [each.rows.constant for each in self.constraints]
        self.constraint_constants = np.concatenate([*constants, np.empty(0)])
        self.own_count, self.constrained = first, len(self.constraint_constants)
        # upper bounds, then lower bounds; only the former have a curvature where they are met
        for sign, curvature in ((1.0, 1.0), (-1.0, 0.0)):
            for each in self.constraints:
                compressed.add(each.owner, sign * each.rows)
                terms.append((first, len(each.rows), "excess", curvature, 0.0))
                first += len(each.rows)
        read = [compressed.reads(each.rows) for each in self.constraints]
        self.constraint_reads = np.array(read, dtype=bool).reshape(len(read), self.ns)
        self._core_arguments = {
            "ns": self.ns,
            "nu": self.nu,
            "nx": self.nx,
            "rows": compressed.rows.lists,
            "terms": terms,
            "operands": compressed.operands.lists,
            "constants": compressed.constants,
            "nodes": compressed.nodes,
        }
        self.core = _core.Cost(**self._core_arguments)

    def __getstate__(self) -> dict[str, object]:
        made = ("core", "_evaluators")  # they are made again
        return {name: value for name, value in self.__dict__.items() if name not in made}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._evaluators = self._make_evaluators()
        self.core = _core.Cost(**self._core_arguments)


def weigh(norms: Array, weights: Array) -> Array:
    """Return norms `(n, terms)` times their weights; terms of weight 0 may be infinite."""
    weighted: Array = np.where(weights > 0, norms, 0.0) * weights
    return weighted
