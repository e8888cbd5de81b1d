"""Export of trajectories to ParaView and other viewers of VTK files."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from mujacobian._arguments import Array
from mujacobian.errors import ArgumentError
from mujacobian.rods.description import instance
from mujacobian.rods.trajectory import Trajectory


def write_vtk(trajectory: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write a trajectory as polygonal data: one file per state, and a collection with the times.

    The rods are polylines, one cell per edge, with the radius, the tension and the strain of each
    edge; the centers of mass of bodies are vertices. All points have velocities, and the bodies
    their axes.

    Args:
      trajectory: trajectory of `rods.rollout`.
      path: name of the collection, which ends with ".pvd". The states are beside it, with numbers.
    """
    instance("trajectory", trajectory, Trajectory)
    target = Path(path)
    if target.suffix != ".pvd":
        raise ArgumentError(f"path must end with .pvd, got {target.name}")
    world, inner = trajectory.world, trajectory.internal()
    velocities = trajectory.velocities
    ends = [world.points(rod).start + rod.ends for rod in world.rods]
    lines = np.concatenate([np.zeros((0, 2), dtype=np.int64), *ends])
    bodies = np.arange(world.n_points - len(world.bodies), world.n_points, dtype=np.int64)
    radii = np.concatenate(
        [np.zeros(len(bodies)), *(np.full(r.edges, r.radius) for r in world.rods)]
    )
    collection = ElementTree.Element("VTKFile", type="Collection", version="0.1")
    entries = ElementTree.SubElement(collection, "Collection")
    digits = len(str(trajectory.steps))
    none = np.zeros(len(bodies))
    for k in range(trajectory.steps + 1):
        name = f"{target.stem}_{k:0{digits}d}.vtp"
        cells = {"radius": radii}
        cells |= {
            what: np.concatenate([none, getattr(inner, what)[k]]) for what in ("tension", "strain")
        }
        axes = np.zeros((3, world.n_points, 3))
        axes[:, bodies] = np.moveaxis(trajectory.rotations[k, world.n_edges :], 2, 0)
        points = {"velocity": velocities[k]}
        points |= {f"axis {i}": axes[i] for i in range(3)}
        tree = _state(trajectory.positions[k], points, bodies, lines, cells)
        ElementTree.ElementTree(tree).write(target.parent / name, xml_declaration=True)
        ElementTree.SubElement(entries, "DataSet", timestep=repr(k * world.timestep), file=name)
    ElementTree.ElementTree(collection).write(target, xml_declaration=True)


def _state(
    positions: Array,
    points: dict[str, Array],
    bodies: NDArray[np.int64],
    lines: NDArray[np.int64],
    cells: dict[str, Array],
) -> ElementTree.Element:
    """Return the polygonal data of one state."""
    root = ElementTree.Element("VTKFile", type="PolyData", version="0.1")
    piece = ElementTree.SubElement(
        ElementTree.SubElement(root, "PolyData"),
        "Piece",
        NumberOfPoints=str(len(positions)),
        NumberOfVerts=str(len(bodies)),
        NumberOfLines=str(len(lines)),
    )
    for group, arrays in (("PointData", points), ("CellData", cells)):
        parent = ElementTree.SubElement(piece, group)
        for name, values in arrays.items():
            _append(parent, name, values)
    _append(ElementTree.SubElement(piece, "Points"), "positions", positions)
    for group, nodes in (("Verts", bodies[:, None]), ("Lines", lines)):
        parent = ElementTree.SubElement(piece, group)
        _append(parent, "connectivity", nodes.ravel())
        _append(parent, "offsets", nodes.shape[1] * np.arange(1, len(nodes) + 1))
    return root


def _append(parent: ElementTree.Element, name: str, values: Array | NDArray[np.int64]) -> None:
    """Append an array of numbers or vectors as text."""
    is_real = np.issubdtype(values.dtype, np.floating)
    element = ElementTree.SubElement(
        parent,
        "DataArray",
        type="Float64" if is_real else "Int64",
        Name=name,
        NumberOfComponents=str(values.shape[1] if values.ndim == 2 else 1),
        format="ascii",
    )
    element.text = " ".join(map(repr, values.ravel().tolist()))
