"""Control of your own model: a crane brings its load over a place and lets it hang still."""

import mujoco

from mujacobian import control

CRANE = """<mujoco>
  <option timestep=".02" integrator="implicitfast"/>
  <worldbody><body>
    <joint name="rail" type="slide" axis="1 0 0" damping="5"/><geom type="box" size=".1 .1 .05"/>
    <body><joint axis="0 1 0"/><geom name="load" pos="0 0 -1" size=".1"/></body>
  </body></worldbody>
  <actuator><motor joint="rail" gear="100" ctrlrange="-1 1"/></actuator>
  <sensor><framepos name="load" objtype="geom" objname="load"/>
    <framelinvel name="velocity" objtype="geom" objname="load"/></sensor>
</mujoco>"""


def main() -> control.MPCResult:
    """Return the run."""
    model = mujoco.MjModel.from_xml_string(CRANE)
    load, velocity = control.sensor(model, "load"), control.sensor(model, "velocity")
    terms = [
        control.Term("place", load, control.L2(0.1), target=(1, 0, -1)),
        control.Term("still", velocity, weight=0.05),
        control.Term("effort", control.controls(model), weight=0.01),
    ]
    planner = control.ILQR(model, control.Cost(model, terms), horizon=50)
    result = control.MPC(model, planner, steps_per_plan=1).run(mujoco.MjData(model), seconds=4)
    print(f"the load ends at {result.sensordata[-1, :3].round(3)}, cost {result.costs[-1]:.2g}")
    return result


if __name__ == "__main__":
    main()
