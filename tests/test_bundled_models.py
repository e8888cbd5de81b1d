"""The models of dm_control and gymnasium: all load, none crashes, most are exact.

To save time, derivatives are compared along a few random directions instead of all columns.
"""

import importlib.util
from pathlib import Path

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from mujacobian.check._judge import SETTLED_MARGIN, TRUST_MARGIN, converged, stack, tolerance_at
from mujacobian.check._states import states
from tests.oracle.directional import COLLIDER_SLOPE
from tests.scenes.cases import sample


def folder(package):
    spec = importlib.util.find_spec(package)
    if spec is None:
        pytest.skip(f"{package} is not installed: pip install 'mujacobian[test]'", True)
    return Path(spec.submodule_search_locations[0])


DIRECTIONS = 3
FOLDERS = [
    folder("dm_control") / "suite",
    folder("dm_control") / "third_party",
    folder("dm_control") / "locomotion",
    folder("gymnasium") / "envs" / "mujoco" / "assets",
]
# parts of models, which their packages complete before loading
FRAGMENTS = ("suite/common", "build_fruitfly", "assets/drosophila.xml", "dog_v2/scene.xml")
MODELS = [
    path
    for parent in FOLDERS
    for path in sorted(parent.rglob("*.xml"))
    if not any(fragment in path.as_posix() for fragment in FRAGMENTS)
]
# A model counts as exact if no state of it is refused. The number grows with new features.
EXACT_SHARE = 0.75
# a sphere that slides on a floor at a distance of zero: rounding makes and breaks the contact;
# a fly on its feet: noslip changes its number of sweeps within the reference's smallest steps
ON_A_KINK = ("point.xml", "fruitfly_v2/floor.xml", "fruitfly_v2/fruitfly.xml")


def test_there_are_models():
    assert len(MODELS) >= 40


@pytest.mark.parametrize(
    "path", sample(2, MODELS), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_exact_or_refused_by_name(path):
    for label, model, data, lin in linearized(path)[0]:
        error, tolerance, share = compare(model, data, stack(lin))
        assert error <= tolerance, label
        if not path.as_posix().endswith(ON_A_KINK):
            assert share > 0.5, f"{label}: the reference trusts only {share:.2f}"


def test_share_of_exact_models(record_property):
    refused = [why for why in (linearized(path)[1] for path in MODELS) if why]
    share = 1 - len(refused) / len(MODELS)
    record_property("exact", share)
    print(f"{share:.0%} of {len(MODELS)} bundled models are exact; refused:")
    for why in sorted({why.split(" has no ")[0] for why in refused}):
        print(f"  {why}")
    assert share >= EXACT_SHARE


def linearized(path):
    """Return (label, model, data, linearization) of each state, and the first refusal."""
    with reference.quiet():
        model = mujoco.MjModel.from_xml_path(str(path))
        found, refusal = [], ""
        for label, data in list(states(model, 3, seed=0))[1:]:
            twin, same = converged(model, data)
            try:
                found.append((label, twin, same, mujacobian.linearize(twin, same, sensors=False)))
            except mujacobian.UnsupportedFeatureError as error:
                refusal = refusal or str(error)
    return found, refusal


def compare(model, data, J):
    """Return the error, the tolerance and the share of trusted entries along random directions."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(DIRECTIONS, 3 * model.nv + model.na + model.nu))
    directions[:, J.shape[1] :] = 0
    tolerance = tolerance_at(data)
    ref = reference.directional(
        model,
        data,
        directions,
        constrained=data.nefc > 0,
        settled=tolerance / SETTLED_MARGIN,
    )
    result = reference.compare(
        J @ directions[:, : J.shape[1]].T,
        ref.J[: ref.nx],
        ref.err[: ref.nx],
        ref.blocks[:4],
        trust=tolerance / TRUST_MARGIN,
    )
    if reference.meets_curved(model, data):  # the collider's scatter exceeds the tolerance
        tolerance = COLLIDER_SLOPE
    return result.error, tolerance, result.share
