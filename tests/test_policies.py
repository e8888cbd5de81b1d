"""The actor-critic of benchmarks.policies learns, and its returns and limits are as defined."""

import mujoco
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from benchmarks.policies import shac  # noqa: E402
from benchmarks.policies.environment import Environment, Episodes  # noqa: E402
from benchmarks.policies.trial import evaluate  # noqa: E402

WINDOWS = 50


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of PyTorch slow down networks as small as these."""
    n = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n)


POLE = """
<mujoco>
  <option timestep=".02" integrator="implicitfast"/>
  <worldbody>
    <body>
      <joint name="rail" type="slide" axis="1 0 0" damping=".1"/>
      <geom type="box" size=".1 .05 .05" mass="1" contype="0"/>
      <body>
        <joint axis="0 1 0" damping=".002"/>
        <geom type="capsule" fromto="0 0 0 0 0 .6" size=".02" mass=".2" contype="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="rail" gear="10"/></actuator>
</mujoco>
"""


def pole(length=100):
    """Return a pole on a cart that falls without a policy."""

    def reward(states, actions, next_states):
        x, angle, speed, spin = next_states.unbind(-1)
        effort = speed**2 + spin**2 + actions[:, 0] ** 2
        return 1 - 0.1 * x**2 - 4 * angle**2 - 0.01 * effort

    return Environment(
        mujoco.MjModel.from_xml_string(POLE),
        1,
        lambda states: states,
        reward,
        lambda states: states[:, 1].abs() < 0.5,
        lambda rng, n: rng.normal(size=(n, 4)) * 0.1,
        length,
    )


def learner(**settings):
    return shac.Learner(pole(), shac.Settings(batch=8, horizon=16, hidden=(16, 16), **settings), 0)


def test_a_pole_is_balanced():
    agent = learner(rate=3e-2, discount=0.95)
    before, length = evaluate(agent.environment, agent.policy)
    assert length < 70
    for k in range(WINDOWS):
        agent.update(k / WINDOWS)
    after, length = evaluate(agent.environment, agent.policy)
    assert length == 100
    assert after > 80 > before


def test_learning_repeats():
    """The same seed gives the same policy."""
    first, second = (learned_weights() for _ in range(2))
    assert all(torch.equal(x, y) for x, y in zip(first, second, strict=True))


def learned_weights():
    agent = learner()
    before = [x.clone() for x in agent.actor.parameters()]
    agent.update()
    agent.update()
    after = list(agent.actor.parameters())
    assert not any(torch.equal(x, y) for x, y in zip(before, after, strict=True))
    return after


def test_objective_is_the_derivative_of_the_window():
    """The gradient with respect to a bias of the actor is that of central differences."""
    agent = learner(limit=float("inf"))
    bias = agent.actor.mean[-1].bias
    start = agent.episodes.states.clone()

    def objective(change):
        agent.episodes = Episodes(agent.environment, 8, 0)
        agent.episodes.states = start
        torch.manual_seed(1)
        with torch.no_grad():
            bias.add_(change)
        total = agent.simulate()[0]
        with torch.no_grad():
            bias.sub_(change)
        return total

    objective(0.0).backward()
    step = 1e-2
    with torch.no_grad():
        difference = (objective(step) - objective(-step)) / (2 * step)
    assert abs(float(bias.grad)) > 1e-3
    assert float(bias.grad) == pytest.approx(float(difference), rel=1e-2)


def test_returns():
    """With trace 1, returns are discounted sums up to an end, where the value enters."""
    rewards = torch.tensor([[1.0], [2.0], [4.0]])
    values = torch.tensor([[7.0], [8.0], [16.0]])
    ends = torch.tensor([[False], [True], [True]])
    window = shac.Window(torch.zeros(3, 1, 1), rewards, values, ends, torch.zeros(0, 1))
    np.testing.assert_allclose(window.returns(0.5, 1.0)[:, 0], [1 + 0.5 * (2 + 4), 6, 12])
    np.testing.assert_allclose(window.returns(0.5, 0.0)[:, 0], [1 + 3.5, 6, 12])


def test_limit_scales_long_derivatives():
    agent = learner(limit=2.0)
    d_states = torch.tensor([[3.0, 4.0], [3e-3, 4e-3]]) / (8 * 16)
    scaled = agent.limited(d_states) * (8 * 16)
    torch.testing.assert_close(scaled, torch.tensor([[1.2, 1.6], [3e-3, 4e-3]]))
