// Blocks with one row: dry friction, and limits of joints and tendons.
#include <cmath>

#include "constraint/block.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "spatial/rotation.h"

namespace mujacobian {
namespace {

// Returns the sign of the row of a limit, 1 at the lower end of the range. If one limit has two
// rows, the first one belongs to the lower end. A single row has the distance x - range[0] or
// range[1] - x of its end. In the middle of the range both ends have the same distance, and both or
// none have a row.
double limit_sign(const DataView& d, const Block& b, const double range[2], double x) {
  const int before = b.row - 1;
  // tie: side of a limit
  if (before >= 0 && d.efc_type[before] == b.type && d.efc_id[before] == b.id) return -1;
  const double pos = d.efc_pos[b.row];
  return std::abs(x - range[0] - pos) <= std::abs(range[1] - x - pos) ? 1 : -1;
}

bool is_limit(const Block& b) {
  return b.type == constraint::kLimitJoint || b.type == constraint::kLimitTendon;
}

bool is_ball(const ModelView& m, const Block& b) {
  return b.type == constraint::kLimitJoint && m.jnt_type[b.id] == joint::kBall;
}

// Returns the rotation vector of a ball joint.
Vec3 ball_angle(const ModelView& m, const DataView& d, int jnt) {
  const double unit[4] = {1, 0, 0, 0};
  return quaternion_difference(d.qpos + m.jnt_qposadr[jnt], unit);
}

// Returns whether a rotation by this angle has an axis. MuJoCo replaces the axis if the sine of
// half the angle is below mjMINVAL.
// tie: axis of a ball limit
bool has_axis(double angle) { return angle >= 2 * kMinVal; }

// Returns the number of limits that are exactly at their margin, where MuJoCo has no row yet.
int limits_reached(const double range[2], double margin, double x) {
  // tie: both limits at their margin
  return (x - range[0] == margin) + (range[1] - x == margin);
}

[[noreturn]] void reject_both_limits(const ModelView& m, int type, int id) {
  throw Unsupported(element_name(m, type, id), "both of its limits are exactly at their margin");
}

void require_joint_limit(const ModelView& m, const DataView& d, int j) {
  const double *range = m.jnt_range + 2 * j, margin = m.jnt_margin[j];
  const int type = m.jnt_type[j];
  if (type == joint::kBall) {
    // tie: ball limit at its margin
    const bool near = std::fmax(range[0], range[1]) <= margin;
    if (!near || has_axis(norm(ball_angle(m, d, j)))) return;
    throw Unsupported(element_name(m, object::kJoint, j),
                      "the limit of a ball joint that is not rotated has no axis");
  }
  if (type == joint::kFree) return;
  if (limits_reached(range, margin, d.qpos[m.jnt_qposadr[j]]) == 2) {
    reject_both_limits(m, object::kJoint, j);
  }
}

}  // namespace

bool is_tendon_row(const Block& b) {
  return b.type == constraint::kFrictionTendon || b.type == constraint::kLimitTendon;
}

double tendon_row_sign(const ModelView& m, const DataView& d, const Block& b) {
  if (!is_limit(b)) return 1;
  return limit_sign(d, b, m.tendon_range + 2 * b.id, d.ten_length[b.id]);
}

void require_limits(const ModelView& m, const DataView& d, Arena& arena) {
  if (m.opt.disableflags & (disable::kConstraint | disable::kLimit)) return;
  for (int j = 0; j < m.njnt; j++) {
    if (m.jnt_limited[j]) require_joint_limit(m, d, j);
  }
  for (int t = 0; t < m.ntendon; t++) {
    if (!m.tendon_limited[t]) continue;
    const int reached = limits_reached(m.tendon_range + 2 * t, m.tendon_margin[t], d.ten_length[t]);
    if (reached == 2) reject_both_limits(m, object::kTendon, t);
    // tendon_path throws if two points of its path coincide, because its length has no gradient
    // then
    if (reached == 1) tendon_path(m, d, t, arena);
  }
}

void make_scalar(const ModelView& m, const DataView& d, Block& b, Arena& arena) {
  b.count = b.edges = 1;
  // tendon
  if (is_tendon_row(b)) {
    b.path[0] = tendon_path(m, d, b.id, arena);
    take_jacobian(b, b.path[0].n, b.path[0].dofs, arena);
    double sign = tendon_row_sign(m, d, b);
    for (int k = 0; k < b.n; k++) b.J[k] = sign * b.path[0].moment[k];
    return;
  }
  // limit of a ball joint
  if (is_ball(m, b)) {
    int* dofs = arena.take<int>(3);
    for (int k = 0; k < 3; k++) dofs[k] = m.jnt_dofadr[b.id] + k;
    Vec3 angle = ball_angle(m, d, b.id);
    take_jacobian(b, 3, dofs, arena);
    store3(b.J, (-1 / norm(angle)) * angle);
    return;
  }
  // one dof
  if (b.type == constraint::kFrictionDof) {
    int* dof = arena.take<int>(1);
    *dof = b.id;
    take_jacobian(b, 1, dof, arena);
    b.J[0] = 1;
  } else {
    take_jacobian(b, 1, m.jnt_dofadr + b.id, arena);
    double x = d.qpos[m.jnt_qposadr[b.id]];
    b.J[0] = limit_sign(d, b, m.jnt_range + 2 * b.id, x);
  }
}

void differentiate_scalar(const ModelView& m, const DataView& d, const Block& b,
                          const BlockMotion& motion, BlockChange& change) {
  const ReferenceAcceleration r = reference_acceleration(m, d, b);
  const int n = b.n;
  // positions and velocities: d pos = J dq for limits of joints, and the gradient of the length for
  // limits of tendons. Friction has no position.
  const double gap = d.efc_pos[b.row] - d.efc_margin[b.row];
  double position_slope = 0;
  if (is_limit(b))
    position_slope = r.stiffness + r.through(gap, d.efc_vel[b.row], d.efc_aref[b.row]);
  double dlogD = is_limit(b) ? r.dlogD : 0;
  for (int k = 0; k < n; k++) {
    double dpos = is_tendon_row(b) ? tendon_row_sign(m, d, b) * b.path[0].dlength[k] : b.J[k];
    change.rho_q[k] = position_slope * dpos;
    change.rho_v[k] = r.damping * b.J[k];
    change.dlogD[k] = dlogD * dpos;
  }

  // adds h = dJ_i/dq_k
  auto add_hessian = [&](int i, int k, double h) {
    change.geometric_stiffness[i * b.stride + k] += b.force[0] * h;
    change.rho_q[k] += h * (motion.acc[b.dofs[i]] + r.damping * d.qvel[b.dofs[i]]);
  };
  if (is_tendon_row(b) && b.path[0].hessian) {
    double sign = tendon_row_sign(m, d, b);
    for (int i = 0; i < n; i++)
      for (int k = 0; k < n; k++) add_hessian(i, k, sign * b.path[0].hessian[i * n + k]);
  }
  if (is_ball(m, b)) {
    // J = -u/|u|, u = log q                                                             (ROW-6)
    Vec3 u = ball_angle(m, d, b.id);
    double angle = norm(u);
    Vec3 axis = (1 / angle) * u;
    Mat3 du = right_jacobian_inverse(u);
    for (int k = 0; k < 3; k++) {
      Vec3 column_k = column(du, k);
      double h[3];
      store3(h, (-1 / angle) * (column_k - dot(axis, column_k) * axis));
      for (int i = 0; i < 3; i++) add_hessian(i, k, h[i]);
    }
  }
}

}  // namespace mujacobian
