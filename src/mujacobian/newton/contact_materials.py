"""Friction and solref of Newton's contacts as functions of the materials of their shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import newton
import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array
from mujacobian.newton.internals import Indices
from mujacobian.newton.model_parameters import ModelParameters
from mujacobian.newton.parameters import MATERIALS, array_of
from mujacobian.newton.worlds import Worlds

if TYPE_CHECKING:
    from mujacobian.newton.given_contacts import ContactCotangents, GivenContacts

_FORCE_SPACE, _RAW = 0, 1
_LEAST = 1e-15  # mjMINVAL
_LEAST_FRICTION = 1e-5  # mjMINMU
_FRICTION = ("shape_material_mu", "shape_material_mu_torsional", "shape_material_mu_rolling")
_KE, _KD = "shape_material_ke", "shape_material_kd"
_STIFFNESS, _DAMPING, _SCALE = (
    f"rigid_contact_{name}" for name in ("stiffness", "damping", "friction")
)


class ContactMaterials:
    """The materials of all shapes, and the derivatives of contacts with respect to them."""

    def __init__(
        self,
        solver: newton.solvers.SolverMuJoCo,
        worlds: Worlds,
        parameters: ModelParameters,
    ) -> None:
        model = solver.model
        self.parameters = parameters
        self.body: Indices = model.shape_body.numpy().astype(np.intp)
        self.margin = model.shape_margin.numpy().astype(np.float64)
        self._values = {name: getattr(model, name).numpy().astype(np.float64) for name in MATERIALS}
        mode = array_of(model, "mujoco.solref_mode")
        # without the attribute, Newton does not use force space
        self._mode = np.full(model.shape_count, 2) if mode is None else mode.numpy()
        self._has_mode = mode is not None
        mj = worlds.models[0]
        self._priority = mj.geom_priority.copy()
        self._geom_body = mj.geom_bodyid.copy()
        self._solmix = worlds.values("geom_solmix").copy()
        self._solref = worlds.values("geom_solref").copy()
        self._weights = worlds.values("body_invweight0")[..., 0].copy()
        self._places = np.array(
            [-1 if (k := parameters.weight_place(b)) is None else k for b in range(mj.nbody)]
        )

    def pull(
        self, c: GivenContacts, d: ContactCotangents, params: Array
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Pull cotangents of friction and solref back to materials and to contacts (NWT-13).

        Cotangents of invweight0 are added to `params`, the gradients of core parameters. The
        results are gradients of materials, one number per shape, and cotangents of properties of
        the contacts, one row per contact.
        """
        made = {name: np.zeros(len(values)) for name, values in self._values.items()}
        own: dict[str, Array] = {}
        mix = self._mix(c)
        d_friction = d.friction.copy()
        tuned = np.zeros(len(c.row), dtype=bool)  # contacts with a stiffness of their own
        if _STIFFNESS in c.values:
            tuned = c.values[_STIFFNESS] > 0
            own |= self._pull_properties(c, d, tuned)
            scale = c.values[_SCALE]
            scaled = scale > 0
            mu = c.numbers[:, 14:16]
            safe = np.where(scaled, scale, 1)
            own[_SCALE] = np.where(scaled, (d.friction[:, :2] * mu).sum(axis=-1) / safe, 0)
            d_friction[:, :2] *= safe[:, None]
        self._pull_friction(c, d_friction, mix, made)
        forced = self._in_force_space(c) & ~tuned
        self._pull_force_space(c, d, mix, forced, made, params)
        self._pull_mixed(c, d, mix, ~forced & ~tuned, made)
        self._pull_friction_damping(c, d, params)
        return made, own

    def _mix(self, c: GivenContacts) -> Array:
        """Return the weight of the first geom in numbers that two geoms mix."""
        geom = c.geoms[:, 1:]
        priority = self._priority[geom]
        solmix = self._solmix[(c.world % len(self._solmix))[:, None], geom]
        small = solmix < _LEAST
        mix = np.select(
            [small.all(axis=1), small[:, 0], small[:, 1]],
            [0.5, 0.0, 1.0],
            solmix[:, 0] / np.maximum(solmix.sum(axis=1), _LEAST),
        )
        first, second = priority.T
        # tie: the geom with the higher priority counts alone
        return np.select([first > second, second > first], [1.0, 0.0], mix)

    def _pull_friction(
        self, c: GivenContacts, d_friction: Array, mix: Array, made: dict[str, Array]
    ) -> None:
        """Add the gradients of friction: the larger coefficient counts, and at least mjMINMU."""
        priority = self._priority[c.geoms[:, 1:]]
        by_priority = (priority[:, 0] != priority[:, 1])[:, None]
        of_contact = (
            d_friction[:, :2].sum(axis=1),
            d_friction[:, 2],
            d_friction[:, 3:].sum(axis=1),
        )
        for name, gradient in zip(_FRICTION, of_contact, strict=True):
            mu = self._values[name][c.shapes]
            larger = np.where(mu > mu[:, ::-1], 1.0, np.where(mu < mu[:, ::-1], 0.0, 0.5))
            weight = np.where(by_priority, np.stack([mix, 1 - mix], axis=1), larger)
            weight = np.where(mu < _LEAST_FRICTION, 0, weight)
            np.add.at(made[name], c.shapes, weight * gradient[:, None])

    def _in_force_space(self, c: GivenContacts) -> NDArray[np.bool_]:
        """Return the contacts whose solref Newton computes with a factor of both bodies."""
        modes = self._mode[c.shapes] == _FORCE_SPACE
        possible: NDArray[np.bool_] = (
            modes.all(axis=1) & (self._inverse_mass(c).sum(axis=1) > 0) & (c.solimp[:, 1] < 1)
        )
        return possible & self._has_mode

    def _inverse_mass(self, c: GivenContacts) -> Array:
        """Return the translational invweight0 of both bodies, 0 for the world."""
        bodies = self._geom_body[c.geoms[:, 1:]]
        weights = self._weights[(c.world % len(self._weights))[:, None], bodies]
        result: Array = np.where(self.body[c.shapes] >= 0, weights, 0)
        return result

    def _pull_force_space(
        self,
        c: GivenContacts,
        d: ContactCotangents,
        mix: Array,
        which: NDArray[np.bool_],
        made: dict[str, Array],
        params: Array,
    ) -> None:
        """Add gradients of contacts with `(2 / D, D / (2 sqrt(K)))` for K = f ke and D = f kd."""
        shares = np.stack([mix, 1 - mix], axis=1)
        gains = [(self._values[name][c.shapes] * shares).sum(axis=1) for name in (_KE, _KD)]
        weights = self._inverse_mass(c)
        total = weights.sum(axis=1)
        factor = total * (1 - c.solimp[:, 1])
        # Newton replaces smaller gains by mjMINVAL
        ke_acts, kd_acts = (which & (gain * factor > _LEAST) for gain in gains)
        by_log = d.solref * c.solref  # cotangents of the logarithms of solref
        of_ke = np.where(ke_acts, -0.5 * by_log[:, 1], 0)
        of_kd = np.where(kd_acts, by_log[:, 1] - by_log[:, 0], 0)
        for name, gradient, gain in zip((_KE, _KD), (of_ke, of_kd), gains, strict=True):
            safe = np.where(gradient != 0, gain, 1)
            np.add.at(made[name], c.shapes, shares * (gradient / safe)[:, None])
        per_weight = (of_ke + of_kd) / np.where(which, total, 1)
        self._add_weights(c, np.where(weights > 0, per_weight[:, None], 0), params)

    def _pull_mixed(
        self,
        c: GivenContacts,
        d: ContactCotangents,
        mix: Array,
        which: NDArray[np.bool_],
        made: dict[str, Array],
    ) -> None:
        """Add gradients of contacts that mix the solref of their geoms."""
        geom = c.geoms[:, 1:]
        solref = self._solref[(c.world % len(self._solref))[:, None], geom]  # (n, side, 2)
        standard = (solref[..., 0] > 0).all(axis=1)[:, None, None]
        other = solref[:, ::-1]
        smaller = np.where(solref < other, 1.0, np.where(solref > other, 0.0, 0.5))
        shares = np.stack([mix, 1 - mix], axis=1)[..., None]
        d_solref = np.where(standard, shares, smaller) * d.solref[:, None]
        d_solref = np.where(which[:, None, None], d_solref, 0)
        ke, kd = (self._values[name][c.shapes] for name in (_KE, _KD))
        # solref of a shape with its own solref, or without gains, does not depend on them
        free = (self._mode[c.shapes] != _RAW) & (ke > 0) & (kd > 0)
        by_log = np.where(free[..., None], d_solref * solref, 0)
        safe_ke, safe_kd = np.where(free, ke, 1), np.where(free, kd, 1)
        np.add.at(made[_KE], c.shapes, -0.5 * by_log[..., 1] / safe_ke)
        np.add.at(made[_KD], c.shapes, (by_log[..., 1] - by_log[..., 0]) / safe_kd)

    def _pull_properties(
        self, c: GivenContacts, d: ContactCotangents, tuned: NDArray[np.bool_]
    ) -> dict[str, Array]:
        """Return cotangents of the stiffness and damping that a contact has of its own.

        With damping, solref is `(2 / kd, kd / (2 sqrt(ke')))`, otherwise `(1 / sqrt(ke'), 1)`, for
        ke' proportional to ke.
        """
        ke, kd = c.values[_STIFFNESS], c.values[_DAMPING]
        damped = tuned & (kd > 0)
        by_log = np.where(tuned[:, None], d.solref * c.solref, 0)
        d_ke = -0.5 * np.where(damped, by_log[:, 1], by_log[:, 0]) / np.where(tuned, ke, 1)
        d_kd = np.where(damped, by_log[:, 1] - by_log[:, 0], 0) / np.where(damped, kd, 1)
        return {_STIFFNESS: d_ke, _DAMPING: d_kd}

    def _pull_friction_damping(self, c: GivenContacts, d: ContactCotangents, params: Array) -> None:
        """Add gradients of the solref of friction, which is proportional to 1 / invweight0."""
        time = c.solreffriction[:, 0]
        bodies = self._geom_body[c.geoms[:, 1:]]
        weights = self._weights[(c.world % len(self._weights))[:, None], bodies]
        total = weights.sum(axis=1)
        gradient = np.where(time > 0, -d.solreffriction[:, 0] * time / np.maximum(total, _LEAST), 0)
        self._add_weights(c, np.broadcast_to(gradient[:, None], weights.shape), params)

    def _add_weights(self, c: GivenContacts, gradient: Array, params: Array) -> None:
        """Add gradients of the invweight0 of both bodies of each contact."""
        places = self._places[self._geom_body[c.geoms[:, 1:]]]
        world = np.broadcast_to(c.world[:, None], places.shape)
        known = places >= 0
        np.add.at(params, (world[known], places[known]), gradient[known])
