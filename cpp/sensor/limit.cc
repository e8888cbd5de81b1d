#include "sensor/limit.h"

#include "layout/enums.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

LimitRow limit_row(int type) {
  switch (type) {
    case sensor::kJointLimitPos:
      return {constraint::kLimitJoint, LimitRow::kPosition, -1};
    case sensor::kJointLimitVel:
      return {constraint::kLimitJoint, LimitRow::kVelocity, -1};
    case sensor::kJointLimitFrc:
      return {constraint::kLimitJoint, LimitRow::kForce, -1};
    case sensor::kTendonLimitPos:
      return {constraint::kLimitTendon, LimitRow::kPosition, -1};
    case sensor::kTendonLimitVel:
      return {constraint::kLimitTendon, LimitRow::kVelocity, -1};
    default:
      return {constraint::kLimitTendon, LimitRow::kForce, -1};
  }
}

}  // namespace

LimitRow find_limit(const Sensing& s, int sensor) {
  LimitRow limit = limit_row(s.m.sensor_type[sensor]);
  for (int k = s.f.blocks.count - 1; k >= 0; k--) {
    const Block& b = s.f.blocks.block[k];
    if (b.type == limit.constraint && b.id == s.m.sensor_objid[sensor]) limit.block = k;
  }
  return limit;
}

void sense_limit(Sensing& s, int sensor, SensorRows& rows) {
  const LimitRow limit = find_limit(s, sensor);
  const int k = limit.block;
  if (k < 0) return;
  const Block& b = s.f.blocks.block[k];
  const double one = 1;
  switch (limit.quantity) {
    case LimitRow::kPosition:  // J is the gradient of the distance, also for ball joints (ROW-6)
      for (int i = 0; i < b.n; i++) rows.q(0, b.dofs[i]) = b.J[i];
      return;
    case LimitRow::kVelocity: {
      const double* dq = jacobian_change(s.m, s.d, s.f.blocks, b, s.d.qvel, s.arena);
      for (int i = 0; i < b.n; i++) rows.q(0, b.dofs[i]) = dq[i], rows.v(0, b.dofs[i]) = b.J[i];
      return;
    }
    case LimitRow::kForce:
      return s.add_force(rows, 0, k, &one);
  }
}

}  // namespace mujacobian
