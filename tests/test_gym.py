"""Vectorized Gymnasium environments: the interface of Gymnasium, and exact gradients of steps."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian.errors import ArgumentError

gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium is not installed")

from mujacobian.gym import VectorEnv  # noqa: E402

ENVS, STEPS, SUBSTEPS = 3, 6, 2
DIFFERENCE = 1e-5
DIFFERENCE_TOLERANCE = 1e-7  # relative to the largest entry, with central differences

ARM = """
<mujoco>
  <option timestep=".01"/>
  <worldbody>
    <body name="arm">
      <joint name="shoulder" axis="0 1 0" damping=".2"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
      <body pos=".3 0 0">
        <joint name="wrist" type="ball" damping=".1"/>
        <geom type="box" size=".1 .05 .02" pos=".1 0 0" mass=".3"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="shoulder" ctrlrange="-8 8"/>
    <motor joint="wrist" gear="1 .5 0"/>
  </actuator>
</mujoco>
"""


def reward(states, actions, next_states):
    """Return a reward of all arguments, with its derivatives."""
    values = np.sin(states).sum(axis=1) - (actions**2).sum(axis=1) + (next_states**3).sum(axis=1)
    return values, (np.cos(states), -2 * actions, 3 * next_states**2)


def load():
    return mujoco.MjModel.from_xml_string(ARM)


def start(rng):
    model = load()
    state = np.concatenate([model.qpos0, 0.3 * rng.normal(size=model.nv)])
    state[0] = rng.uniform(-1, 1)
    return state


def make(**options):
    return VectorEnv(load(), ENVS, reward, **{"substeps": SUBSTEPS, "start": start, **options})


def actions(steps=STEPS):
    return np.random.default_rng(5).normal(size=(steps, ENVS, 2))


def test_spaces():
    env = make()
    size = 5 + 4
    assert env.observation_space.shape == (ENVS, size)
    assert env.single_action_space.low.tolist() == [-8, -np.inf]
    assert env.single_action_space.high.tolist() == [8, np.inf]
    observations, info = env.reset(seed=1)
    assert env.observation_space.contains(observations)
    assert info == {}
    made = env.step(np.zeros((ENVS, 2)))
    assert env.observation_space.contains(made[0])
    assert made[1].shape == made[2].shape == made[3].shape == (ENVS,)


def test_steps_are_those_of_a_rollout():
    env = make()
    observations, _ = env.reset(seed=2)
    given = actions()
    made = [env.step(each) for each in given]
    state = observations
    for step, each in zip(made, given, strict=True):
        controls = np.repeat(each[:, None], SUBSTEPS, axis=1)
        after = mujacobian.rollout(env.model, state, controls).states[:, -1]
        assert np.array_equal(step[0], after)
        assert np.array_equal(step[1], reward(state, each, after)[0])
        state = after


def test_episodes_depend_on_the_seed_alone():
    first, second, other = (make().reset(seed=seed)[0] for seed in (3, 3, 4))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_episodes_that_end_are_reset_in_the_next_step():
    sizes = []

    def is_terminal(states):
        """End the second episode in the first step."""
        sizes.append(len(states))
        return (np.arange(len(states)) == 1) & (len(sizes) == 1)

    env = make(max_steps=2, is_terminal=is_terminal)
    env.reset(seed=0)
    given = actions(4)
    _, _, terminated, truncated, _ = env.step(given[0])
    assert terminated.tolist() == [False, True, False]
    assert not truncated.any()
    observations, rewards, terminated, truncated, _ = env.step(given[1])
    assert rewards[1] == 0
    assert np.array_equal(observations[1, 1:5], load().qpos0[1:])
    assert not terminated[1]
    assert truncated.tolist() == [True, False, True]
    assert sizes == [ENVS, ENVS - 1]  # an environment that is reset does not step
    observations, _, _, truncated, _ = env.step(given[2])
    assert truncated.tolist() == [False, False, False]
    assert env.step(given[3])[3].tolist() == [False, True, False]


def loss(env, given, weights, seed=0):
    """Return a scalar of all rewards and observations."""
    env.reset(seed=seed)
    total = 0.0
    for t, each in enumerate(given):
        observations, rewards, *_ = env.step(each)
        total += weights[0][t] @ rewards + (weights[1][t] * observations).sum()
    return total


@pytest.mark.parametrize("max_steps", [1000, 3])
def test_gradients_are_exact(max_steps):
    """With three steps per episode, the fourth one resets, and no derivative passes it."""
    env = make(max_steps=max_steps)
    given, rng = actions(), np.random.default_rng(6)
    weights = rng.normal(size=(STEPS, ENVS)), rng.normal(size=(STEPS, ENVS, 9))
    env.reset(seed=0)
    with env.recording() as record:
        for each in given:
            env.step(each)
    assert len(record) == STEPS
    before = given.copy()
    gradient = record.gradient(*weights)
    assert np.array_equal(given, before)
    assert gradient.actions.tobytes() == record.gradient(*weights).actions.tobytes()
    scale = np.abs(gradient.actions).max()
    assert scale > 0.1
    for t, n, k in ((0, 0, 0), (1, 2, 1), (2, 1, 0), (3, 0, 1), (5, 1, 1)):
        sides = []
        for sign in (1, -1):
            moved = given.copy()
            moved[t, n, k] += sign * DIFFERENCE
            sides.append(loss(env, moved, weights))
        difference = (sides[0] - sides[1]) / (2 * DIFFERENCE)
        assert abs(gradient.actions[t, n, k] - difference) < DIFFERENCE_TOLERANCE * scale
    assert (gradient.actions[3] == 0).all() == (max_steps == 3)


def test_gradients_of_first_states_are_those_of_a_rollout():
    env = make(substeps=1)
    first, _ = env.reset(seed=0)
    given = actions()
    with env.recording() as record:
        for each in given:
            env.step(each)
    weights = np.random.default_rng(7).normal(size=(STEPS, ENVS, 9))
    gradient = record.gradient(d_observations=weights)
    d_states = np.concatenate([np.zeros((1, ENVS, 9)), weights]).swapaxes(0, 1)
    made = mujacobian.rollout(env.model, first, given.swapaxes(0, 1)).gradient(d_states)
    assert np.allclose(gradient.states, made.state, rtol=1e-9)
    assert np.allclose(gradient.actions, made.controls.swapaxes(0, 1), rtol=1e-9)


def test_wrappers_of_gymnasium_apply():
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(make(max_steps=2))
    wrapped.reset(seed=0)
    wrapped.step(actions()[0])
    info = wrapped.step(actions()[1])[-1]
    assert info["episode"]["l"].tolist() == [2] * ENVS


def test_misuse_raises():
    env = make()
    with pytest.raises(ArgumentError, match="call reset before step"):
        env.step(np.zeros((ENVS, 2)))
    env.reset()
    with pytest.raises(ArgumentError, match="actions must have shape"):
        env.step(np.zeros((ENVS, 3)))
    with env.recording() as record:
        env.step(np.zeros((ENVS, 2)))
        with pytest.raises(ArgumentError, match="while steps are recorded"):
            env.reset()
        with pytest.raises(ArgumentError, match="recorded already"), env.recording():
            pass
    with pytest.raises(ArgumentError, match="d_rewards must have shape"):
        record.gradient(d_rewards=np.ones((2, ENVS)))
    with pytest.raises(ArgumentError, match="num_envs must be an integer"):
        VectorEnv(load(), 0, reward)
