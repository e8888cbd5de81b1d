"""Cosserat rods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, numbers, shaped
from mujacobian.errors import ArgumentError
from mujacobian.rods.description import freeze, index, instances
from mujacobian.rods.point import Frame, Point
from mujacobian.rods.quantity import nonnegative, nonnegatives, positive, spread
from mujacobian.rods.rotation import darboux, frames_along, rotations


@dataclass(frozen=True, eq=False)
class Rod:
    """An elastic rod of n edges: positions at nodes, a frame per edge whose third axis follows it.

    nodes: `(n + 1, 3)`, m.
    mass: kg, spread over the rest length and lumped at nodes.
    radius: m, of the cross section: it gives the edges their inertia about their axis.
    stretch: N, one or one per edge: energy stretch/2 l (|edge|/l - 1)^2.
    shear: N, one or one per edge: energy shear/2 l (1 - cos of the angle between edge and frame).
    bend: N m^2, `(3,)` or `(n - 1, 3)`: bending about the frames' first two axes, and twist about
        the third: energy l/2 sum bend (Darboux vector - rest)^2.
    frames: `(n, 3, 3)`; by default without twist, `rods.frames_along(nodes)`.
    rest_lengths: `(n,)`; by default as the nodes are.
    rest_curvature: `(3,)` or `(n - 1, 3)`, 1/m, Darboux vectors at rest; by default as the frames
        are. The straight rod has zeros.
    velocities: `(n + 1, 3)` or `(3,)`, angular_velocities: `(n, 3)` or `(3,)`; world axes.
    stretch_damping: N s, bend_damping: N m^2 s (one, `(3,)` or `(n - 1, 3)`): forces against rates
        of stretch and of the Darboux vector (Kelvin-Voigt).
    drag, spin_drag: damping of a node's velocity, N s/m, and of an edge's spin, N m s.
    fixed_nodes, fixed_edges: those that stay as they are. A clamp fixes a node and its edge.

    Example:
      >>> import numpy as np
      >>> from mujacobian import rods
      >>> x = np.linspace([0, 0, 0], [1, 0, 0], 11)
      >>> beam = rods.Rod(x, mass=0.1, radius=0.01, stretch=1e3, shear=1e3, bend=[1, 1, 1],
      ...                 fixed_nodes=[0], fixed_edges=[0])
      >>> world = rods.World(timestep=0.01, rods=[beam])
      >>> bool(rods.rollout(world, steps=20).positions[-1, -1, 2] < 0)
      True
    """

    nodes: ArrayLike
    mass: float
    radius: float
    stretch: ArrayLike
    shear: ArrayLike
    bend: ArrayLike
    frames: ArrayLike | None = None
    rest_lengths: ArrayLike | None = None
    rest_curvature: ArrayLike | None = None
    velocities: ArrayLike = (0, 0, 0)
    angular_velocities: ArrayLike = (0, 0, 0)
    stretch_damping: float = 0
    bend_damping: ArrayLike = 0
    drag: float = 0
    spin_drag: float = 0
    fixed_nodes: Sequence[int] = ()
    fixed_edges: Sequence[int] = ()

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        x = numbers("nodes", self.nodes)
        if x.ndim != 2 or x.shape[1] != 3 or len(x) < 2:
            raise ArgumentError(f"nodes must have shape (n + 1, 3) with n >= 1, got {x.shape}")
        set_(self, "nodes", x)
        n, lengths = len(x) - 1, np.linalg.norm(np.diff(x, axis=0), axis=1)
        _require_lengths("edge", lengths)
        for name in ("mass", "radius"):
            set_(self, name, positive(name, getattr(self, name)))
        for name, shape in (("stretch", (n,)), ("shear", (n,)), ("bend", (n - 1, 3))):
            set_(self, name, nonnegatives(name, getattr(self, name), shape))
        set_(self, "bend_damping", nonnegatives("bend_damping", self.bend_damping, (n - 1, 3)))
        for name in ("stretch_damping", "drag", "spin_drag"):
            set_(self, name, nonnegative(name, getattr(self, name)))
        given = frames_along(x) if self.frames is None else self.frames
        set_(self, "frames", rotations("frames", given, (n, 3, 3)))
        rest = (
            lengths
            if self.rest_lengths is None
            else shaped("rest_lengths", self.rest_lengths, (n,))
        )
        _require_lengths("rest length of edge", rest)
        set_(self, "rest_lengths", rest)
        curvature = self.rest_curvature
        if curvature is None:
            curvature = darboux(np.asarray(self.frames), rest)
        set_(self, "rest_curvature", spread("rest_curvature", curvature, (n - 1, 3)))
        set_(self, "velocities", spread("velocities", self.velocities, (n + 1, 3)))
        spin = spread("angular_velocities", self.angular_velocities, (n, 3))
        set_(self, "angular_velocities", spin)
        for name, count in (("fixed_nodes", n + 1), ("fixed_edges", n)):
            chosen = instances(name, getattr(self, name), int, np.integer)
            set_(self, name, [index(name, i, count) for i in chosen])
        moving = (
            np.asarray(self.velocities)[self.fixed_nodes].any()
            or np.asarray(self.angular_velocities)[self.fixed_edges].any()
        )
        if moving:
            raise ArgumentError("fixed nodes and edges must not have a velocity")
        freeze(self)

    @property
    def edges(self) -> int:
        """Number of edges."""
        return len(np.asarray(self.frames))

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of points (nodes) and of frames (edges)."""
        return self.edges + 1, self.edges

    def node(self, i: int) -> Point:
        """Node i; negative numbers count from the end."""
        return Point(self, (index("node", i, self.edges + 1),), (1.0,), None, np.zeros(3))

    def beside(self, edge: int, offset: ArrayLike = (0, 0, 0), fraction: float = 0.5) -> Point:
        """The point this fraction along an edge, plus an offset in the edge's frame."""
        k, t = index("edge", edge, self.edges), float(shaped("fraction", fraction, ()))
        return Point(self, (k, k + 1), (1 - t, t), k, offset)

    def frame(self, edge: int) -> Frame:
        """The frame of an edge."""
        return Frame(self, index("edge", edge, self.edges))

    def lumped(self) -> tuple[Array, Array]:
        """Masses of nodes `(n + 1,)` and inertias of edges `(n, 3, 3)`: solid cylinders."""
        lengths, r = np.asarray(self.rest_lengths), np.float64(self.radius)
        m = self.mass * lengths / lengths.sum()
        nodes = np.zeros(len(lengths) + 1)
        nodes[:-1] += 0.5 * m
        nodes[1:] += 0.5 * m
        with np.errstate(all="ignore"):  # the world refuses what is not finite
            across = m * (r**2 / 4 + lengths**2 / 12)
            about = np.stack([across, across, m * r**2 / 2], axis=-1)
            return nodes, about[:, :, None] * np.eye(3)


def _require_lengths(what: str, lengths: Array) -> None:
    for k in np.flatnonzero(~(lengths > 0))[:1]:
        raise ArgumentError(f"{what} {k} must be positive, got length {lengths[k]}")
