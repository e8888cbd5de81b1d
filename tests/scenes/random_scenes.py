"""Random scenes: bodies of every convex shape dropped onto one another and onto uneven ground.

A seed determines one model and one state, the same with every MuJoCo. The state is between the
first contact and a second later. Geoms are named after their types, so that an error names its
pair.
"""

import mujoco
import numpy as np

KINDS = ("sphere", "capsule", "cylinder", "ellipsoid", "box", "mesh")
HULLS = ("blob", "prism", "brick", "tetrahedron")
BODIES = (1, 6)
SPREAD = 0.1  # m: so small that the bodies fall onto one another
HEIGHT_FIELDS = 1 / 3  # share of scenes with a height field as ground
OBSTACLES = 0.3  # share of scenes with a fixed geom on the ground
COMPOUNDS = 0.15  # share of bodies with two geoms
ARMS = 0.2  # share of bodies with a link on a hinge
UPRIGHT = 0.4  # share of bodies that fall without a rotation
LATER = 250  # maximum number of steps after the first contact
PATIENCE = 400  # number of steps in which bodies must touch


def random_scene(seed: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return the model and the state of a seed, with derived quantities up to date."""
    rng = np.random.default_rng(seed)
    model = mujoco.MjModel.from_xml_string(random_xml(rng))
    data = mujoco.MjData(model)
    for _ in range(PATIENCE):
        mujoco.mj_step(model, data)
        if data.ncon:
            break
    for _ in range(rng.integers(LATER)):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    return model, data


def random_xml(rng: np.random.Generator) -> str:
    """Return the MJCF of a random scene."""
    cone = rng.choice(["pyramidal", "elliptic"])
    integrator = rng.choice(["Euler", "implicitfast"])
    assets: list[str] = []
    ground = _ground(rng, assets)
    count = rng.integers(BODIES[0], BODIES[1] + 1)
    bodies = "".join(_body(rng, k, assets) for k in range(count))
    return f"""
    <mujoco>
      <compiler angle="radian"/>
      <option cone="{cone}" integrator="{integrator}" impratio="{rng.choice([1.0, 3.0])}"
        timestep=".004"/>
      <size memory="20M"/>
      <worldbody>{ground}{bodies}</worldbody>
      <asset>{"".join(assets)}</asset>
    </mujoco>"""


def _ground(rng: np.random.Generator, assets: list[str]) -> str:
    """Return a tilted plane or a height field, perhaps with a fixed geom on it."""
    text = ""
    if rng.random() < OBSTACLES:
        text = _geom(rng, str(rng.choice(KINDS)), 100, assets, f'pos="{_numbers(_aside(rng))} .05"')
    if rng.random() < HEIGHT_FIELDS:
        rows, columns = rng.integers(3, 12, 2)
        heights = _numbers(rng.uniform(0, 1, rows * columns))
        assets.append(
            f'<hfield name="ground" nrow="{rows}" ncol="{columns}" size="1 1 .1 .1" '
            f'elevation="{heights}"/>'
        )
        return text + f'<geom name="hfield0" type="hfield" hfield="ground" {_surface(rng)}/>'
    tilt = _numbers(rng.normal(size=3) * rng.choice([0.0, 0.15]))
    return text + f'<geom name="plane0" type="plane" size="3 3 .1" euler="{tilt}" {_surface(rng)}/>'


def _body(rng: np.random.Generator, k: int, assets: list[str]) -> str:
    """Return a free body, perhaps with two geoms, perhaps with a link."""
    turn = rng.normal(size=3) * (1e-3 if rng.random() < UPRIGHT else 1.0)
    geoms = _geom(rng, str(rng.choice(KINDS)), 2 * k, assets)
    if rng.random() < COMPOUNDS:
        offset = _numbers(rng.normal(size=3) * 0.04)
        geoms += _geom(rng, str(rng.choice(KINDS)), 2 * k + 1, assets, f'pos="{offset}"')
    if rng.random() < ARMS:
        link = _geom(rng, str(rng.choice(KINDS)), 200 + k, assets, 'pos=".12 0 0"')
        axis = _numbers(rng.normal(size=3))
        geoms += f'<body pos=".05 0 .02"><joint axis="{axis}" damping=".02"/>{link}</body>'
    return f"""
      <body pos="{_numbers(_aside(rng))} {0.2 + 0.17 * k:.4f}" euler="{_numbers(turn)}">
        <freejoint/>{geoms}
      </body>"""


def _geom(
    rng: np.random.Generator, kind: str, k: int, assets: list[str], placement: str = ""
) -> str:
    """Return a geom of one kind with its surface; meshes add their vertices to `assets`."""
    shape = f'size="{_numbers(rng.uniform(0.03, 0.1, 3))}"'
    if kind == "mesh":
        vertices = _numbers(_hull(rng, str(rng.choice(HULLS))).ravel())
        assets.append(f'<mesh name="mesh{k}" vertex="{vertices}"/>')
        shape = f'mesh="mesh{k}"'
    return f'<geom name="{kind}{k}" type="{kind}" {shape} {placement} {_surface(rng)}/>'


def _hull(rng: np.random.Generator, kind: str) -> np.ndarray:
    """Return the vertices of a convex mesh: general, with large faces, or with right angles."""
    if kind == "blob":
        return rng.normal(size=(rng.integers(6, 24), 3)) * 0.05
    if kind == "tetrahedron":
        corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
        return corners * rng.uniform(0.04, 0.09, 3)
    if kind == "brick":
        return np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, 8).T * rng.uniform(0.03, 0.09, 3)
    sides = rng.integers(3, 8)
    angle = 2 * np.pi * (np.arange(sides) + rng.uniform(0, 0.5, sides)) / sides
    rim = 0.07 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    height = rng.uniform(0.03, 0.07)
    return np.vstack([np.column_stack([rim, np.full(sides, z)]) for z in (-height, height)])


def _surface(rng: np.random.Generator) -> str:
    """Return random contact parameters."""
    friction = _numbers([rng.uniform(0.2, 1.2), rng.uniform(0.002, 0.03), 0.005])
    solref = rng.choice([".02 1", ".01 .7", "-2000 -50"])
    width = rng.choice([0.001, 0.005])
    margin = rng.choice([0.0, 0.0, 0.004])
    return (
        f'condim="{rng.choice([1, 3, 4, 6])}" friction="{friction}" solref="{solref}" '
        f'solimp=".85 .97 {width} .5 2" margin="{margin}"'
    )


def _aside(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=2) * SPREAD


def _numbers(values: np.ndarray | list[float]) -> str:
    return " ".join(f"{x:.4f}" for x in values)
