"""Simulate rigid bodies and Cosserat rods by incremental potentials, with exact gradients."""

from mujacobian._rotation import exp
from mujacobian.rods.animation import animate
from mujacobian.rods.attachment import Attachment, Cable, Weld
from mujacobian.rods.body import RigidBody
from mujacobian.rods.contact import Contact
from mujacobian.rods.equilibrium import Equilibrium, equilibrium
from mujacobian.rods.errors import ConvergenceError
from mujacobian.rods.forces import ContactForces, Internal
from mujacobian.rods.gradient import Gradient
from mujacobian.rods.mesh import Mesh
from mujacobian.rods.point import Frame, Point
from mujacobian.rods.rod import Rod
from mujacobian.rods.rollout import rollout
from mujacobian.rods.rotation import darboux, frames_along
from mujacobian.rods.section import Section
from mujacobian.rods.segment import Segment, SegmentContact
from mujacobian.rods.shape import Box, Capsule, Outside, Plane, Shape, Sphere, Tube, Union
from mujacobian.rods.state import Inputs, Parameters, State
from mujacobian.rods.trajectory import Energies, Report, Trajectory
from mujacobian.rods.vtk import write_vtk
from mujacobian.rods.world import World

__all__ = [
    "Attachment",
    "Box",
    "Cable",
    "Capsule",
    "Contact",
    "ContactForces",
    "ConvergenceError",
    "Energies",
    "Equilibrium",
    "Frame",
    "Gradient",
    "Inputs",
    "Internal",
    "Mesh",
    "Outside",
    "Parameters",
    "Plane",
    "Point",
    "Report",
    "RigidBody",
    "Rod",
    "Section",
    "Segment",
    "SegmentContact",
    "Shape",
    "Sphere",
    "State",
    "Trajectory",
    "Tube",
    "Union",
    "Weld",
    "World",
    "animate",
    "darboux",
    "equilibrium",
    "exp",
    "frames_along",
    "rollout",
    "write_vtk",
]
