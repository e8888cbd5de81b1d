"""Train a linear policy for many cartpoles in Newton with PyTorch, through short rollouts."""

import newton
import newton.examples
import torch
import warp as wp

from mujacobian.newton import DifferentiableMuJoCo, torch_step

WORLDS, STEPS, DT, ITERATIONS = 16, 60, 1 / 60, 15
SCALE = 100.0  # force per unit of the output of the policy [N]
COUNTED = 20  # steps at the end of a rollout whose states have a cost


def build() -> newton.Model:
    """Return the cartpoles of Newton's assets, with two poles each."""
    one = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(one)
    one.default_joint_cfg.armature = 0.1
    one.add_urdf(newton.examples.get_asset("cartpole.urdf"), enable_self_collisions=False)
    for shape in range(one.shape_count):
        one.shape_flags[shape] &= ~newton.ShapeFlags.COLLIDE_SHAPES
    every = newton.ModelBuilder()
    every.replicate(one, WORLDS, spacing=(1.0, 2.0, 0.0))
    return every.finalize(requires_grad=True)


def main() -> tuple[float, float]:
    """Train, and return the cost before and after."""
    wp.config.quiet = True
    torch.manual_seed(0)
    model = build()
    step = torch_step(DifferentiableMuJoCo(model, parameters=()))
    dofs = model.joint_dof_count // WORLDS
    start = 0.1 * torch.randn(WORLDS, dofs), 0.1 * torch.randn(WORLDS, dofs)
    policy = torch.nn.Linear(2 * dofs, 1, bias=False)
    torch.nn.init.zeros_(policy.weight)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.1)
    costs = []
    for iteration in range(ITERATIONS):
        q, v = start
        cost = torch.zeros(())
        for k in range(STEPS):
            # the policy pushes the cart only
            push = SCALE * policy(torch.cat([q, v], dim=-1))
            force = torch.nn.functional.pad(push, (0, dofs - 1))
            q, v = step(q, v, DT, joint_f=force)
            if k >= STEPS - COUNTED:
                cost = cost + (q.square().sum() + 0.1 * v.square().sum()) / (WORLDS * COUNTED)
        optimizer.zero_grad()
        cost.backward()
        optimizer.step()
        costs.append(cost.item())
        if iteration % 5 == 0:
            print(f"iteration {iteration}: cost {costs[-1]:.4f}")
    print(f"cost {costs[0]:.4f} -> {min(costs):.4f}")
    return costs[0], min(costs)


if __name__ == "__main__":
    main()
