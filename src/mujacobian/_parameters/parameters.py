"""Physical parameters of a model as a vector, for gradients and identification."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian import _notices
from mujacobian._arguments import Array, require_data, require_model, shaped
from mujacobian._parameters.derived import (
    Scratch,
    depends_on,
    derived_constants,
    structure_key,
    write_constants,
)
from mujacobian._parameters.derived_slopes import DerivedSlopes
from mujacobian._parameters.edit import write_entries
from mujacobian._parameters.entries import Entry, Item, expand, name_of, read, refuse_overlap
from mujacobian._parameters.fields import FIELDS, KINDS, QUATERNIONS
from mujacobian._parameters.inertia import (
    from_log_cholesky,
    inertial_slope_changes,
    inertial_slopes,
    log_cholesky_slope_changes,
    restore_derived,
)
from mujacobian._summary import describe, html_table
from mujacobian._threads import borrowed
from mujacobian.errors import ArgumentError, ArgumentTypeError

_INERTIAL, _INERTIAL_FRAME = KINDS["inertial"], KINDS["inertial_frame"]
_INERTIA_FIELDS = ("body_mass", "body_ipos", "body_inertia", "body_log_cholesky")

SHOWN = 8  # values that are printed


class Parameters:
    """Selected numbers of a model as one vector.

    Args:
      model: the model; it is not changed.
      items: fields, or pairs of a field and one or several elements, by name or index. A field
        alone stands for all its elements; for frictionloss and limits, for those that have any.
        The elements of dof fields and of `qpos_spring` are joints.
      derived: "recompute" or "hold". `mj_setConst` derives constants from masses, inertias,
        armature and frames: dof_invweight0, body_invweight0, tendon_invweight0, actuator_acc0 and
        others. They scale the regularization of every constraint and the forces of some muscles.
        By default, `apply` recomputes them and derivatives include them, as if the model had been
        compiled with these values. "hold" keeps them, as in a program that writes into a model and
        does not call `mj_setConst`.

    The fields are those of `mujoco.MjModel`:

    - body_mass, body_ipos, body_inertia, body_pos, body_quat
    - jnt_pos, jnt_axis, jnt_stiffness, qpos_spring; jnt_range and jnt_solref of slides and hinges
    - dof_damping, dof_armature, dof_frictionloss
    - actuator_gainprm and actuator_biasprm: the largest force of muscles or its scale, and the
      first three components of other actuators
    - tendon_stiffness, tendon_damping, tendon_lengthspring, tendon_frictionloss
    - geom_pos, geom_quat, geom_friction, geom_solref, geom_solimp; geom_size of spheres, capsules,
      cylinders and boxes
    - `gravity`
    - `body_log_cholesky`: ten numbers without constraints that describe all physically possible
      inertias of a body (the upper Cholesky factor of its pseudo-inertia, with the logarithms of
      the diagonal)

    Quaternions and axes are scaled to unit length.

    Example:
      >>> import mujoco, mujacobian
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body name='arm'><joint name='j' damping='.1'/>"
      ...     "<geom size='.1' pos='0 0 -1'/></body></worldbody></mujoco>")
      >>> p = mujacobian.Parameters(model, [("body_mass", "arm"), ("dof_damping", "j")])
      >>> p.names
      ('body_mass["arm"]', 'dof_damping["j"]')
      >>> float(p.values[1])
      0.1
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        items: Iterable[Item],
        *,
        derived: Literal["recompute", "hold"] = "recompute",
    ) -> None:
        require_model(model)
        if isinstance(items, str):
            raise ArgumentTypeError(f'items must be a list of fields, such as ["{items}"]')
        if derived not in ("recompute", "hold"):
            raise ArgumentError(f'derived must be "recompute" or "hold", got {derived!r}')
        if not isinstance(items, Iterable):
            raise ArgumentTypeError(f"items must be a list of fields, got {items!r}")
        self.model = copy.copy(model)
        _notices.share(model, self.model)
        self._entries = tuple(e for item in items for e in expand(model, item))
        repeated = [e for k, e in enumerate(self._entries) if e in self._entries[:k]]
        if repeated:
            raise ArgumentError(f"{name_of(model, repeated[0])} is asked for twice")
        refuse_overlap(self.model, self._entries)
        self._bodies = self._elements(*_INERTIA_FIELDS)
        self._turned = [
            (field, element) for field in QUATERNIONS for element in self._elements(field)
        ]
        core: list[tuple[int, int, int]] = []
        for body in self._bodies:
            core += [(_INERTIAL, body, k) for k in range(10)]
        for field, element in self._turned:
            core += [(KINDS[QUATERNIONS[field]], element, k) for k in range(3)]
        for entry in self._entries:
            if kind := FIELDS[entry.field].kind:
                row = entry.element if entry.field == "qpos_spring" else entry.row
                core.append((KINDS[kind], row, max(0, entry.component)))
        self._raw = core
        self._recomputes = derived == "recompute" and depends_on(core)
        self._frames = self._elements("body_ipos", "body_log_cholesky")
        # all models that these parameters are bound to share both
        self._known: dict[bytes, DerivedSlopes] = {}
        self._scratch = Scratch()

    @cached_property
    def _derived(self) -> DerivedSlopes:
        """The derived constants that steps of the model read, and their derivatives.

        Most models that the parameters are bound to have the same list of constants, so that it is
        kept.
        """
        key = structure_key(self.model) if self._recomputes else b""
        if key not in self._known:
            constants = derived_constants(self.model, self._raw) if self._recomputes else []
            self._known[key] = DerivedSlopes(self.model, constants, self._raw)
        return self._known[key]

    @cached_property
    def core(self) -> list[tuple[int, int, int]]:
        """The parameters of the core: kind, element, component."""
        frames = [(_INERTIAL_FRAME, body, 0) for body in self._frames]
        return [*self._raw, *self._derived.constants, *frames]

    def of_model(self, model: mujoco.MjModel) -> Parameters:
        """Return the same parameters for another model with the same elements."""
        here = copy.copy(self)
        here.model = model
        for cached in ("names", "core", "_derived"):
            here.__dict__.pop(cached, None)
        return here

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        rows = zip(self.names, self.values, self.units, strict=True)
        facts = [
            f"{name} {value:.6g} {unit}" for name, value, unit in itertools.islice(rows, SHOWN)
        ]
        if len(self) > SHOWN:
            facts.append(f"and {len(self) - SHOWN} more")
        return describe(f"Parameters: {len(self)} numbers", facts)

    def _repr_html_(self) -> str:
        entries = zip(self.names, self.values, self.units, strict=True)
        rows = [(name, f"{value:.6g}", unit) for name, value, unit in entries]
        return html_table(f"Parameters: {len(self)} numbers", ("name", "value", "unit"), rows)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers: field, element and component."""
        return tuple(name_of(self.model, e) for e in self._entries)

    @property
    def units(self) -> tuple[str, ...]:
        """The units; two if they depend on the type of the joint (translation or rotation)."""
        return tuple(FIELDS[e.field].unit for e in self._entries)

    @property
    def lower(self) -> Array:
        """The least values that make sense, -inf if there is none."""
        return np.array([FIELDS[e.field].lower for e in self._entries])

    @property
    def upper(self) -> Array:
        """The largest values that make sense, inf if there is none."""
        return np.array([FIELDS[e.field].upper for e in self._entries])

    @property
    def values(self) -> Array:
        """The numbers in the model."""
        return np.array([read(self.model, e) for e in self._entries], dtype=np.float64)

    def check(self, values: ArrayLike) -> Array:
        """Return `values` as a vector; raise if one is not finite or below its lower bound."""
        vector = shaped("values", values, (len(self),), finite=False)
        lower = self.lower
        for k in np.flatnonzero(~(np.isfinite(vector) & (vector >= lower)))[:1]:
            name, value = self.names[k], vector[k]
            if not np.isfinite(value):
                raise ArgumentError(f"{name} must be finite, got {value}")
            raise ArgumentError(f"{name} must be at least {lower[k]:g}, got {value:g}")
        return vector

    def apply(self, values: ArrayLike) -> mujoco.MjModel:
        """Return a copy of the model with these values.

        Elements whose values are equal to the model's stay bitwise the same. No geom, site, camera
        or light moves with an inertial frame.
        """
        vector = self.check(values)
        model = copy.copy(self.model)
        _notices.share(self.model, model)
        edited = vector != self.values
        entries = [e for e, new in zip(self._entries, edited, strict=True) if new]

        bodies = dict.fromkeys(e.element for e in entries if e.field == "body_log_cholesky")
        inertias = {b: vector[self._places("body_log_cholesky", b)] for b in bodies}
        write_entries(model, entries, vector[edited], inertias)
        if self._recomputes:
            with borrowed(self.model) as data:
                if not self._scratch.recompute(model, data):
                    values = self._derived.values(model, data)
                    write_constants(model, self._derived.constants, values)
        elif entries:
            restore_derived(model)
        return model

    def jacobian(self, values: ArrayLike, applied: mujoco.MjModel | None = None) -> Array:
        """Return the derivatives of the core's parameters by the vector, (len(core), len(self)).

        `applied` is the model with these values, if the caller has it already.
        """
        vector = self.check(values)
        model = self.apply(vector) if applied is None else applied
        result = self._inertial_rows(lambda e: self._inertial_slopes(model, vector, e))
        row = 10 * len(self._bodies)
        for field, element in self._turned:
            w, x, y, z = getattr(model, field)[element]
            columns = self._places(field, element)
            turn = np.array([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])
            result[row : row + 3, columns] = 2 / np.linalg.norm(vector[columns]) * turn
            row += 3
        for column, e in enumerate(self._entries):
            if FIELDS[e.field].kind:
                result[row, column] = 1
                row += 1
        return np.concatenate(
            [result, self._derived_chain(model, result), np.zeros((len(self._frames), len(self)))]
        )

    def curve(
        self,
        values: Array,
        direction: Array,
        cotangent: Array,
        applied: mujoco.MjModel,
        jacobian: Array,
    ) -> Array:
        """Return the change of `cotangent @ jacobian` along a direction of the vector.

        This is the second derivative of the core's parameters, contracted with a cotangent
        (PAR-26). The core raises for quaternions and muscles, for which it is not defined here.
        `jacobian` is `jacobian(values, applied)`, which callers have already.
        """
        raw = len(self._raw)
        changes = self._inertial_rows(lambda e: self._slope_changes(applied, values, direction, e))
        result = cotangent[:raw] @ changes
        constants = cotangent[raw : raw + len(self._derived.constants)]
        if not constants.any():
            return np.asarray(result)
        chain = jacobian[:raw]
        centers = self._center_chain(applied, chain)
        bent = self._center_changes(applied, chain, changes, direction)
        with borrowed(self.model) as data:
            second = self._derived.slope_changes(
                applied, data, chain @ direction, centers @ direction
            )
            result += constants @ second.core @ chain
            result += np.einsum("i,ibj,bjk->k", constants, second.centers, centers)
            if changes.any() or bent.any():  # masses and armatures are linear
                first = self._derived.slopes(applied, data)
                result += constants @ first.core @ changes
                result += np.einsum("i,ibj,bjk->k", constants, first.centers, bent)
        return np.asarray(result)

    def _inertial_rows(self, slopes: Callable[[Entry], Array]) -> Array:
        """Return rows of the raw parameters, filled with `slopes` of a body's ten numbers."""
        result = np.zeros((len(self._raw), len(self)))
        known: dict[tuple[str, int], Array] = {}
        for column, e in enumerate(self._entries):
            if e.field not in _INERTIA_FIELDS:
                continue
            if (e.field, e.element) not in known:
                known[e.field, e.element] = slopes(e)
            first = 10 * self._bodies.index(e.element)
            of_field = known[e.field, e.element]
            result[first : first + 10, column] = of_field[:, max(0, e.component)]
        return result

    def _derived_chain(self, model: mujoco.MjModel, chain: Array) -> Array:
        """Return the derivatives of the derived constants, given those of the raw parameters."""
        with borrowed(self.model) as data:
            require_data("applied", model, data)
            if not self._derived.constants:
                return np.zeros((0, len(self)))
            slopes = self._derived.slopes(model, data)
        # not products of BLAS: to start its threads takes longer than a product
        result = np.einsum("ij,jk->ik", slopes.core, chain)
        if self._frames:
            result += np.einsum("ibj,bjk->ik", slopes.centers, self._center_chain(model, chain))
        return np.asarray(result)

    def _center_chain(self, model: mujoco.MjModel, chain: Array) -> Array:
        """Return the derivatives of centers of mass by the vector, (bodies, 3, len(self)).

        `chain` contains the derivatives of mass and first moments, from which those of log-Cholesky
        coordinates follow. A body without mass has no such coordinates.
        """
        bodies = self._derived.bodies.tolist()
        result = np.zeros((len(bodies), 3, len(self)))
        for column, e in enumerate(self._entries):
            if e.field == "body_ipos":
                result[bodies.index(e.element), e.component, column] = 1
            elif e.field == "body_log_cholesky":
                first = 10 * self._bodies.index(e.element)
                mass, *moments = chain[first : first + 4, column]
                center = model.body_ipos[e.element]
                change = (moments - mass * center) / model.body_mass[e.element]
                result[bodies.index(e.element), :, column] = change
        return result

    def _center_changes(
        self, model: mujoco.MjModel, chain: Array, changes: Array, direction: Array
    ) -> Array:
        """Return the changes of `_center_chain` as `chain` changes by `changes`."""
        bodies = self._derived.bodies.tolist()
        result = np.zeros((len(bodies), 3, len(self)))
        for column, e in enumerate(self._entries):
            if e.field != "body_log_cholesky":
                continue
            rows = slice(10 * self._bodies.index(e.element), 10 * self._bodies.index(e.element) + 4)
            mass, center = model.body_mass[e.element], model.body_ipos[e.element]
            along = chain[rows] @ direction
            moved = (along[1:] - along[0] * center) / mass
            slope, bent = chain[rows, column], changes[rows, column]
            first = slope[1:] - slope[0] * center
            second = bent[1:] - bent[0] * center - slope[0] * moved
            result[bodies.index(e.element), :, column] = (second - along[0] / mass * first) / mass
        return result

    def _slope_changes(
        self, model: mujoco.MjModel, vector: Array, direction: Array, e: Entry
    ) -> Array:
        """Return the changes of `_inertial_slopes` along a direction of the vector."""
        places = self._places(e.field, e.element)
        if e.field == "body_log_cholesky":
            return log_cholesky_slope_changes(vector[places], direction[places])
        mass = direction[self._places("body_mass", e.element)].sum()
        com = np.zeros(3)
        for k in self._places("body_ipos", e.element):
            com[self._entries[k].component] = direction[k]
        return inertial_slope_changes(model, e.element, e.field, float(mass), com)

    def _inertial_slopes(self, model: mujoco.MjModel, vector: Array, e: Entry) -> Array:
        """Return the derivatives of a body's ten numbers by the components of a field."""
        if e.field == "body_log_cholesky":
            return from_log_cholesky(vector[self._places(e.field, e.element)])[1]
        return inertial_slopes(model, e.element, e.field)

    def _elements(self, *fields: str) -> tuple[int, ...]:
        """Return the elements, each once, that have one of the fields in the vector."""
        return tuple(dict.fromkeys(e.element for e in self._entries if e.field in fields))

    def _places(self, field: str, element: int) -> list[int]:
        """Return the indices of an element's field in the vector."""
        return [k for k, e in enumerate(self._entries) if (e.field, e.element) == (field, element)]
