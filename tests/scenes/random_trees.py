"""Random kinematic trees: a seed determines one model and one state, the same with every MuJoCo.

Masses are log-uniform over six orders of magnitude. A joint whose subtree is much heavier than its
own body has a rotor. Springs, dampers and actuators are scaled by the effective inertia of their
joint (the inverse of a diagonal entry of M^-1). A tree of a gram and a metric ton is therefore
still a mechanism with finite and well-determined accelerations.
"""

import xml.etree.ElementTree as ET
from dataclasses import dataclass

import mujoco
import numpy as np

from mujacobian.reference import quiet

LOG_MASS = (-3.0, 3.0)  # decades of kg
MAX_BODIES = 15
MAX_CONDITION = 1e5  # of the scaled mass matrix; beyond it, 1e-9 is not reachable
ROTOR_SHARE = 0.05  # rotor inertia relative to the subtree, for joints whose subtree is ...
ROTOR_FROM = 30.0  # ... this many times heavier than their own body
MAX_SPEED_CHANGE = 2.0  # in one step, rad/s or m/s; livelier states are rejected
INTEGRATORS = (
    mujoco.mjtIntegrator.mjINT_EULER,
    mujoco.mjtIntegrator.mjINT_IMPLICIT,
    mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
)


@dataclass
class Body:
    """Properties of a body that later elements need."""

    element: ET.Element
    parent: "Body | None"
    mass: float
    carried: float  # mass of the subtree
    size: float
    joints: list[tuple[str, str]]  # name, type


def random_tree(seed: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a random model and a random state of it, without constraint rows."""
    rng = np.random.default_rng(seed)
    while True:
        model = mujoco.MjModel.from_xml_string(random_xml(rng))
        model.opt.integrator = INTEGRATORS[rng.integers(len(INTEGRATORS))]
        if rng.random() < 0.2:
            model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP
        data = random_state(model, rng)
        if _is_calm(model, data):
            return model, data


def random_xml(rng: np.random.Generator) -> str:
    """Return the MJCF of a random tree."""
    inertia: dict[str, float] = {}
    while not inertia:
        root, bodies = _mechanism(rng)
        inertia = _felt_inertia(mujoco.MjModel.from_xml_string(ET.tostring(root)))
    for joint in root.iter("joint"):
        _add_passive(rng, joint, inertia[str(joint.get("name"))])
    tendons = _add_tendons(rng, ET.SubElement(root, "tendon"), bodies, inertia)
    _add_actuators(rng, ET.SubElement(root, "actuator"), bodies, inertia | tendons)
    return ET.tostring(root, encoding="unicode")


def random_state(model: mujoco.MjModel, rng: np.random.Generator) -> mujoco.MjData:
    """Return data at a random position, velocity and control, half of the time with forces."""
    data = mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv) * 0.5, 1.0)
    data.qvel[:] = rng.normal(size=model.nv)
    data.ctrl[:] = rng.normal(size=model.nu)
    if rng.random() < 0.5:
        weight = np.repeat(model.body_invweight0, 3, axis=1)
        weight = np.divide(1.0, weight, out=np.zeros_like(weight), where=weight > 0)
        data.xfrc_applied[:] = rng.normal(size=(model.nbody, 6)) * weight
        data.qfrc_applied[:] = rng.normal(size=model.nv) / model.dof_invweight0
    return data


def _is_calm(model: mujoco.MjModel, data: mujoco.MjData) -> bool:
    """Return whether the acceleration of the state is well determined and moderate."""
    with quiet():
        mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    change = abs(data.qacc).max() * model.opt.timestep
    return _condition(M) < MAX_CONDITION and change < MAX_SPEED_CHANGE


def _condition(M: np.ndarray) -> float:
    """Return the condition number of M scaled to a unit diagonal."""
    scale = np.sqrt(np.diag(M))
    return float(np.linalg.cond(M / np.outer(scale, scale)))


def _mechanism(rng: np.random.Generator) -> tuple[ET.Element, list[Body]]:
    """Return bodies and joints, without springs, dampers, tendons and actuators."""
    root = ET.Element("mujoco")
    timestep = 10 ** rng.uniform(-3.3, -2.3)
    gravity = rng.normal(size=3) * 6.0 * (rng.random() < 0.9)
    ET.SubElement(root, "option", timestep=_text(timestep), gravity=_text(gravity))
    ET.SubElement(root, "compiler", angle="radian")
    world = ET.SubElement(root, "worldbody")
    bodies: list[Body] = []
    for index in range(rng.integers(1, MAX_BODIES + 1)):
        top = not bodies or rng.random() < 0.1
        parent = None if top else bodies[rng.integers(len(bodies))]
        bodies.append(_add_body(rng, world, parent, index))
    for body in bodies:
        for kind in _joint_kinds(rng, top=body.parent is None):
            _add_joint(rng, body, kind)
    if not any(body.joints for body in bodies):
        _add_joint(rng, bodies[0], "hinge")
    return root, bodies


def _felt_inertia(model: mujoco.MjModel) -> dict[str, float]:
    """Return 1 / max diag(M^-1) of every joint at qpos0; nothing if M is close to singular."""
    data = mujoco.MjData(model)
    with quiet():
        mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    if _condition(M) > MAX_CONDITION:
        return {}
    effective = 1 / np.diag(np.linalg.inv(M))
    names = [model.joint(k).name for k in model.dof_jntid]
    return {
        name: float(min(effective[[n == name for n in names]])) for name in dict.fromkeys(names)
    }


def _add_body(rng: np.random.Generator, world: ET.Element, parent: Body | None, index: int) -> Body:
    """Add a body with the inertia of a box in any position and orientation."""
    size = 10 ** rng.uniform(-1.3, -0.3)
    element = ET.SubElement(
        world if parent is None else parent.element,
        "body",
        name=f"body{index}",
        pos=_text(rng.normal(size=3) * size),
        quat=_quat(rng),
    )
    mass = 10 ** rng.uniform(*LOG_MASS)
    box = size * rng.uniform(0.3, 1.0, size=3)
    diagonal = mass / 12 * ((box**2).sum() - box**2)
    offset = np.zeros(3) if rng.random() < 0.2 else rng.normal(size=3) * size * 0.5
    attributes = {"pos": _text(offset), "mass": _text(mass), "diaginertia": _text(diagonal)}
    if rng.random() < 0.8:
        attributes["quat"] = _quat(rng)
    ET.SubElement(element, "inertial", attributes)
    ET.SubElement(
        element, "site", name=f"site{index}", pos=_text(rng.normal(size=3) * size), quat=_quat(rng)
    )
    if rng.random() < 0.3:
        element.set("gravcomp", _text(rng.uniform(0, 1.2)))
    ancestor = parent
    while ancestor is not None:
        ancestor.carried += mass
        ancestor = ancestor.parent
    return Body(element, parent, mass, mass, size, [])


def _joint_kinds(rng: np.random.Generator, top: bool) -> list[str]:
    """Return the joints of one body, in order; a ball or free joint comes last or alone."""
    draw = rng.random()
    if top and draw < 0.4:
        return ["free"]
    if draw < 0.1:
        return []
    if draw < 0.6:
        return [str(rng.choice(["hinge", "slide"], p=[0.75, 0.25]))]
    if draw < 0.75:
        return ["ball"]
    several = [str(kind) for kind in rng.choice(["hinge", "slide"], size=rng.integers(1, 4))]
    return [*several, "ball"] if len(several) < 3 and rng.random() < 0.4 else several


def _add_joint(rng: np.random.Generator, body: Body, kind: str) -> None:
    """Add a joint, sometimes with rotor inertia."""
    name = f"{body.element.get('name')}_{len(body.joints)}"
    attributes = {"name": name, "type": kind}
    if kind in ("hinge", "slide"):
        attributes |= {"axis": _text(rng.normal(size=3)), "ref": _text(rng.normal() * 0.3)}
        attributes["springref"] = _text(rng.normal() * 0.3)
    if kind in ("hinge", "ball"):
        attributes["pos"] = _text(rng.normal(size=3) * body.size * 0.3)
    arm = 1.0 if kind == "slide" else body.size**2
    if body.carried > ROTOR_FROM * body.mass and kind != "free":
        attributes["armature"] = _text(ROTOR_SHARE * body.carried * arm)
    elif rng.random() < 0.4:
        attributes["armature"] = _text(body.mass * arm * rng.uniform(0.01, 0.5))
    ET.SubElement(body.element, "joint", attributes)
    body.joints.append((name, kind))


def _add_passive(rng: np.random.Generator, element: ET.Element, inertia: float) -> None:
    """Add, in some cases, a linear or polynomial spring and damper to a joint or tendon."""
    if rng.random() < 0.5:
        element.set("stiffness", _polynomial(rng, inertia * rng.uniform(1, 50)))
    if rng.random() < 0.5:
        element.set("damping", _polynomial(rng, inertia * rng.uniform(0.1, 5)))


def _add_tendons(
    rng: np.random.Generator, section: ET.Element, bodies: list[Body], inertia: dict[str, float]
) -> dict[str, float]:
    """Add fixed tendons over two scalar joints, and return the effective inertia of each."""
    scalar = [name for body in bodies for name, kind in body.joints if kind in ("hinge", "slide")]
    effective: dict[str, float] = {}
    for index in range(rng.integers(0, 3) if len(scalar) > 1 else 0):
        chosen = [str(name) for name in rng.choice(scalar, size=2, replace=False)]
        name = f"tendon{index}"
        effective[name] = 0.2 * min(inertia[joint] for joint in chosen)
        tendon = ET.SubElement(section, "fixed", name=name)
        _add_passive(rng, tendon, effective[name])
        tendon.set("springlength", _text(np.sort(rng.normal(size=2) * 0.3)))
        if rng.random() < 0.3:
            tendon.set("armature", _text(effective[name] * rng.uniform(0.1, 1)))
        for joint in chosen:
            ET.SubElement(tendon, "joint", joint=joint, coef=_text(rng.uniform(-2, 2)))
    return effective


def _add_actuators(
    rng: np.random.Generator, section: ET.Element, bodies: list[Body], inertia: dict[str, float]
) -> None:
    """Add actuators on joints, tendons and sites: fixed or affine gain, none or affine bias."""
    width = {name: {"ball": 3, "free": 6}.get(kind, 1) for b in bodies for name, kind in b.joints}
    for name, effective in inertia.items():
        if rng.random() < 0.5:
            gear = rng.uniform(0.5, 2, size=width.get(name, 1)) * rng.choice([-1, 1])
            target = "joint" if name in width else "tendon"
            _add_actuator(rng, section, effective, {target: name, "gear": _text(gear)})
    for index, body in enumerate(bodies):
        if body.joints and rng.random() < 0.15:
            effective = min(inertia[name] for name, _ in body.joints)
            target = {"site": f"site{index}", "gear": _text(rng.normal(size=6))}
            _add_actuator(rng, section, effective, target)


def _add_actuator(
    rng: np.random.Generator, section: ET.Element, inertia: float, target: dict[str, str]
) -> None:
    """Add an actuator with a force that suits an inertia."""
    attributes = target | {"gainprm": _text(inertia * rng.uniform(2, 20))}
    if rng.random() < 0.3:
        attributes["gaintype"] = "affine"
        attributes["gainprm"] = _text(inertia * rng.normal(size=3) * [10, 2, 2])
    if rng.random() < 0.5:
        attributes["biastype"] = "affine"
        attributes["biasprm"] = _text(inertia * rng.uniform(0.1, 5, size=3) * [1, -3, -1])
    if rng.random() < 0.3:
        attributes["ctrlrange"] = "-1 1"
    if rng.random() < 0.3:
        attributes["forcerange"] = _text(inertia * np.array([-10.0, 10.0]))
    ET.SubElement(section, "general", attributes)


def _polynomial(rng: np.random.Generator, linear: float) -> str:
    """Return a linear coefficient, sometimes followed by a quadratic and a cubic one."""
    if rng.random() < 0.6:
        return _text(linear)
    return _text(linear * np.array([1.0, *rng.uniform(0, 0.5, size=2)]))


def _quat(rng: np.random.Generator) -> str:
    return _text(rng.normal(size=4))


def _text(values: float | np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in np.atleast_1d(values))
