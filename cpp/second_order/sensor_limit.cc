// Limits of joints and tendons: distance, velocity and force of their constraint row.
#include "forces/tendon_curvature.h"
#include "layout/enums.h"
#include "second_order/ball_limit.h"
#include "second_order/row.h"
#include "second_order/sensor_form.h"
#include "sensor/limit.h"

namespace mujacobian {

void add_limit_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const LimitRow limit = find_limit(s, sensor);
  if (limit.block < 0) return;
  const Block& b = s.f.blocks.block[limit.block];
  const double weight = weights[0];
  if (limit.quantity == LimitRow::kForce) {  //                                           (HSE-14)
    if (!b.active) return;
    const double opposite = -weight;
    form.add_block_acceleration(b, &opposite);
    return add_limit_force_hessian(s.m, s.d, b, s.f.solved, weight, form.forms().early, s.arena);
  }
  const bool rate = limit.quantity == LimitRow::kVelocity;
  if (b.type == constraint::kLimitTendon) {
    const CurvedPath path{b.path[0], tendon_source(s.m, b.id)};
    return add_path_value(s, path, rate, tendon_row_sign(s.m, s.d, b) * weight, form);
  }
  // other limits are linear
  if (is_ball_limit(s.m, b)) {
    add_ball_limit_value(s.m, s.d, b, rate, weight, form.forms().late);
  }
}

}  // namespace mujacobian
