#include "second_order/ball_limit.h"

#include <cmath>

#include "layout/enums.h"
#include "second_order/impedance.h"
#include "spatial/jet.h"
#include "spatial/rotation.h"

namespace mujacobian {
namespace {

// The variables: rotation, velocity and acceleration of the joint.
constexpr int kVariables = 9;
using Number = Jet<kVariables>;

// Component k of log q, if the joint turns from the rotation vector u.
Number turned(Vec3 u, const Mat3& inverse, int k) {
  const double components[3] = {u.x, u.y, u.z};
  Number x(components[k]);
  const Mat3 bend = log_curvature(u, unit3(k));
  for (int i = 0, p = 0; i < 3; i++) {
    x.d[i] = inverse(k, i);
    for (int j = 0; j <= i; j++, p++) x.h[p] = bend(i, j);
  }
  return x;
}

}  // namespace

void add_ball_limit_hessian(const ModelView& m, const DataView& d, const Block& b,
                            const double* acc, const double* mu, const QuadraticForm& form) {
  // the angle and its axis
  const double unit[4] = {1, 0, 0, 0};
  const Vec3 u = quaternion_difference(d.qpos + m.jnt_qposadr[b.id], unit);
  const Mat3 inverse = right_jacobian_inverse(u);
  Number axis[3], square(0);
  for (int k = 0; k < 3; k++) axis[k] = turned(u, inverse, k), square = square + axis[k] * axis[k];
  const double length = norm(u);
  const Number angle = chain(length, 0.5 / length, -0.25 / (length * length * length), square);
  for (int k = 0; k < 3; k++) axis[k] = axis[k] / angle;

  // the row J = -axis, along the multiplier, the velocity and the acceleration
  const int* dofs = b.dofs;
  Number virtual_rate(0), rate(0), moved(0);
  for (int k = 0; k < 3; k++) {
    virtual_rate = virtual_rate - mu[dofs[k]] * axis[k];
    rate = rate - axis[k] * jet_variable<kVariables>(d.qvel[dofs[k]], 3 + k);
    moved = moved - axis[k] * jet_variable<kVariables>(acc[dofs[k]], 6 + k);
  }

  // D and aref as functions of the position, max(range) - angle
  const double gap = d.efc_pos[b.row] - d.efc_margin[b.row];
  const RowImpedance imp = row_impedance(d, b, m.jnt_solimp + kNImp * b.id, gap);
  const Number stiffness = chain(imp.scale[0], -imp.scale[1], imp.scale[2], angle);
  const Number spring = chain(imp.spring[0], -imp.spring[1], imp.spring[2], angle);
  const double damping = d.efc_KBIP[4 * b.row + 1];
  const Number power =
      d.efc_D[b.row] * (stiffness * virtual_rate * (moved + damping * rate + spring));

  for (int i = 0; i < kVariables; i++)
    for (int j = 0; j <= i && j < 6; j++) {
      auto column = [&](int n) {
        return n < 3 ? form.q_column(dofs[n]) : form.v_column(dofs[n - 3]);
      };
      if (i >= 6) {
        form.mixed[dofs[i - 6]][column(j)] += power.second(i, j);
      } else {
        form.add(dofs[0], column(i), column(j), power.second(i, j));
      }
    }
}

}  // namespace mujacobian
