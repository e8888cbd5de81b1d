"""Random piles of simple geoms on a plane, with collisions only between supported pairs."""

import mujoco
import numpy as np

# bits of contype: round geoms 1, boxes 2, cylinders 4, others 8; (contype, conaffinity)
COLLIDES = {
    "plane": (1, 15),
    "sphere": (1, 7),
    "capsule": (1, 3),
    "box": (2, 0),
    "cylinder": (4, 0),
    "ellipsoid": (8, 0),
    "mesh": (8, 0),
}
KINDS = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "mesh")
LIKELIHOOD = (0.3, 0.25, 0.25, 0.1, 0.05, 0.05)
SPREAD = 0.12  # m: so small that the bodies fall onto one another


def random_pile(rng: np.random.Generator, bodies: int) -> mujoco.MjModel:
    """Return a model of free bodies above a plane, with random shapes and contact parameters."""
    kinds = rng.choice(KINDS, size=bodies, p=LIKELIHOOD)
    things = "".join(_body(rng, k, str(kind)) for k, kind in enumerate(kinds))
    cone = rng.choice(["pyramidal", "elliptic"])
    integrator = rng.choice(["Euler", "implicit", "implicitfast"])
    impratio = rng.choice([1.0, 3.0])
    tilt = " ".join(f"{x:.3f}" for x in rng.normal(size=3) * 0.15)
    vertices = " ".join(f"{x:.3f}" for x in rng.normal(size=24) * 0.06)
    text = f"""
    <mujoco>
      <compiler angle="radian"/>
      <option cone="{cone}" integrator="{integrator}" impratio="{impratio}" timestep=".004"/>
      <asset><mesh name="hull" vertex="{vertices}"/></asset>
      <worldbody>
        <geom name="floor" type="plane" size="3 3 .1" euler="{tilt}" {_bits("plane")}/>
        {things}
      </worldbody>
    </mujoco>"""
    return mujoco.MjModel.from_xml_string(text)


def _body(rng: np.random.Generator, k: int, kind: str) -> str:
    size = " ".join(f"{x:.4f}" for x in rng.uniform(0.04, 0.1, 3))
    shape = 'mesh="hull"' if kind == "mesh" else f'size="{size}"'
    x, y = rng.normal(size=2) * SPREAD
    friction = f"{rng.uniform(0.2, 1.2):.3f} {rng.uniform(0.002, 0.03):.4f} .005"
    solref = rng.choice([".02 1", ".01 .7", "-2000 -50"])
    width = rng.choice([0.001, 0.005])
    return f"""
        <body name="b{k}" pos="{x:.4f} {y:.4f} {0.1 + 0.13 * k:.4f}">
          <freejoint/>
          <geom name="g{k}" type="{kind}" {shape} {_bits(kind)} condim="{rng.choice([1, 3, 4, 6])}"
            friction="{friction}" solref="{solref}" solimp=".85 .97 {width} .5 2"
            euler="{" ".join(f"{a:.3f}" for a in rng.normal(size=3))}"/>
        </body>"""


def _bits(kind: str) -> str:
    contype, conaffinity = COLLIDES[kind]
    return f'contype="{contype}" conaffinity="{conaffinity}"'
