"""Comparisons of the core that select no branch of a differentiated quantity, by reason."""

# They compare counts, indices and flags, or test whether something is present.
BOOKKEEPING = """
  adjoint/virtual_dof.cc:7 adjoint/actuator_parameter.cc:6 adjoint/constant.cc:5
  adjoint/parameter_support.cc:4
  adjoint/frame.cc:4 adjoint/geom.cc:1
  adjoint/inertial.cc:3 adjoint/parameter.cc:4 adjoint/product.cc:2
  adjoint/row_curvature.cc:4 adjoint/tendon_parameter.cc:1
  adjoint/row_parameter.cc:5 adjoint/sensed.cc:2 adjoint/trajectory.cc:4 constraint/block.cc:2
  adjoint/manifold.cc:1 adjoint/stepper.cc:12 adjoint/worlds.cc:3 step/pool.cc:4
  constraint/contact.cc:14 constraint/equality.cc:7 constraint/noslip_derivative.cc:2
  constraint/point_equality.cc:1
  constraint/scalar.cc:1 contact/wrench.cc:3 dynamics/forward.cc:2 dynamics/metric.cc:2
  sensor/camera.cc:1 sensor/contact.cc:14 sensor/distance.cc:3 sensor/frame.cc:3
  sensor/frame.h:1 sensor/inertial.cc:1 sensor/limit.cc:1 sensor/path.cc:1 sensor/ray.cc:3
  sensor/sensing.cc:4 sensor/sensor.cc:5 sensor/tactile.cc:1 sensor/touch_grid.cc:4 sensor/type.h:2
  sensor/virtual_motion.h:1
  actuation/activation.cc:6 actuation/pid_plugin.cc:2
  actuation/actuation.cc:6 forces/fluid.cc:4 tree/inverse_dynamics.cc:2 actuation/force_law.cc:5
  actuation/motor.cc:12 forces/passive.cc:2 forces/passive.h:1 tree/dof_rows.cc:6
  forces/tendon.cc:6 tree/inertia.h:2 actuation/transmission.cc:5
  step/batch.cc:2 step/integrator.h:1 step/runge_kutta.cc:3 step/support.cc:6
  step/transition.cc:1 step/position_update.h:1 actuation/curvature.cc:3 spatial/jet.h:1
  tree/inverse_dynamics_hessian.cc:1 tree/spatial_lanes.h:1 spatial/packet.h:1
  second_order/hessian.cc:2
  second_order/path.cc:1 second_order/path_function.cc:4 second_order/row.cc:2
  second_order/path_function.h:1 second_order/body_pair.cc:3 second_order/friction_update.cc:1
  second_order/friction_update.h:1 second_order/noslip.cc:2
  second_order/support.cc:1 actuation/transmission_curvature.cc:5 forces/link.h:1
  forces/tendon_curvature.cc:1 tree/path.h:1 tree/relative.cc:4
  second_order/ball_limit.cc:2 second_order/cone.h:1 second_order/contact.cc:6
  second_order/pair.cc:4 second_order/product.cc:4
  second_order/runge_kutta.cc:5
  second_order/sensor.cc:5 second_order/sensor_frame.cc:8 second_order/sensor_energy.cc:1
  second_order/sensor_limit.cc:1 second_order/sensor_contact.cc:5 second_order/sensor_ray.cc:3
"""
# They compare constants of the model that are not parameters of a derivative.
CONSTANTS = """
  adjoint/actuator_parameter.cc:5 adjoint/row_parameter.cc:3 sensor/subtree.cc:2
  sensor/sensor.cc:4
  actuation/activation.cc:12 forces/fluid_element.cc:5
  forces/fluid_element.h:1 actuation/force_law.cc:3 actuation/motor.cc:10
  actuation/muscle.cc:3 second_order/sensor_subtree.cc:1
"""
# They repeat a comparison that is marked elsewhere, or define what it uses.
REPEATED = """
  adjoint/row_curvature.cc:16
  adjoint/row_parameter.cc:7 adjoint/equality_parameter.cc:1
  constraint/force.cc:1 dynamics/metric.cc:3 sensor/contact.cc:1
  sensor/distance_field.cc:5 sensor/ray.cc:1 sensor/tactile.cc:2
  actuation/activation.cc:2 actuation/actuation.cc:2 actuation/motor.cc:1
  actuation/muscle.cc:4 actuation/number.h:6 forces/passive.cc:1 actuation/transmission.cc:3
  actuation/transmission_curvature.cc:1
"""
# They select a branch of a second derivative. The tie is that of the first derivative, which is
# marked elsewhere, or the second derivative does not exist there.
SECOND_ORDER = """
  forces/passive.cc:3 forces/passive.h:1 second_order/impedance.cc:7
  second_order/metric.cc:3
"""
# They find the features that made a contact; the ties are between the features.
FEATURES = """
  contact/agreement.h:3 contact/box_pair.cc:18 contact/capsule_box_pair.cc:29
  contact/center_pair.cc:4 contact/curvature.cc:1
  contact/capsule_pair.cc:2 contact/center_feature.cc:1 contact/clipped_polygon.cc:16
  contact/convex_pair.cc:24 contact/curved_pair.cc:11 contact/face_feature.cc:4 contact/geom.cc:3
  contact/height_field_pair.cc:9 contact/identification.cc:11 contact/pair_table.cc:1
  contact/parallel_features.cc:3 contact/perturbed_manifold.cc:2 contact/plane_pair.cc:2
  contact/polytope.cc:24 contact/polytope.h:3 contact/portal_pair.cc:14 contact/prism.cc:4
  contact/round_mesh_pair.cc:6
  contact/segment_direction.cc:40 contact/segment_on_face.cc:2 contact/segment_point.cc:1
  contact/simplex_feature.cc:1 contact/sphere_pair.cc:6 contact/standing_cylinder.cc:6
  contact/support_feature.cc:2 contact/variation.cc:3 contact/vertex_pairs.cc:18
"""
# They choose between ways to compute the same number, or check the result.
NUMERICS = """
  adjoint/pass.cc:4 constraint/block.cc:2 linear/cholesky.cc:1
  linear/dense.cc:1 linear/elimination.cc:6 constraint/idle.cc:9
  constraint/rounding.cc:9 contact/collider.cc:22 contact/recollision.cc:3
  dynamics/convergence.cc:12
  dynamics/convergence.h:3 linear/lu.cc:5 tree/inertia.cc:2
  actuation/motor.cc:1 forces/wrap.cc:6 spatial/dual.h:1 spatial/jet.h:2 spatial/rotation.h:1
  second_order/turn.h:1 step/diagnostics.cc:8 step/integrator.cc:9 step/inverse.cc:1
"""
# They belong to the iterations of the solver, which end at the same optimum.
SOLVER = """
  constraint/effective_diagonal.cc:1 constraint/exact_diagonal.cc:1 constraint/noslip.cc:8
  constraint/optimum.cc:13 constraint/hessian.cc:4 constraint/block_sum.h:1 constraint/qcqp.cc:7
  constraint/friction_block.cc:3
"""
# The sign of a damping or stiffness; at zero both branches add nothing.
SIGN = """
  adjoint/joint_parameter.cc:2 adjoint/tendon_parameter.cc:2 adjoint/actuator_parameter.cc:1
"""
# They guard a quotient whose denominator is zero only where the numerator is.
DERIVED = """
  adjoint/constant.cc:7 adjoint/actuator_parameter.cc:1 sensor/contact.cc:2
"""
# They decide whether a tree falls asleep: the step jumps there, and MuJoCo's branch counts.
EVENTS = """
  step/sleep.cc:5
"""
# MuJoCo has no row in such a state, or the number is positive on both sides and not read.
UNREACHABLE = """
  adjoint/row_parameter.cc:1 sensor/distance_field.cc:1
"""
REASONS = (
    BOOKKEEPING,
    CONSTANTS,
    REPEATED,
    SECOND_ORDER,
    FEATURES,
    NUMERICS,
    SOLVER,
    SIGN,
    DERIVED,
    EVENTS,
    UNREACHABLE,
)
