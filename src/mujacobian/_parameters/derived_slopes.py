"""Derivatives of the constants of `mj_setConst` at `qpos0`: see docs/derivations/parameters.md."""

from __future__ import annotations

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


class DerivedSlopes:
    """Derivatives of derived constants by the core's parameters, for any numbers in a model."""

    def __init__(self, model: mujoco.MjModel, constants: list[Raw], core: list[Raw]) -> None:
        self.constants, self.core = constants, core
        self.structure = Structure(model, constants)
        kinds, elements, components = np.array(core, dtype=np.intp).reshape(-1, 3).T
        rows = self.structure.with_terms
        armature, inertial = (np.flatnonzero(kinds == kind) for kind in (ARMATURE, INERTIAL))
        self._dofs, self._of_dofs = elements[armature], np.ix_(rows, armature)
        self._bodies, places = np.unique(elements[inertial], return_inverse=True)
        self._numbers = places, components[inertial]
        self._of_bodies = np.ix_(rows, inertial)
        self._frames = np.flatnonzero(np.isin(kinds, FRAMES))
        self._find_centers({raw: k for k, raw in enumerate(core) if raw[0] == INERTIAL})

    def _find_centers(self, columns: dict[Raw, int]) -> None:
        """Find the constants on which mass and first moments act not only through M."""
        s = self.structure
        self._sliders = [
            (row, columns[INERTIAL, body, 0], body)
            for row, body in zip(s.sliders.tolist(), s.slider_bodies.tolist(), strict=True)
            if s.component[row] == 0 and (INERTIAL, body, 0) in columns
        ]
        moved = np.isin(s.element[s.bodies], self._bodies) & (s.component[s.bodies] == 0)
        self._centers, self._center_terms = s.bodies[moved], s.body_terms[moved]
        found = [
            (k, number, row, columns[INERTIAL, body, number])
            for k, (row, body) in enumerate(
                zip(self._centers.tolist(), s.element[self._centers].tolist(), strict=True)
            )
            for number in range(4)
            if (INERTIAL, body, number) in columns
        ]
        table = np.array(found, dtype=np.intp).reshape(-1, 4).T
        self._center_numbers = table[0], table[1]
        self._center_places = table[2], table[3]

    def values(self, model: mujoco.MjModel, data: mujoco.MjData) -> Array:
        """Return the constants without MuJoCo's tolerance for equal frames. Overwrites `data`."""
        return Terms(model, data, self.structure).values()

    def slopes(self, model: mujoco.MjModel, data: mujoco.MjData) -> Array:
        """Return the derivatives, (constants, parameters); `data` is overwritten."""
        result = np.zeros((len(self.constants), len(self.core)))
        if not result.size:
            return result
        terms = Terms(model, data, self.structure)
        x, y, sums = terms.x, terms.y, self.structure.sum_terms
        if len(self._dofs):
            result[self._of_dofs] -= sums(x[:, self._dofs] * y[:, self._dofs])
        if len(self._bodies):
            self._add_inertia(result, terms)
        if len(self._frames):
            add_frame_slopes(result, terms, self.core, self._frames)
        return result

    def center_slopes(
        self, model: mujoco.MjModel, data: mujoco.MjData, centers: list[tuple[int, int]]
    ) -> Array:
        """Return the derivatives by positions of centers without mass, (constants, centers).

        A center is a body and a component. Without mass, only the points move at which MuJoCo
        measures the weights of bodies. `data` is overwritten.
        """
        result = np.zeros((len(self.constants), len(centers)))
        motions = _center_motions(
            Terms(model, data, self.structure), self._centers, self._center_terms
        )
        for column, (body, component) in enumerate(centers):
            of_body = self.structure.element[self._centers] == body
            result[self._centers[of_body], column] = motions[of_body, component]
        return result

    def _add_inertia(self, result: Array, terms: Terms) -> None:
        """Add the effects of inertia: dM, and motions of centers of mass (PAR-22)."""
        changes = _quadratic(terms, self._bodies)[:, *self._numbers]
        result[self._of_bodies] -= self.structure.sum_terms(changes)
        for row, column, body in self._sliders:
            mass = terms.model.body_mass[body]
            if mass != 0:
                result[row, column] -= 1 / mass**2
        centers = _center_changes(terms, self._centers, self._center_terms)
        result[self._center_places] += centers[self._center_numbers]


def _quadratic(terms: Terms, bodies: Indices) -> Array:
    """Return x . dM y of all terms for each of the ten numbers of the bodies' inertias."""
    data, jacobians = terms.data, terms.jacobians[bodies]
    inward = data.xmat[bodies].reshape(-1, 3, 3).transpose(0, 2, 1)
    origin = data.xpos[bodies][:, :, None]

    def moved(z: Array) -> tuple[Array, Array]:
        twist = jacobians @ z.T
        turn = twist[:, :3]
        return inward @ turn, inward @ (twist[:, 3:] + cross(turn, origin))

    w, v = moved(terms.x)
    w2, v2 = (w, v) if terms.y is terms.x else moved(terms.y)
    first = cross(v, w2) + cross(v2, w)
    second = [w[:, i] * w2[:, j] + (w[:, j] * w2[:, i] if i != j else 0) for i, j in PAIRS]
    whole = (v * v2).sum(axis=1, keepdims=True)
    return np.concatenate([whole, first, np.stack(second, axis=1)], axis=1).transpose(2, 0, 1)


def _center_motions(terms: Terms, rows: Indices, of_rows: Indices) -> Array:
    """Return how weights of bodies change as their centers move in the body's frame, (rows, 3).

    `of_rows` are the three terms of each row.
    """
    bodies = terms.structure.element[rows]
    turn = terms.jacobians[bodies, :3] @ terms.x[of_rows].transpose(0, 2, 1)
    axes = terms.data.xmat[bodies].reshape(-1, 3, 3)
    return np.asarray(2 / 3 * np.einsum("ni,nij->nj", axial(turn), axes))


def _center_changes(terms: Terms, rows: Indices, of_rows: Indices) -> Array:
    """Return how weights of bodies change as mass and first moments move their centers, (rows, 4).

    A body without mass has no first moments: see `center_slopes`.
    """
    model, bodies = terms.model, terms.structure.element[rows]
    along = _center_motions(terms, rows, of_rows)
    mass = model.body_mass[bodies][:, None]
    whole = -(along * model.body_ipos[bodies]).sum(axis=1, keepdims=True)
    scale = np.divide(1, mass, out=np.zeros_like(mass), where=mass != 0)
    return np.asarray(scale * np.concatenate([whole, along], axis=1))
