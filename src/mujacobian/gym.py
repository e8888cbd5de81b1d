"""Vectorized Gymnasium environments with exact gradients: `pip install 'mujacobian[gym]'`.

Example:
  >>> import mujoco, mujacobian.gym, numpy as np
  >>> model = mujoco.MjModel.from_xml_string(
  ...     "<mujoco><worldbody><body><joint name='pivot' axis='0 1 0'/><geom size='.1'/></body>"
  ...     "</worldbody><actuator><motor joint='pivot' ctrlrange='-1 1'/></actuator></mujoco>")
  >>> def reward(states, actions, next_states):  # minus the squared angle, and its derivatives
  ...     d_next = np.stack([-2 * next_states[:, 0], 0 * next_states[:, 1]], axis=1)
  ...     return -next_states[:, 0] ** 2, (0 * states, 0 * actions, d_next)
  >>> env = mujacobian.gym.VectorEnv(model, 4, reward, substeps=5)
  >>> observations, _ = env.reset(seed=0)
  >>> with env.recording() as record:
  ...     for _ in range(10):
  ...         step = env.step(np.ones((4, 1)))
  >>> record.gradient(d_rewards=np.ones((10, 4))).actions.shape
  (10, 4, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian._arguments import Array, count, require_model, shaped
from mujacobian._rollout import rollout
from mujacobian._summary import describe
from mujacobian._threads import thread_count
from mujacobian._trajectory import Trajectory
from mujacobian.errors import ArgumentError, MissingPackageError

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise MissingPackageError(
        "mujacobian.gym needs Gymnasium: pip install 'mujacobian[gym]'", name="gymnasium"
    ) from error

__all__ = ["Record", "StepGradient", "VectorEnv"]

Flags = NDArray[np.bool_]
# rewards of all environments, and their derivatives by the three arguments
Reward = Callable[[Array, Array, Array], tuple[Array, tuple[Array, Array, Array]]]


@dataclass(frozen=True, eq=False, repr=False)
class StepGradient:
    """Derivatives of a scalar of recorded steps of n environments.

    Attributes:
      actions: `(T, n, nu)`; zero for steps that reset an environment, as they ignore its action.
      states: with respect to the states before the first step, `(n, nq + nv + na)`.
    """

    actions: Array
    states: Array

    def __repr__(self) -> str:
        return describe("StepGradient", actions=self.actions, states=self.states)


@dataclass(frozen=True)
class _Step:
    """A step of the environments that were not reset in it."""

    active: Flags
    trajectory: Trajectory | None
    slopes: tuple[Array, Array, Array]


class Record:
    """Recorded steps of a `VectorEnv`, which `gradient` differentiates."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self._shape = shape
        self._steps: list[_Step] = []

    def __len__(self) -> int:
        return len(self._steps)

    def gradient(
        self, d_rewards: ArrayLike | None = None, d_observations: ArrayLike | None = None
    ) -> StepGradient:
        """Return the exact gradient of a scalar of the rewards and observations of all steps.

        No derivative passes a reset, because a first state does not depend on the steps before it.

        Args:
          d_rewards: derivatives of the scalar with respect to the rewards, `(T, n)`; by default 0.
          d_observations: the same with respect to the observations that the steps returned,
            `(T, n, nq + nv + na)`; by default 0.
        """
        T, (n, size, nu) = len(self), self._shape
        by_reward, by_observation = np.zeros((T, n)), np.zeros((T, n, size))
        if d_rewards is not None:
            by_reward = shaped("d_rewards", d_rewards, (T, n))
        if d_observations is not None:
            by_observation = shaped("d_observations", d_observations, (T, n, size))
        actions, states = np.zeros((T, n, nu)), np.zeros((n, size))
        for t in reversed(range(T)):
            step = self._steps[t]
            after, states = (states + by_observation[t])[step.active], np.zeros((n, size))
            if step.trajectory is None:
                continue
            weights = by_reward[t][step.active, None]
            d_state, d_action, d_next = (weights * slope for slope in step.slopes)
            d_states = np.zeros_like(step.trajectory.states)
            d_states[:, -1] = after + d_next
            made = step.trajectory.gradient(d_states)
            actions[t, step.active] = made.controls.sum(axis=1) + d_action
            states[step.active] = made.state + d_state
        return StepGradient(actions, states)

    def _append(self, step: _Step) -> None:
        self._steps.append(step)


class VectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Copies of a model that step together; observations are states (qpos, qvel, act).

    Args:
      model: any model that MuJoCo loads.
      num_envs: number of environments.
      reward: function of the states before a step, the actions and the states after it. They have
        one row per environment that steps; environments that are reset do not. It returns the
        rewards of these rows, and a tuple of their derivatives by the three arguments, in the
        shapes of the arguments.
      start: function that returns the first state of an episode, given the random generator of the
        environments; by default the initial state of the model.
      is_terminal: function of the states after a step, with the same rows, that returns which
        episodes end; by default none does.
      substeps: number of calls of `mj_step` in a step, with the same controls, by default 1.
      max_steps: number of steps after which an episode is truncated, by default 1000.
      threads: number of threads, by default one per available core.

    An action is the vector of controls, and MuJoCo clamps it to `ctrlrange`. After an episode has
    ended, the next step resets its environment and ignores the action (`AutoresetMode.NEXT_STEP`).
    A step takes only (qpos, qvel, act) from the step before it, as in `mujacobian.torch.step`.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        model: mujoco.MjModel,
        num_envs: int,
        reward: Reward,
        *,
        start: Callable[[np.random.Generator], ArrayLike] | None = None,
        is_terminal: Callable[[Array], ArrayLike] | None = None,
        substeps: int = 1,
        max_steps: int = 1000,
        threads: int | None = None,
    ) -> None:
        require_model(model)
        self.model, self.num_envs = model, count("num_envs", num_envs)
        self._reward, self._start, self._is_terminal = reward, start, is_terminal
        self._substeps, self._max_steps = count("substeps", substeps), count("max_steps", max_steps)
        self._threads = thread_count(threads)
        self._size = model.nq + model.nv + model.na
        limits = np.where(model.actuator_ctrllimited[:, None], model.actuator_ctrlrange, np.inf)
        low = np.where(np.isinf(limits[:, 0]), -np.inf, limits[:, 0])
        self.single_action_space = gymnasium.spaces.Box(low, limits[:, 1], dtype=np.float64)
        self.single_observation_space = gymnasium.spaces.Box(
            -np.inf, np.inf, (self._size,), dtype=np.float64
        )
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._states = np.zeros((num_envs, self._size))
        self._ages = np.zeros(num_envs, int)
        self._ended: Flags | None = None  # None before the first reset
        self._record: Record | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin new episodes in all environments; return their first states and an empty dict."""
        super().reset(seed=seed)
        if self._record is not None:
            raise ArgumentError("reset must not be called while steps are recorded")
        for k in range(self.num_envs):
            self._begin(k)
        self._ended = np.zeros(self.num_envs, bool)
        return self._states.copy(), {}

    def step(self, actions: ArrayLike) -> tuple[Array, Array, Flags, Flags, dict[str, Any]]:
        """Return observations, rewards, terminations and truncations of a step, and an empty dict.

        Args:
          actions: controls, `(n, nu)`.
        """
        if self._ended is None:
            raise ArgumentError("call reset before step")
        given = shaped("actions", actions, (self.num_envs, self.model.nu))
        active, before = ~self._ended, self._states.copy()
        rewards = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, bool)
        for k in np.flatnonzero(self._ended):
            self._begin(int(k))
        trajectory, slopes = None, None
        if active.any():
            controls = np.repeat(given[active, None], self._substeps, axis=1)
            trajectory = rollout(self.model, before[active], controls, threads=self._threads)
            after = trajectory.states[:, -1]
            self._states[active] = after
            rewards[active], slopes = self._reward(before[active], given[active], after.copy())
            if self._is_terminal is not None:
                terminated[active] = np.asarray(self._is_terminal(after.copy()), bool)
        self._ages[active] += 1
        truncated = (self._ages >= self._max_steps) & ~terminated
        self._ended = terminated | truncated
        if self._record is not None:
            empty = np.zeros((0, 0))
            self._record._append(_Step(active, trajectory, slopes or (empty, empty, empty)))
        return self._states.copy(), rewards, terminated, truncated, {}

    @contextmanager
    def recording(self) -> Iterator[Record]:
        """Record the steps in a `with` statement for `Record.gradient`."""
        if self._record is not None:
            raise ArgumentError("steps are recorded already")
        self._record = Record((self.num_envs, self._size, self.model.nu))
        try:
            yield self._record
        finally:
            self._record = None

    def _begin(self, k: int) -> None:
        """Begin a new episode in environment k."""
        if self._start is None:
            rest = np.zeros(self.model.nv + self.model.na)
            self._states[k] = np.concatenate([self.model.qpos0, rest])
        else:
            self._states[k] = shaped("start", self._start(self.np_random), (self._size,))
        self._ages[k] = 0
