"""Second derivatives of contacts against extrapolated differences of their first derivatives.

Each geom is moved by the exponential of a motion about the contact, MuJoCo collides the geoms, and
the features are identified again. The pairs and their poses are those of `test_pairs.py` and
`test_height_field.py`.
"""

import mujoco
import numpy as np
import primitives
import pytest

from mujacobian import _layout, reference
from tests.scenes.random_pairs import KINDS, PAIRS, poses
from tests.test_height_field import compiled, pose

TOLERANCE = 1e-7  # relative to the largest second derivative, at least 1
SETTLED = 1e-9  # relative error estimate at which an extrapolation stops
FIRST, LEVELS, RATIO = 2e-2, 14, 2.0  # rad or m: the steps of the differences
SMALLEST = 1e-6  # first step of an extrapolation that stays in one branch
CONTACTS = 3  # contacts of a pose
POSES = len(KINDS)  # one of each kind
FIELD_KINDS = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")


@pytest.fixture(scope="module", autouse=True)
def _configured():
    primitives.configure(**_layout.layout())


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_pairs(first, second):
    # faces aligned to 1e-6 rad or better leave no room for precise differences
    kinds = zip(KINDS, poses(first, second, range(POSES)), strict=True)
    _check(state for kind, state in kinds if kind not in ("aligned", "flush"))


@pytest.mark.parametrize("kind", FIELD_KINDS)
def test_height_fields(kind):
    model = reference.converge(compiled(kind))
    rng = np.random.default_rng(FIELD_KINDS.index(kind))
    _check((model, pose(model, rng)) for _ in range(POSES))


def test_a_capsule_that_stands_on_end():
    """The spin of the frame is zero, and so are its derivatives."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .199"><freejoint/>
        <geom type="capsule" size=".1 .1"/></body></worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    contacts = primitives.Contacts(model._address, data._address)
    H = np.array(contacts.curvature(0, 0.0, [0, 0, 0], [0, 0, 1]))
    assert np.isfinite(H).all()
    assert not H[:, [2, 8]].any()


def _check(states):
    """Compare the contacts of some states; half of the states must have precise differences."""
    rng = np.random.default_rng(0)
    errors, unsettled = [], 0
    for model, data in states:
        mujoco.mj_forward(model, data)
        for index in range(min(data.ncon, CONTACTS)):
            contact = Contact(model, data, index)
            if not contact.known:
                continue
            bar = rng.normal(size=7)
            differences, estimate = contact.differentiate(bar)
            if not estimate < TOLERANCE / 10:
                unsettled += 1
                continue
            H = contact.curvature(bar)
            assert np.array_equal(H, H.T)
            symmetric = (differences + differences.T) / 2
            errors.append(abs(H - symmetric).max() / max(1.0, abs(symmetric).max()))
            assert errors[-1] < TOLERANCE, contact.name
    print(f"{len(errors)} contacts, largest error {max(errors):.1e}, {unsettled} not settled")
    assert len(errors) >= POSES // 2


class Contact:
    """A contact whose geoms can be moved."""

    def __init__(self, model, data, index):
        self.model, self.data = model, data
        self.geoms = [int(geom) for geom in data.contact[index].geom]
        self.positions, self.frames = data.geom_xpos.copy(), data.geom_xmat.copy()
        self.found = primitives.Contacts(model._address, data._address)
        self.index, self.count = index, len(self.found)
        self.known, self.name = self.found.known(index), self.found.name(index)
        self.center = np.array(self.found.position(index))
        if self.known:
            self.map = np.array(self.found.map(index))

    def curvature(self, bar):
        """Return the second derivative, contracted with cotangents of distance, position, turn."""
        rows = self.found.curvature(self.index, bar[0], list(bar[1:4]), list(bar[4:]))
        return np.array(rows)

    def differentiate(self, bar):
        """Return the derivatives of the contracted first derivative, one row per motion.

        Also returns their estimated error, relative to the largest one, at least 1.
        """
        rows, errors = zip(*(self._extrapolate(bar, k) for k in range(12)), strict=True)
        self._first_derivative(np.zeros(12))
        return np.array(rows), max(errors) / max(1.0, abs(np.array(rows)).max())

    def _extrapolate(self, bar, k):
        best, error, older, level = np.zeros(12), np.inf, [], 0
        first = FIRST
        while level < LEVELS and first > SMALLEST:
            z = np.zeros(12)
            z[k] = first / RATIO**level
            ahead, behind = self._first_derivative(z), self._first_derivative(-z)
            if ahead is None or behind is None:
                first, level, older = z[k] / RATIO, 0, []
                continue
            row = [bar @ (ahead - behind) / (2 * z[k])]
            for i, value in enumerate(older):
                row.append(row[i] + (row[i] - value) / (RATIO ** (2 * i + 2) - 1))
                spread = max(abs(row[-1] - row[-2]).max(), abs(row[-1] - value).max())
                if spread < error:
                    best, error = row[-1], spread
            older, level = row, level + 1
            if error < SETTLED * max(1.0, abs(best).max()):
                break
        return best, error

    def _first_derivative(self, z):
        """Return the map after the motions z, for motions about the center; None elsewhere."""
        for geom, motion in zip(self.geoms, z.reshape(2, 6), strict=True):
            turn, shift = _exponential(motion)
            arm = self.positions[geom] - self.center
            self.data.geom_xpos[geom] = self.center + turn @ arm + shift
            self.data.geom_xmat[geom] = (turn @ self.frames[geom].reshape(3, 3)).ravel()
        mujoco.mj_collision(self.model, self.data)
        found = primitives.Contacts(self.model._address, self.data._address)
        if len(found) != self.count:
            return None
        moved = np.array([found.position(i) for i in range(len(found))])
        expected = self.center + self.map[1:4] @ z
        index = int(np.linalg.norm(moved - expected, axis=1).argmin())
        if not found.known(index) or found.name(index) != self.name:
            return None
        first = np.array(found.map(index)).reshape(7, 2, 2, 3)
        first[:, :, 0] += np.cross(moved[index] - self.center, first[:, :, 1])
        return first.reshape(7, 12)


def _exponential(motion):
    """Return the rotation and the shift of the center of the exponential of a motion."""
    w, t = motion[:3], motion[3:]
    W = np.cross(np.eye(3), w)
    angle = np.linalg.norm(w)
    if angle == 0:
        return np.eye(3), t
    sine, cosine = np.sin(angle) / angle, 2 * (np.sin(angle / 2) / angle) ** 2
    turn = np.eye(3) + sine * W + cosine * W @ W
    shift = t + cosine * W @ t + (1 - sine) / angle**2 * W @ (W @ t)
    return turn, shift
