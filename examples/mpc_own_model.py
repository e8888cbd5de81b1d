"""Control your own model: a crane moves its load to a target and stops its swinging."""

import mujoco

from mujacobian import control


def main() -> control.MPCResult:
    """Run the controller and return the result."""
    model = mujoco.MjModel.from_xml_path("examples/crane.xml")  # or your own
    load, velocity = control.sensor(model, "load"), control.sensor(model, "velocity")
    terms = [
        control.Term("place", load, control.L2(0.1), target=(1, 0, -1)),
        control.Term("still", velocity, weight=0.05),
        control.Term("effort", control.controls(model), weight=0.01),
    ]
    planner = control.ILQR(model, control.Cost(model, terms), horizon=50)
    result = control.MPC(model, planner).run(mujoco.MjData(model), seconds=4)
    print(f"the load ends at {result.sensordata[-1, :3].round(3)}, cost {result.costs[-1]:.2g}")
    return result


if __name__ == "__main__":
    main()
