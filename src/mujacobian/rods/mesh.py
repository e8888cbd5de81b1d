"""Solids with a surface of triangles, for contacts."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian import _core
from mujacobian._arguments import Array, numbers
from mujacobian.errors import ArgumentError, MissingPackageError
from mujacobian.rods.description import freeze
from mujacobian.rods.quantity import positive
from mujacobian.rods.shape import LARGEST_GRID, Shape

CELLS = 48  # along the longest side of a mesh, by default
RIM = 2  # cells that the spline needs beyond its range


@dataclass(frozen=True, eq=False)
class Mesh(Shape):
    """A solid that is bounded by triangles.

    The signed distance is sampled on a grid and interpolated by cubic splines (ROD-53), so that it
    has continuous second derivatives. Edges and corners are rounded within about a cell, and walls
    must be thicker than two cells. The sampling takes place once, when the mesh is made.

    Attributes:
      vertices: `(n, 3)`, m.
      faces: `(m, 3)`, indices of the vertices of each triangle, counterclockwise from outside. The
        surface must be closed.
      cell: spacing of the grid, m; by default 1/48 of the longest side of the mesh.
      margin: distance around the mesh that the grid covers, m; by default four cells. Radii of
        contacts must not be larger.
      origin: `(3,)`, m, first point of the grid.
      distances: signed distances at the points of the grid, m; read-only.

    Example:
      >>> from mujacobian import rods
      >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
      >>> faces = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
      >>> rods.Mesh(corners, faces, cell=0.05).distances.shape
      (33, 33, 33)
    """

    vertices: ArrayLike
    faces: ArrayLike
    cell: float | None = None
    margin: float | None = None
    origin: Array = field(init=False, repr=False)
    distances: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        x, f = checked_surface(self.vertices, self.faces)
        set_(self, "vertices", x)
        set_(self, "faces", f)
        low, high = x.min(axis=0), x.max(axis=0)
        cell = (high - low).max() / CELLS if self.cell is None else positive("cell", self.cell)
        margin = 4 * cell if self.margin is None else positive("margin", self.margin)
        set_(self, "cell", float(cell))
        set_(self, "margin", float(margin))
        rim = int(np.ceil(margin / cell)) + RIM
        counts = np.ceil((high - low) / cell).astype(np.int64) + 2 * rim + 1
        if counts.astype(np.float64).prod() > LARGEST_GRID:
            raise ArgumentError(f"cell {cell:g} is too small for a mesh of size {high - low}")
        set_(self, "origin", low - rim * cell)
        samples = np.empty(counts)
        _core.rods_signed_distances_into(
            vertices=x,
            faces=f,
            origin=self.origin,
            cell=cell,
            counts=counts.astype(np.int32),
            distances=samples,
        )
        set_(self, "distances", samples)
        freeze(self)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        scale: float = 1,
        cell: float | None = None,
        margin: float | None = None,
    ) -> Mesh:
        """Return the mesh in a file, such as STL, OBJ or PLY, which trimesh reads.

        Args:
          path: name of the file.
          scale: factor of the coordinates, such as 0.001 for millimeters; by default 1.
          cell: see `Mesh`.
          margin: see `Mesh`.
        """
        try:
            import trimesh
        except ImportError as error:
            raise MissingPackageError(
                "Mesh.load needs trimesh: pip install 'mujacobian[meshes]'"
            ) from error
        made = trimesh.load_mesh(os.fspath(path))
        vertices = positive("scale", scale) * np.asarray(made.vertices)
        return cls(vertices, np.asarray(made.faces), cell, margin)

    def add_to(self, model: _core.RodModel) -> int:  # noqa: D102
        counts = np.array(self.distances.shape, dtype=np.int32)
        cell, margin = (float(np.asarray(size)) for size in (self.cell, self.margin))
        return model.add_grid(self.origin, cell, counts, self.distances, margin)


def checked_surface(vertices: ArrayLike, faces: ArrayLike) -> tuple[Array, NDArray[np.int32]]:
    """Return vertices and faces of a closed surface, or raise if it is open or inside out."""
    x, given = numbers("vertices", vertices), np.asarray(faces)
    if x.ndim != 2 or x.shape[1] != 3 or len(x) < 4:
        raise ArgumentError(f"vertices must have shape (n, 3) with n >= 4, got {x.shape}")
    if given.ndim != 2 or given.shape[1] != 3 or not np.issubdtype(given.dtype, np.integer):
        raise ArgumentError(f"faces must be integers (m, 3), got {given.dtype} {given.shape}")
    if len(given) < 4 or given.min() < 0 or given.max() >= len(x):
        raise ArgumentError(f"faces must be at least four, with indices below {len(x)}")
    f = np.ascontiguousarray(given, dtype=np.int32)
    corners = x[f]
    areas = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    sizes = np.linalg.norm(areas, axis=1)
    if not sizes.min() > 0:
        raise ArgumentError(f"face {int(np.argmin(sizes))} has no area")
    # each edge occurs once in each direction
    edges = np.concatenate([f[:, [0, 1]], f[:, [1, 2]], f[:, [2, 0]]]).astype(np.int64)
    directed = edges[:, 0] * len(x) + edges[:, 1]
    values, counts = np.unique(directed, return_counts=True)
    opposite = edges[:, 1] * len(x) + edges[:, 0]
    alone = ~np.isin(directed, opposite) | (counts[np.searchsorted(values, directed)] > 1)
    if alone.any():
        a, b = edges[int(np.argmax(alone))]
        raise ArgumentError(
            f"the surface is not closed at the edge between the vertices {a} and {b}: each edge "
            "must belong to two faces of the same orientation"
        )
    if np.einsum("fi,fi->", corners[:, 0], areas) < 0:
        raise ArgumentError("faces are clockwise from outside: reverse their order")
    return x, f
