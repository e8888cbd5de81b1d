"""Conversion of a world to the model of the compiled core."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian import _core
from mujacobian._arguments import Array
from mujacobian.rods.attachment import Weld
from mujacobian.rods.body import moments
from mujacobian.rods.contact import Contact
from mujacobian.rods.description import instance
from mujacobian.rods.point import Point
from mujacobian.rods.rod import Rod
from mujacobian.rods.segment import SegmentContact
from mujacobian.rods.shape import added
from mujacobian.rods.state import Parameters

if TYPE_CHECKING:
    from mujacobian.rods.world import World

Integers = NDArray[np.int32]


def compiled(world: World, p: Parameters, order: int | None = None) -> _core.RodModel:
    """Return the core's model of the world with these parameters.

    `order` is that of the integrator, by default that of the world; 0 is statics.
    """
    point_slots, frame_slots = slots(world)
    fixed_points, fixed_frames = world.fixed()
    model = _core.RodModel(
        timestep=world.timestep,
        gravity=world.gravity,
        mass=p.mass,
        drag=p.drag,
        point_fixed=_integers(fixed_points),
        point_slot=point_slots,
        moment=moments(p.inertia),
        spin_drag=p.spin_drag,
        frame_fixed=_integers(fixed_frames),
        frame_slot=frame_slots,
        targets=len(world.anchors),
        order=world.order if order is None else order,
    )
    _add_rods(model, world, p)
    _add_attachments(model, world, p)
    for cable in world.cables:
        model.add_cable(*_placed(world, *cable.path))
    for each, stiffness, friction in zip(world.contacts, p.contact, p.friction, strict=True):
        if isinstance(each, SegmentContact):
            _add_segments(model, world, each, stiffness, friction)
        else:
            _add_points(model, world, each, stiffness, friction)
    return model


def slots(world: World) -> tuple[Integers, Integers]:
    """Return the slots of points and frames: alternating along each rod, then those of bodies."""
    points, frames, slot = [], [], 0
    for each in world.owners:
        n_points, n_frames = each.sizes
        points.append(slot + 2 * np.arange(n_points))
        frames.append(slot + 1 + 2 * np.arange(n_frames))
        slot += n_points + n_frames
    return _integers(np.concatenate(points)), _integers(np.concatenate(frames))


def _add_rods(model: _core.RodModel, world: World, p: Parameters) -> None:
    # arrays of frames begin with the edges of rods, so a frame has the index of its edge
    edges, bends = np.zeros((world.n_edges, 3)), np.zeros((world.n_bends, 3))
    walls = np.zeros((world.n_bends, 9))
    for rod in world.rods:
        frame = world.frames(rod).start + np.arange(rod.edges)
        points = world.points(rod).start + rod.ends
        edges[world.edges(rod)] = np.concatenate([points, frame[:, None]], axis=1)
        # pairs of edges; the wall of a clamp has the index -1
        at, own = world.bends(rod), np.asarray(rod.frames).reshape(-1, 9)
        ends = [-1] * rod.clamp_start, [-1] * rod.clamp_end
        chain = np.concatenate([ends[0], frame, ends[1], frame[: rod.closed]])
        bends[at] = np.stack([chain[:-1], chain[1:], 0 * chain[1:]], axis=1)
        bends[at, 2] = rod.bending == "tangent"
        if rod.clamp_start:
            walls[at.start] = own[0]
        if rod.clamp_end:
            walls[at.stop - 1] = own[-1]
    values = p.length, p.stretch, p.shear, p.stretch_damping
    model.add_edges(_integers(edges), np.stack(values, axis=1))
    model.add_bends(_integers(bends), np.hstack([p.bend, p.bend_damping, walls]))


def _add_attachments(model: _core.RodModel, world: World, p: Parameters) -> None:
    target = 0
    for each, stiffness in zip(world.attachments, p.attachment, strict=True):
        if isinstance(each, Weld):
            second = -1 if each.second is None else world.frame(each.second)
            axes = np.asarray(each.first_axes), np.asarray(each.second_axes)
            model.add_weld(world.frame(each.first), second, *axes, stiffness)
        elif isinstance(each.second, Point):
            model.add_spring(*_placed(world, each.first, each.second), -1, stiffness)
        else:
            ids, values = _placed(world, each.first)
            ids = np.concatenate([ids, _integers([-1, -1, -1])])
            values = np.concatenate([values, [0, 0], np.asarray(each.second)])
            model.add_spring(ids, values, target, stiffness)
            target += 1


def _add_points(
    model: _core.RodModel, world: World, contact: Contact, stiffness: float, friction: float
) -> None:
    shape = added(contact.shape, model)
    body = -1, -1
    if contact.body is not None:
        body = world.points(contact.body).start, world.frames(contact.body).start
    ids, values = _placed(world, *contact.points)
    model.add_contacts(
        ids=ids,
        values=values,
        rolling=_rolling(world, contact),
        shape=shape,
        body_point=body[0],
        body_frame=body[1],
        radius=contact.radius,
        stiffness=stiffness,
        friction=friction,
        slip=contact.slip,
    )


def _add_segments(
    model: _core.RodModel, world: World, contact: SegmentContact, stiffness: float, friction: float
) -> None:
    parts = contact.all_segments
    ids, values = _placed(world, *(end for s in parts for end in (s.start, s.end)))
    # both ends of an edge have the same two points and different weights
    ids, values = ids.reshape(-1, 2, 3), values.reshape(-1, 2, 5)
    edges = ids[:, 0, 2] < 0
    ids[edges, :, 1] = ids[edges, 1, :1]
    ids[edges, 1, 0] = ids[edges, 0, 0]
    values[edges, 1, :2] = 0, 1
    owners = {id(owner): k for k, owner in enumerate(world.owners)}
    frames = [world.frames(s.owner).start + s.frame for s in parts]
    groups = np.arange(len(parts)) >= len(contact.segments)
    model.add_segments(
        ids=ids.ravel(),
        values=values.ravel(),
        belongings=_integers(
            np.stack([frames, [owners[id(s.owner)] for s in parts], groups], axis=1)
        ),
        measures=np.array([[s.radius, *s.span()] for s in parts]),
        is_divided=contact.others is not None,
        stiffness=stiffness,
        friction=friction,
        slip=contact.slip,
    )


def _placed(world: World, *points: Point) -> tuple[Integers, Array]:
    """Return the three indices and five values of each material point, as the core expects them."""
    ids, values = np.full((len(points), 3), -1), np.zeros((len(points), 5))
    for k, p in enumerate(points):
        point, frame = world.points(p.owner).start, world.frames(p.owner).start
        ids[k, : len(p.points)] = np.array(p.points) + point
        values[k, : len(p.weights)], values[k, 2:] = p.weights, p.offset
        if p.frame is not None:
            ids[k, 2] = frame + p.frame
    return _integers(ids).ravel(), values.ravel()


def _rolling(world: World, contact: Contact) -> Integers:
    """Return the frames that each sphere rotates with, `(points, 2)`; -1 means none."""
    frames = np.full((len(contact.points), 2), -1)
    if not contact.rolling or contact.radius == 0:
        return _integers(frames)
    for k, p in enumerate(contact.points):
        first = world.frames(p.owner).start
        if p.frame is not None:
            frames[k, 0] = first + p.frame
            continue
        # the edges beside a node
        ends = instance("owner", p.owner, Rod).ends
        beside = np.flatnonzero((ends == p.points[0]).any(axis=1))
        frames[k, : len(beside)] = [first + edge for edge in beside]
    return _integers(frames)


def _integers(values: ArrayLike) -> Integers:
    return np.ascontiguousarray(values, dtype=np.int32)
