// Limits of joints and tendons: distance, velocity and force of their constraint row. MuJoCo
// reports zero if there is no row.
#include "layout/enums.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

struct Limit {
  int constraint;
  enum { kPosition, kVelocity, kForce } quantity;
};

Limit limit_of(int type) {
  switch (type) {
    case sensor::kJointLimitPos:
      return {constraint::kLimitJoint, Limit::kPosition};
    case sensor::kJointLimitVel:
      return {constraint::kLimitJoint, Limit::kVelocity};
    case sensor::kJointLimitFrc:
      return {constraint::kLimitJoint, Limit::kForce};
    case sensor::kTendonLimitPos:
      return {constraint::kLimitTendon, Limit::kPosition};
    case sensor::kTendonLimitVel:
      return {constraint::kLimitTendon, Limit::kVelocity};
    default:
      return {constraint::kLimitTendon, Limit::kForce};
  }
}

// Returns the first block of the limit, which MuJoCo reports; -1 if there is none.
int find_block(const Blocks& blocks, int type, int id) {
  for (int k = 0; k < blocks.count; k++) {
    if (blocks.block[k].type == type && blocks.block[k].id == id) return k;
  }
  return -1;
}

}  // namespace

void sense_limit(Sensing& s, int sensor, SensorRows& rows) {
  const Limit limit = limit_of(s.m.sensor_type[sensor]);
  const int k = find_block(s.f.blocks, limit.constraint, s.m.sensor_objid[sensor]);
  if (k < 0) return;
  const Block& b = s.f.blocks.block[k];
  const double one = 1;
  switch (limit.quantity) {
    case Limit::kPosition:  // J is the gradient of the distance, also for ball joints     (ROW-6)
      for (int i = 0; i < b.n; i++) rows.q(0, b.dofs[i]) = b.J[i];
      return;
    case Limit::kVelocity: {
      const double* dq = jacobian_change(s.m, s.d, s.f.blocks, b, s.d.qvel, s.arena);
      for (int i = 0; i < b.n; i++) rows.q(0, b.dofs[i]) = dq[i], rows.v(0, b.dofs[i]) = b.J[i];
      return;
    }
    case Limit::kForce:
      return s.add_force(rows, 0, k, &one);
  }
}

}  // namespace mujacobian
