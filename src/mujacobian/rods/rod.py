"""Cosserat rods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian._arguments import Array, numbers, shaped
from mujacobian.errors import ArgumentError
from mujacobian.rods.description import Description, flag, freeze, index, instance, instances
from mujacobian.rods.point import Frame, Point
from mujacobian.rods.quantity import nonnegative, nonnegatives, positive, spread
from mujacobian.rods.rotation import darboux, frames_along, require_measure, rotations
from mujacobian.rods.section import Section
from mujacobian.rods.segment import Segment


@dataclass(frozen=True, eq=False)
class Rod(Description):
    """An elastic rod with n edges.

    It has a position at each node and a frame at each edge. The third axis of the frame follows the
    edge. l is the rest length of an edge, or the mean rest length of two adjacent edges.

    Attributes:
      nodes: `(n + 1, 3)`, m, initial positions of the nodes; `(n, 3)` if the rod is closed.
      mass: total mass, kg, distributed along the rest length and lumped at the nodes.
      radius: radius of the cross section, m, for the inertia of the edges and for contacts of
        `segments`.
      stretch: stiffness in N, a number or `(n,)`; the energy is stretch/2 l (|edge|/l - 1)^2.
      shear: stiffness in N, a number or `(n,)`; the energy is shear/2 l (1 - cos a) with the angle
        a between the edge and the third axis of its frame.
      bend: stiffness in N m^2, `(3,)` or `(bends, 3)`, against bending about the first two axes and
        twist about the third; the energy is l/2 sum_i bend_i (Darboux vector - rest)_i^2. There is
        a bend at a clamped start, at each inner node, and at a clamped end, in this order.
      frames: `(n, 3, 3)`, initial frames; by default `rods.frames_along(nodes)`, without twist.
      rest_lengths: `(n,)`, m; by default the initial lengths.
      rest_curvature: `(3,)` or `(bends, 3)`, 1/m, Darboux vectors at rest; by default those of the
        initial frames, and zero at clamped ends. They are zero for a rod that is straight at rest.
      velocities: `(3,)` or one for each node, m/s, initial velocities of the nodes in world axes;
        by default zero.
      angular_velocities: `(3,)` or `(n, 3)`, rad/s, initial angular velocities of the edges in
        world axes; by default zero.
      stretch_damping: Kelvin-Voigt damping of the stretch rate, N s; by default 0.
      bend_damping: Kelvin-Voigt damping of the rate of the Darboux vector, N m^2 s, a number,
        `(3,)` or `(bends, 3)`; by default 0.
      drag: damping of the velocity of each node, N s/m; by default 0.
      spin_drag: damping of the angular velocity of each edge, N m s; by default 0.
      fixed_nodes: indices of nodes that keep their initial position; by default none.
      fixed_edges: indices of edges that keep their initial orientation; by default none.
      clamp_start: whether a wall holds the first node and, by half a bend, the first edge (ROD-38);
        the axes of the wall are `frames[0]`. By default False. Fixing the node and its edge instead
        makes the rod stiffer, by half an edge that does not bend.
      clamp_end: the same for the last node and the last edge; by default False.
      gyration: `(2,)`, m^2, second moments of area of the cross section about its first two axes,
        divided by its area, which determine the inertia of the edges; by default radius^2 / 4.
      closed: whether the last edge leads back to the first node, and is bent against the first
        edge; by default False. The last bend is that at the first node.
      bending: measure of the angles between adjacent edges: "sine", the default, or "tangent", 2
        tan(angle / 2), whose energy does not soften above 90 degrees.

    Example:
      >>> import numpy as np
      >>> from mujacobian import rods
      >>> x = np.linspace([0, 0, 0], [1, 0, 0], 11)
      >>> beam = rods.Rod(x, mass=0.1, radius=0.01, stretch=1e3, shear=1e3, bend=[1, 1, 1],
      ...                 clamp_start=True)
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
    clamp_start: bool = False
    clamp_end: bool = False
    bending: str = "sine"
    gyration: ArrayLike | None = None
    closed: bool = False

    def __post_init__(self) -> None:
        # nodes and lengths of edges
        set_ = object.__setattr__
        x = numbers("nodes", self.nodes)
        if x.ndim != 2 or x.shape[1] != 3 or len(x) < 2:
            raise ArgumentError(f"nodes must have shape (n + 1, 3) with n >= 1, got {x.shape}")
        set_(self, "nodes", x)
        for name in ("clamp_start", "clamp_end", "closed"):
            set_(self, name, flag(name, getattr(self, name)))
        if self.closed and (len(x) < 3 or self.clamp_start or self.clamp_end):
            raise ArgumentError("a closed rod needs at least three nodes, and has no clamped ends")
        lengths = np.linalg.norm(self.along(x), axis=1)
        count, n = len(x), len(lengths)
        _require_lengths("edge", lengths)
        # masses, stiffnesses and damping
        for name in ("mass", "radius"):
            set_(self, name, positive(name, getattr(self, name)))
        bends = n - 1 + self.closed + self.clamp_start + self.clamp_end
        for name in ("stretch", "shear"):
            set_(self, name, nonnegatives(name, getattr(self, name), (n,)))
        for name in ("bend", "bend_damping"):
            set_(self, name, nonnegatives(name, getattr(self, name), (bends, 3)))
        for name in ("stretch_damping", "drag", "spin_drag"):
            set_(self, name, nonnegative(name, getattr(self, name)))
        if self.gyration is not None:
            set_(self, "gyration", nonnegatives("gyration", self.gyration, (2,)))
        # frames and rest shape
        given = self.frames
        if given is None:
            given = frames_along(np.concatenate([x, x[:1]]) if self.closed else x)
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
            around = [*range(n), *range(self.closed)]  # edges, for a closed rod also the first
            measure = require_measure(self.bending)
            inner = darboux(np.asarray(self.frames)[around], rest[around], measure)
            curvature = np.pad(inner, ((self.clamp_start, self.clamp_end), (0, 0)))
        set_(self, "rest_curvature", spread("rest_curvature", curvature, (bends, 3)))
        # velocities
        set_(self, "velocities", spread("velocities", self.velocities, (count, 3)))
        spin = spread("angular_velocities", self.angular_velocities, (n, 3))
        set_(self, "angular_velocities", spin)
        # fixed nodes and edges
        for name, most in (("fixed_nodes", count), ("fixed_edges", n)):
            chosen = instances(name, getattr(self, name), int, np.integer)
            set_(self, name, [index(name, i, most) for i in chosen])
        for name, node, edge in (("clamp_start", 0, 0), ("clamp_end", n, n - 1)):
            if not getattr(self, name):
                continue
            if edge in self.fixed_edges:
                raise ArgumentError(f"with {name}, edge {edge} must not be fixed, too")
            set_(self, "fixed_nodes", sorted({*self.fixed_nodes, node}))
        moving = (
            np.asarray(self.velocities)[self.fixed_nodes].any()
            or np.asarray(self.angular_velocities)[self.fixed_edges].any()
        )
        if moving:
            raise ArgumentError("fixed nodes and edges must not have a velocity")
        freeze(self)

    @classmethod
    def from_material(
        cls,
        nodes: ArrayLike,
        section: Section,
        *,
        E: float,
        nu: float,
        density: float,
        **options: Any,  # noqa: ANN401
    ) -> Rod:
        """Return a rod of an elastic material (ROD-55).

        The frames of edges are the axes of the cross section. The stretch stiffness is E A, the
        shear stiffness 2 k G A with the coefficient k of Timoshenko beams, and the bending and
        twist stiffnesses are E I1, E I2 and G J. The mass follows from the length at rest.

        Args:
          nodes: see `Rod`.
          section: cross section.
          E: Young's modulus, Pa.
          nu: Poisson's ratio, above -1 and at most 0.5.
          density: density, kg/m^3.
          **options: other arguments of `Rod`, such as `frames` or `clamp_start`.

        Example:
          >>> from mujacobian import rods
          >>> steel = {"E": 210e9, "nu": 0.3, "density": 7850}
          >>> disk = rods.Section.circle(radius=1e-3)
          >>> wire = rods.Rod.from_material([[0, 0, 0], [1, 0, 0]], disk, **steel)
          >>> round(wire.mass, 5)
          0.02466
        """
        instance("section", section, Section)
        E, ratio = positive("E", E), float(shaped("nu", nu, ()))
        if not -1 < ratio <= 0.5:
            raise ArgumentError(f"nu must be above -1 and at most 0.5, got {nu}")
        G, A = E / (2 * (1 + ratio)), section.area
        x = numbers("nodes", nodes)
        made = cls(
            x,
            1,  # the mass follows from the length
            section.radius,
            E * A,
            2 * section.shear_factor(ratio) * G * A,
            [E * section.first, E * section.second, G * section.torsion],
            gyration=[section.first / A, section.second / A],
            **options,
        )
        return replace(
            made, mass=positive("density", density) * A * np.asarray(made.rest_lengths).sum()
        )

    @property
    def edges(self) -> int:
        """The number of edges."""
        return len(np.asarray(self.frames))

    @property
    def bends(self) -> int:
        """The number of bends: inner nodes and clamped ends, or all nodes of a closed rod."""
        return len(np.asarray(self.bend))

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of points (nodes) and frames (edges)."""
        return len(np.asarray(self.nodes)), self.edges

    @property
    def ends(self) -> NDArray[np.int64]:
        """The indices of the two nodes of each edge, `(n, 2)`."""
        start = np.arange(self.edges, dtype=np.int64)
        return np.stack([start, (start + 1) % self.sizes[0]], axis=1)

    def along(self, positions: Array) -> Array:
        """Return the vectors of the edges `(..., n, 3)`, given positions of the nodes."""
        after = positions[..., :1, :] if self.closed else positions[..., :0, :]
        return np.diff(positions, axis=-2, append=after)

    def node(self, i: int) -> Point:
        """Return node i as a material point; a negative i counts from the end."""
        return Point(self, (index("node", i, self.sizes[0]),), (1.0,), None, np.zeros(3))

    def beside(self, edge: int, offset: ArrayLike = (0, 0, 0), fraction: float = 0.5) -> Point:
        """Return the point at a fraction of an edge, plus an offset, m, in the edge's frame."""
        k, t = index("edge", edge, self.edges), float(shaped("fraction", fraction, ()))
        return Point(self, tuple(self.ends[k].tolist()), (1 - t, t), k, offset)

    def segment(self, edge: int) -> Segment:
        """Return an edge, with the radius of the rod, for contact with other segments."""
        k = index("edge", edge, self.edges)
        start, end = self.ends[k].tolist()
        return Segment(self.node(start), self.node(end), self.radius)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All edges, with the radius of the rod."""
        return tuple(self.segment(k) for k in range(self.edges))

    def frame(self, edge: int) -> Frame:
        """Return the frame of an edge; a negative index counts from the end."""
        return Frame(self, index("edge", edge, self.edges))

    def lumped(self) -> tuple[Array, Array]:
        """Return masses of nodes and inertias of edges `(n, 3, 3)`.

        The edges have the inertia of their cross sections only. The masses of the nodes already
        have the inertia of the mass along the edges (ROD-37).
        """
        lengths = np.asarray(self.rest_lengths)
        m = self.mass * lengths / lengths.sum()
        nodes = np.zeros(self.sizes[0])
        for ends in self.ends.T:
            nodes[ends] += 0.5 * m
        with np.errstate(all="ignore"):  # the world raises if a value is not finite
            round_ = np.full(2, np.float64(self.radius) ** 2 / 4)
            about = round_ if self.gyration is None else np.asarray(self.gyration)
            principal = m[:, None] * np.array([*about, about.sum()])
            return nodes, principal[:, :, None] * np.eye(3)


def _require_lengths(what: str, lengths: Array) -> None:
    for k in np.flatnonzero(~(lengths > 0))[:1]:
        raise ArgumentError(f"{what} {k} must be positive, got length {lengths[k]}")
