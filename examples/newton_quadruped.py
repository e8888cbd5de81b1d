"""Teach a quadruped in Newton to move forward, by a short-horizon actor-critic in PyTorch.

The actor is trained through windows of a few steps with exact gradients. The critic estimates the
reward after the end of a window (short-horizon actor-critic, Xu et al. 2022).
"""

import newton
import newton.examples
import torch
import warp as wp

from mujacobian.newton import DifferentiableMuJoCo, torch_step

WORLDS, DT, WINDOW, WINDOWS, EPISODE = 8, 1 / 120, 12, 40, 5  # windows per episode
DISCOUNT = 0.97
REACH = 0.5  # change of a joint's target per unit of the output of the actor [rad]
POSE = (0.2, 0.4, -0.6, -0.2, -0.4, 0.6, -0.2, 0.4, -0.6, 0.2, -0.4, 0.6)
HEIGHT = 0.41  # of the standing base [m]


def build() -> newton.Model:
    """Return the quadrupeds of Newton's assets, with servos that hold them upright."""
    one = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(one)
    one.default_joint_cfg.armature = 0.01
    one.default_joint_cfg.target_ke, one.default_joint_cfg.target_kd = 200.0, 5.0
    one.add_urdf(
        newton.examples.get_asset("quadruped.urdf"),
        xform=wp.transform(wp.vec3(0.0, 0.0, HEIGHT), wp.quat_identity()),
        floating=True,
        enable_self_collisions=False,
        joint_damping_mode="drive",
    )
    one.joint_q[-12:] = one.joint_target_q[-12:] = POSE
    every = newton.ModelBuilder()
    every.replicate(one, WORLDS, spacing=(2.0, 2.0, 0.0))
    every.add_ground_plane()
    return every.finalize(requires_grad=True)


class Task:
    """The quadrupeds, their observations and rewards."""

    def __init__(self) -> None:
        model = build()
        self.step = torch_step(DifferentiableMuJoCo(model, parameters=()))
        q = torch.tensor(model.joint_q.numpy()).reshape(WORLDS, -1)
        self.start, self.dofs = q, model.joint_dof_count // WORLDS
        self.targets = torch.tensor(model.control().joint_target_q.numpy()).reshape(WORLDS, -1)
        self.observations = q.shape[1] - 2 + self.dofs

    def observe(self, q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Return what the actor receives: all but the place on the ground."""
        return torch.cat([q[:, 2:] - self.start[:, 2:], 0.2 * v], dim=-1)

    def act(
        self, q: torch.Tensor, v: torch.Tensor, action: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Take a step; return the next state and the reward of every world."""
        moved = torch.nn.functional.pad(REACH * torch.tanh(action), (7, 0))
        q, v = self.step(q, v, DT, joint_target_q=self.targets + moved)
        upright = (q[:, 3:5] ** 2).sum(dim=-1) + (q[:, 2] - HEIGHT) ** 2
        return q, v, v[:, 0] - 10 * upright - 0.01 * (action**2).mean(dim=-1)


def evaluate(task: Task, actor: torch.nn.Module) -> float:
    """Return the mean reward per step of an episode without disturbances."""
    q, v, total = task.start, torch.zeros(WORLDS, task.dofs), 0.0
    with torch.no_grad():
        for _ in range(WINDOW * EPISODE):
            q, v, reward = task.act(q, v, actor(task.observe(q, v)))
            total += float(reward.mean())
    return total / (WINDOW * EPISODE)


def train(task: Task, actor: torch.nn.Module, critic: torch.nn.Module) -> None:
    """Maximize the discounted reward of windows that begin where the last ones ended."""
    improve = torch.optim.Adam(actor.parameters(), lr=2e-3)
    fit = torch.optim.Adam(critic.parameters(), lr=1e-3)
    for window in range(WINDOWS):
        if window % EPISODE == 0:
            q = task.start.clone()
            q[:, 7:] += 0.05 * torch.randn(WORLDS, 12)
            v = 0.1 * torch.randn(WORLDS, task.dofs)
        q, v = q.detach(), v.detach()
        seen, rewards = [], []
        for _ in range(WINDOW):
            seen.append(task.observe(q, v))
            q, v, reward = task.act(q, v, actor(seen[-1]))
            rewards.append(reward)
        value = critic(task.observe(q, v))[:, 0]
        gain = value
        for reward in reversed(rewards):
            gain = reward + DISCOUNT * gain
        improve.zero_grad()
        (-gain.mean()).backward()
        torch.nn.utils.clip_grad_norm_(actor.parameters(), 1.0)
        improve.step()

        # the critic learns the rewards of the window and its own estimate after it
        estimate, goals = value.detach(), []
        for reward in reversed(rewards):
            estimate = reward.detach() + DISCOUNT * estimate
            goals.insert(0, estimate)
        inputs, wanted = torch.cat(seen).detach(), torch.cat(goals)
        for _ in range(4):
            fit.zero_grad()
            ((critic(inputs)[:, 0] - wanted) ** 2).mean().backward()
            fit.step()
        if window % 10 == 0:
            print(f"window {window}: reward {torch.stack(rewards).mean().item():.3f}")


def main() -> tuple[float, float]:
    """Train, and return the mean reward before and after."""
    wp.config.quiet = True
    torch.manual_seed(0)
    task = Task()
    size = task.observations
    actor = torch.nn.Sequential(torch.nn.Linear(size, 32), torch.nn.ELU(), torch.nn.Linear(32, 12))
    critic = torch.nn.Sequential(torch.nn.Linear(size, 32), torch.nn.ELU(), torch.nn.Linear(32, 1))
    with torch.no_grad():
        actor[-1].weight.mul_(0.1)
        actor[-1].bias.zero_()
    first = evaluate(task, actor)
    train(task, actor, critic)
    last = evaluate(task, actor)
    print(f"reward {first:.3f} -> {last:.3f}")
    return first, last


if __name__ == "__main__":
    main()
