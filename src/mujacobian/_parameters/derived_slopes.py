"""Derivatives of the constants of `mj_setConst` at `qpos0`: see docs/derivations/parameters.md."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array
from mujacobian._parameters.derived import ARMATURE, FRAMES, INERTIAL, Raw
from mujacobian._parameters.derived_terms import Structure, Terms, cross
from mujacobian._parameters.frame_slopes import add_frame_slopes
from mujacobian._parameters.inertia import PAIRS
from mujacobian._rotation import axial

Indices = NDArray[np.intp]


class Slopes(NamedTuple):
    """Derivatives of derived constants.

    MuJoCo measures the weight of a body at its center of mass. This point is a quantity of its own,
    because the ten numbers of a body without mass do not contain it.
    """

    core: Array  # (constants, parameters), at fixed centers of mass
    centers: Array  # (constants, bodies, 3), by the centers in the frames of `DerivedSlopes.bodies`


class DerivedSlopes:
    """Derivatives of derived constants by the core's parameters, for any numbers in a model.

    `bodies` are the bodies whose inertia is among the parameters.
    """

    def __init__(self, model: mujoco.MjModel, constants: list[Raw], core: list[Raw]) -> None:
        self.constants, self.core = constants, core
        self.structure = Structure(model, constants)
        kinds, elements, components = np.array(core, dtype=np.intp).reshape(-1, 3).T
        rows = self.structure.with_terms
        armature, inertial = (np.flatnonzero(kinds == kind) for kind in (ARMATURE, INERTIAL))
        self._armature, self._inertial = armature, inertial
        self._dofs, self._of_dofs = elements[armature], np.ix_(rows, armature)
        self.bodies, places = np.unique(elements[inertial], return_inverse=True)
        self._numbers = places, components[inertial]
        self._of_bodies = np.ix_(rows, inertial)
        self._frames = np.flatnonzero(np.isin(kinds, FRAMES))
        masses = {body: k for k, (kind, body, n) in enumerate(core) if (kind, n) == (INERTIAL, 0)}
        self._find_own_terms(masses)

    def _find_own_terms(self, masses: dict[int, int]) -> None:
        """Find the constants on which masses and centers act not only through M."""
        s = self.structure
        self._sliders = [
            (row, masses[body], body)
            for row, body in zip(s.sliders.tolist(), s.slider_bodies.tolist(), strict=True)
            if s.component[row] == 0 and body in masses
        ]
        moved = np.isin(s.element[s.bodies], self.bodies) & (s.component[s.bodies] == 0)
        self._centers, self._center_terms = s.bodies[moved], s.body_terms[moved]
        self._of_centers = np.searchsorted(self.bodies, s.element[self._centers])

    def values(self, model: mujoco.MjModel, data: mujoco.MjData) -> Array:
        """Return the constants without MuJoCo's tolerance for equal frames. Overwrites `data`."""
        return Terms(model, data, self.structure).values()

    def slopes(self, model: mujoco.MjModel, data: mujoco.MjData) -> Slopes:
        """Return the derivatives; `data` is overwritten."""
        n = len(self.constants)
        result = Slopes(np.zeros((n, len(self.core))), np.zeros((n, len(self.bodies), 3)))
        if not result.core.size:
            return result
        terms = Terms(model, data, self.structure)
        x, y, sums = terms.x, terms.y, self.structure.sum_terms
        if len(self._dofs):
            result.core[self._of_dofs] -= sums(x[:, self._dofs] * y[:, self._dofs])
        if len(self.bodies):
            self._add_inertia(result, terms)
        if len(self._frames):
            add_frame_slopes(result.core, terms, self.core, self._frames)
        return result

    def slope_changes(
        self, model: mujoco.MjModel, data: mujoco.MjData, core: Array, centers: Array
    ) -> Slopes:
        """Return the changes of `slopes` along changes of the parameters and of the centers.

        `centers` is (bodies, 3). Parameters of frames and muscles are not supported. `data` is
        overwritten.
        """
        n = len(self.constants)
        result = Slopes(np.zeros((n, len(self.core))), np.zeros((n, len(self.bodies), 3)))
        if not result.core.size:
            return result
        terms = Terms(model, data, self.structure)
        x, sums = terms.x, self.structure.sum_terms
        dx = self._moved_terms(terms, core, centers)
        if len(self._dofs):
            result.core[self._of_dofs] -= sums(2 * x[:, self._dofs] * dx[:, self._dofs])
        if not len(self.bodies):
            return result
        changes = 2 * _quadratic(terms, self.bodies, x, dx)[:, *self._numbers]
        result.core[self._of_bodies] -= sums(changes)
        for row, column, body in self._sliders:
            mass = model.body_mass[body]
            if mass != 0:
                result.core[row, column] += 2 * core[column] / mass**3
        motions = _center_motions(terms, self._centers, self._center_terms, dx)
        result.centers[self._centers, self._of_centers] = motions
        return result

    def _moved_terms(self, terms: Terms, core: Array, centers: Array) -> Array:
        """Return the changes of x, which solves M x = row: M dx = d(row) - dM x (PAR-26)."""
        x, data = terms.x, terms.data
        sides = np.zeros_like(x)
        sides[:, self._dofs] -= core[self._armature] * x[:, self._dofs]
        if len(self.bodies):
            inertia = np.zeros((len(self.bodies), 10))
            inertia[self._numbers] = core[self._inertial]
            sides -= _momentum(terms, self.bodies, inertia)
        if len(self._centers):
            moved = centers[self._of_centers]
            bodies = self.structure.element[self._centers]
            axes = data.xmat[bodies].reshape(-1, 3, 3)
            shift = np.einsum("nij,nj->ni", axes, moved)[:, :, None]
            sides[self._center_terms] += cross(terms.jacobians[bodies, :3], shift)
        return terms.solve(sides)

    def _add_inertia(self, result: Slopes, terms: Terms) -> None:
        """Add the effects of inertia: dM, and motions of centers of mass (PAR-22)."""
        changes = _quadratic(terms, self.bodies, terms.x, terms.y)[:, *self._numbers]
        result.core[self._of_bodies] -= self.structure.sum_terms(changes)
        for row, column, body in self._sliders:
            mass = terms.model.body_mass[body]
            if mass != 0:
                result.core[row, column] -= 1 / mass**2
        motions = _center_motions(terms, self._centers, self._center_terms, terms.x)
        result.centers[self._centers, self._of_centers] = motions


def _moved(terms: Terms, bodies: Indices, z: Array) -> tuple[Array, Array]:
    """Return the velocities of bodies at the joint velocities `z` (n, nv), in their own axes.

    They are angular, and linear of the origins of the bodies, (bodies, 3, n).
    """
    data = terms.data
    inward = data.xmat[bodies].reshape(-1, 3, 3).transpose(0, 2, 1)
    twist = terms.jacobians[bodies] @ z.T
    turn = twist[:, :3]
    origin = data.xpos[bodies][:, :, None]
    return inward @ turn, inward @ (twist[:, 3:] + cross(turn, origin))


def _momentum(terms: Terms, bodies: Indices, inertia: Array) -> Array:
    """Return dM x of all terms, (terms, nv), for changes (bodies, 10) of the inertias."""
    w, v = _moved(terms, bodies, terms.x)
    w2, v2 = _moved(terms, bodies, np.eye(terms.x.shape[1]))
    mass, first = inertia[:, 0, None, None], inertia[:, 1:4, None]
    moments = np.zeros((len(bodies), 3, 3))
    for k, (i, j) in enumerate(PAIRS):
        moments[:, i, j] = moments[:, j, i] = inertia[:, 4 + k]
    force = mass * v + cross(w, first)
    torque = cross(first, v) + moments @ w
    return np.asarray(np.einsum("bin,bij->nj", force, v2) + np.einsum("bin,bij->nj", torque, w2))


def _quadratic(terms: Terms, bodies: Indices, x: Array, y: Array) -> Array:
    """Return x . dM y of all terms for each of the ten numbers of the bodies' inertias."""
    w, v = _moved(terms, bodies, x)
    w2, v2 = (w, v) if y is x else _moved(terms, bodies, y)
    first = cross(v, w2) + cross(v2, w)
    second = [w[:, i] * w2[:, j] + (w[:, j] * w2[:, i] if i != j else 0) for i, j in PAIRS]
    whole = (v * v2).sum(axis=1, keepdims=True)
    return np.concatenate([whole, first, np.stack(second, axis=1)], axis=1).transpose(2, 0, 1)


def _center_motions(terms: Terms, rows: Indices, of_rows: Indices, x: Array) -> Array:
    """Return how weights of bodies change as their centers move in the body's frame, (rows, 3).

    `of_rows` are the three terms of each row.
    """
    bodies = terms.structure.element[rows]
    turn = terms.jacobians[bodies, :3] @ x[of_rows].transpose(0, 2, 1)
    axes = terms.data.xmat[bodies].reshape(-1, 3, 3)
    return np.asarray(2 / 3 * np.einsum("ni,nij->nj", axial(turn), axes))
