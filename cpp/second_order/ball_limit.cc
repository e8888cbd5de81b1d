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

// The angle of the joint and its axis.
struct BallRow {
  Number angle, axis[3];

  // The row J = -axis, along a joint motion that is constant, or consists of three variables.
  Number along(const double* motion, const int* dofs) const {
    Number sum(0);
    for (int k = 0; k < 3; k++) sum = sum - motion[dofs[k]] * axis[k];
    return sum;
  }
  Number along(const double* motion, const int* dofs, int variable) const {
    Number sum(0);
    for (int k = 0; k < 3; k++) {
      sum = sum - axis[k] * jet_variable<kVariables>(motion[dofs[k]], variable + k);
    }
    return sum;
  }
};

BallRow ball_row(const ModelView& m, const DataView& d, const Block& b) {
  const double unit[4] = {1, 0, 0, 0};
  const Vec3 u = quaternion_difference(d.qpos + m.jnt_qposadr[b.id], unit);
  const Mat3 inverse = right_jacobian_inverse(u);
  BallRow r;
  Number square(0);
  for (int k = 0; k < 3; k++) {
    r.axis[k] = turned(u, inverse, k), square = square + r.axis[k] * r.axis[k];
  }
  const double length = norm(u);
  r.angle = chain(length, 0.5 / length, -0.25 / (length * length * length), square);
  for (int k = 0; k < 3; k++) r.axis[k] = r.axis[k] / r.angle;
  return r;
}

// Returns -f = D (J a - aref), with D and aref as functions of the position, max(range) - angle.
Number opposite_force(const ModelView& m, const DataView& d, const Block& b, const BallRow& r,
                      const double* acc) {
  const double gap = d.efc_pos[b.row] - d.efc_margin[b.row];
  const RowImpedance imp = row_impedance(m, d, b, m.jnt_solimp + kNImp * b.id, gap);
  const Number stiffness = chain(imp.scale[0], -imp.scale[1], imp.scale[2], r.angle);
  const Number spring = chain(imp.spring[0], -imp.spring[1], imp.spring[2], r.angle);
  const double damping = d.efc_KBIP[4 * b.row + 1];
  const Number rate = r.along(d.qvel, b.dofs, 3), moved = r.along(acc, b.dofs, 6);
  return d.efc_D[b.row] * (stiffness * (moved + damping * rate + spring));
}

void add_second(const Block& b, const Number& value, const QuadraticForm& form) {
  const int* dofs = b.dofs;
  for (int i = 0; i < kVariables; i++)
    for (int j = 0; j <= i && j < 6; j++) {
      auto column = [&](int n) {
        return n < 3 ? form.q_column(dofs[n]) : form.v_column(dofs[n - 3]);
      };
      if (i >= 6) {
        form.mixed[dofs[i - 6]][column(j)] += value.second(i, j);
      } else {
        form.add(dofs[0], column(i), column(j), value.second(i, j));
      }
    }
}

}  // namespace

void add_ball_limit_hessian(const ModelView& m, const DataView& d, const Block& b,
                            const double* acc, const double* mu, const QuadraticForm& form) {
  const BallRow r = ball_row(m, d, b);
  add_second(b, r.along(mu, b.dofs) * opposite_force(m, d, b, r, acc), form);
}

void add_ball_limit_force(const ModelView& m, const DataView& d, const Block& b, const double* acc,
                          double weight, const QuadraticForm& form) {
  add_second(b, -weight * opposite_force(m, d, b, ball_row(m, d, b), acc), form);
}

void add_ball_limit_value(const ModelView& m, const DataView& d, const Block& b, bool rate,
                          double weight, const QuadraticForm& form) {
  const BallRow r = ball_row(m, d, b);
  add_second(b, rate ? weight * r.along(d.qvel, b.dofs, 3) : -weight * r.angle, form);
}

void add_ball_limit_power(const ModelView& m, const DataView& d, const Block& b, double weight,
                          const double* y, const QuadraticForm& form) {
  const Number power = weight * ball_row(m, d, b).along(y, b.dofs);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j <= i; j++) {
      form.add(b.dofs[0], form.q_column(b.dofs[i]), form.q_column(b.dofs[j]), power.second(i, j));
    }
}

}  // namespace mujacobian
