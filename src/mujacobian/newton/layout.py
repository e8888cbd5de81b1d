"""Names of the rows and columns of a linearization in Newton's coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import newton
import numpy as np

from mujacobian.newton.coordinates import Coordinates


@dataclass(frozen=True)
class Layout:
    """Names of the rows and columns of A, and of the columns of B.

    Attributes:
      state: slices of the rows and columns of A: "joint_q", "joint_qd", "act".
      inputs: slices of the columns of B, for the inputs that the model has: "joint_f",
        "joint_target_q", "joint_target_qd", "ctrl", "body_f".
      rows: name of each row of A, which is also the name of the column with this index.
      columns: name of each column of B.
    """

    state: dict[str, slice]
    inputs: dict[str, slice]
    rows: tuple[str, ...]
    columns: tuple[str, ...]


def make_layout(
    model: newton.Model,
    coordinates: Coordinates,
    shapes: dict[str, tuple[int, ...]],
    na: int,
    tangent: bool,
) -> Layout:
    """Return the layout of one world, whose inputs have these shapes."""
    joints = len(coordinates.kind)
    q = _joint_names(model, model.joint_q_start.numpy()[: joints + 1])
    v = _joint_names(model, model.joint_qd_start.numpy()[: joints + 1])
    blocks = {
        "joint_q": v if tangent else q,
        "joint_qd": v,
        "act": tuple(f"[{k}]" for k in range(na)),
    }
    names = {"joint_f": v, "joint_target_qd": v}
    inputs = {}
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        if name == "body_f":
            inputs[name] = tuple(f'["{model.body_label[k // 6]}"][{k % 6}]' for k in range(size))
        elif name == "joint_target_q":
            inputs[name] = q if model.use_coord_layout_targets else v
        else:
            inputs[name] = names.get(name, tuple(f"[{k}]" for k in range(size)))
    return Layout(_slices(blocks), _slices(inputs), _flat(blocks), _flat(inputs))


def _joint_names(model: newton.Model, starts: np.ndarray) -> tuple[str, ...]:
    """Return the joint of each coordinate, with the component if the joint has several."""
    names = []
    for joint, (first, last) in enumerate(pairwise(starts)):
        label = f'["{model.joint_label[joint]}"]'
        count = last - first
        names += [label] if count == 1 else [f"{label}[{k}]" for k in range(count)]
    return tuple(names)


def _slices(blocks: dict[str, tuple[str, ...]]) -> dict[str, slice]:
    ends = np.cumsum([0, *(len(names) for names in blocks.values())]).tolist()
    return {name: slice(*ends[k : k + 2]) for k, name in enumerate(blocks)}


def _flat(blocks: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(name + which for name, names in blocks.items() for which in names)
