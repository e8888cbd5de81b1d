"""The cost of a plan: a weighted sum of norms of residuals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _core
from mujacobian._arguments import Array, numbers, require_model, shaped
from mujacobian._summary import describe
from mujacobian.control.norm import Norm, Null
from mujacobian.control.rows import Rows
from mujacobian.control.term import Term, UserResidual
from mujacobian.errors import ArgumentError, ArgumentTypeError, UnsupportedFeatureError


class Cost:
    """The cost sum_i weight_i norm_i(residual_i - target_i) of a knot (ILQ-1).

    Planners minimize the mean over the knots. The gradient is exact. The Hessian contains the
    second derivatives of the norms, but not those of the residuals (Gauss-Newton), which the
    planner adds on request.

    Args:
      model: model whose sensors and controls the terms use.
      terms: terms of the cost, with distinct names.

    Attributes:
      terms: list of the terms.
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

    def __init__(self, model: mujoco.MjModel, terms: Sequence[Term]) -> None:
        require_model(model)
        self.terms = list(terms)
        if not self.terms:
            raise ArgumentError("a cost needs at least one term")
        for term in self.terms:
            if not isinstance(term, Term):
                raise ArgumentTypeError(f"terms must be control.Term, got {type(term).__name__}")
        names = [term.name for term in self.terms]
        if len(set(names)) < len(names):
            raise ArgumentError(f"names of terms must differ, got {', '.join(names)}")
        self.ns, self.nu, self.nx = model.nsensordata, model.nu, 2 * model.nv + model.na
        self.nstate = model.nq + model.nv + model.na
        self.weights = np.array([term.weight for term in self.terms], dtype=np.float64)
        # the core evaluates terms of rows, Python evaluates user-defined terms
        self.own = [k for k, t in enumerate(self.terms) if isinstance(t.residual, Rows)]
        self.users = [k for k in range(len(self.terms)) if k not in self.own]
        self.core = self._make_core()

    def __repr__(self) -> str:
        pairs = zip(self.terms, self.weights, strict=True)
        facts = [f"{term.name}: weight {weight:g}, {term.norm}" for term, weight in pairs]
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
        """Return the cost at n knots, `(n,)`.

        Args:
          sensordata: `(n, ns)`, sensor readings after `mj_step`, which are those of the state
            before the step.
          controls: `(n, nu)`, controls.
          times: `(n,)`, s, times of the knots.
          states: `(n, nq + nv + na)`, states; required only by user-defined residuals.
        """
        return weigh(self.by_term(sensordata, controls, times, states), self._checked_weights())

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
        own = np.empty((len(t), len(self.own)))
        self.core.evaluate_into(sensordata=s, controls=u, offsets=self.offsets(t), norms=own)
        out[:, self.own] = own
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
        self.core.expand_into(
            sensordata=s,
            controls=u,
            offsets=self.offsets(t),
            weights=self.own_weights(),
            C=c,
            D=d,
            gradient=gradient,
            hessian=hessian,
        )
        self.add_users(t, x, u, 1.0, gradient, hessian)
        return gradient, hessian[:, :, : gradient.shape[1]].copy()

    def blank(self, n: int) -> tuple[Array, Array]:
        """Return zero arrays for the core: a gradient, and a Hessian with padded rows."""
        nz = self.nx + self.nu
        return np.zeros((n, nz)), np.zeros((n, nz, -(-nz // 4) * 4))

    def own_weights(self) -> Array:
        """Return the weights of the terms that the core evaluates."""
        weights = self._checked_weights()
        return np.ascontiguousarray(weights[self.own])

    def own_rows(self) -> Iterator[tuple[int, Array, slice]]:
        """Yield the number, matrix and place of the rows of each term that the core evaluates."""
        first = 0
        for k in self.own:
            residual = self.terms[k].residual
            assert isinstance(residual, Rows)
            yield k, residual.matrix, slice(first, first + len(residual))
            first += len(residual)

    def offsets(self, times: Array) -> Array:
        """Return constant - target of all rows at these times; NaN switches a row off."""
        parts = [np.empty((len(times), 0))]
        for k in self.own:
            term = self.terms[k]
            assert isinstance(term.residual, Rows)
            parts.append(term.residual.constant - term.targets(times))
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def user_norms(self, times: Array, states: Array, controls: Array) -> Array:
        """Return the norms of user-defined terms, `(n, users)`; inf if a value is not finite."""
        norms = np.empty((len(self.users), len(times)))
        for k, out in zip(self.users, norms, strict=True):
            norm, value = self.terms[k].norm, self._user_value(k, times, states, controls)
            r = value - self.terms[k].targets(times)
            p, q = norm.parameters
            _core.norm_into(
                norm.kind, p=p, q=q, rows=r, values=out, slopes=None, curvatures=None, bends=None
            )
            out[~np.isfinite(value).all(axis=1)] = np.inf
        return norms.T

    def user_weights(self) -> Array:
        """Return the weights of the user-defined terms."""
        return self._checked_weights()[self.users]

    def add_users(
        self,
        times: Array,
        states: Array,
        controls: Array,
        scale: float,
        gradient: Array,
        hessian: Array,
    ) -> None:
        """Add `scale` times the derivatives of the user-defined terms to arrays from `blank`."""
        n, nz = gradient.shape
        for k in self.users:
            term = self.terms[k]
            assert isinstance(term.residual, UserResidual)
            dim, what = term.residual.dim, f'of term "{term.name}"'
            given = term.residual.jacobian(times, states, controls)
            rx = shaped(f"state Jacobian {what}", given[0], (n, dim, self.nx))
            ru = shaped(f"control Jacobian {what}", given[1], (n, dim, self.nu))
            r = self._user_value(k, times, states, controls) - term.targets(times)
            _, slope, curvature, bend = expand_norm(term.norm, r)
            rz = np.concatenate([rx, ru], axis=2)
            weight = scale * float(self._checked_weights()[k])
            turned = np.einsum("nk,nkz->nz", np.nan_to_num(r), rz)
            gradient += weight * np.einsum("nk,nkz->nz", slope, rz)
            hessian[:, :, :nz] += weight * (
                np.einsum("nk,nkz,nky->nzy", curvature, rz, rz, optimize=True)
                + bend[:, None, None] * turned[:, :, None] * turned[:, None, :]
            )

    def _user_value(self, k: int, times: Array, states: Array, controls: Array) -> Array:
        """Return the residual of a user-defined term, which may be infinite or NaN."""
        term = self.terms[k]
        assert isinstance(term.residual, UserResidual)
        given = term.residual.value(times, states, controls)
        shape = len(times), term.residual.dim
        return shaped(f'residual of term "{term.name}"', given, shape, finite=False)

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

    def _make_core(self) -> _core.Cost:
        width = self.ns + self.nu
        starts, index, coefficients, terms = [0], [], [], []
        for k in self.own:
            term = self.terms[k]
            assert isinstance(term.residual, Rows)
            if term.residual.matrix.shape[1] != width:
                raise ArgumentError(f'term "{term.name}" has rows of another model')
            if not len(term.residual):
                raise ArgumentError(f'term "{term.name}" has no rows')
            size, norm = len(term.residual), term.norm
            terms.append((len(starts) - 1, size, norm.kind, *norm.parameters))
            for row in term.residual.matrix:
                used = np.flatnonzero(row)
                index += used.tolist()
                coefficients += row[used].tolist()
                starts.append(len(index))
        return _core.Cost(
            ns=self.ns,
            nu=self.nu,
            nx=self.nx,
            start=starts,
            index=index,
            coefficient=coefficients,
            terms=terms,
        )


def weigh(norms: Array, weights: Array) -> Array:
    """Return the weighted sum of norms `(n, terms)`; terms of weight 0 may be infinite."""
    total: Array = np.where(weights > 0, norms, 0.0) @ weights
    return total


def expand_norm(norm: Norm, rows: Array) -> tuple[Array, Array, Array, Array]:
    """Return values `(n,)`, slopes and curvatures `(n, k)` and bends `(n,)` of a norm (ILQ-2).

    `rows` is `(n, k)`. Rows that are NaN are off: their slopes and curvatures are zero.
    """
    n, k = rows.shape
    values, bends = np.empty(n), np.empty(n)
    slopes, curvatures = np.empty((n, k)), np.empty((n, k))
    p, q = norm.parameters
    _core.norm_into(
        norm.kind,
        p=p,
        q=q,
        rows=rows,
        values=values,
        slopes=slopes,
        curvatures=curvatures,
        bends=bends,
    )
    return values, slopes, curvatures, bends
