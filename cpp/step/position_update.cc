#include "step/position_update.h"

namespace mujacobian {

void integrate_tangent(const ModelView& m, const DataView& d, const double* w, const double* dw,
                       const double* state, double* out) {
  const double h = m.opt.timestep;
  const double *dq = state, *dv = state + m.nv;
  double *q = out, *v = out + m.nv;
  for (int i = 0; i < m.nv; i++) v[i] = dv[i] + h * dw[i];
  visit_joints(
      m, d, w, [&](int i) { q[i] = dq[i] + h * v[i]; },
      [&](int i, Vec3 turn) {
        store3(q + i, transpose_mul(rotation_exp(turn), load3(dq + i)) +
                          (h * right_jacobian(turn)) * load3(v + i));
      });
}

void integrate_cotangent(const ModelView& m, const DataView& d, const double* w,
                         const double* given, double* through_w, double* state) {
  const double h = m.opt.timestep;
  const double *q = given, *v = given + m.nv;
  double *to_q = state, *to_v = state + m.nv;
  visit_joints(
      m, d, w,
      [&](int i) {
        to_q[i] = q[i];
        to_v[i] = v[i] + h * q[i];
      },
      [&](int i, Vec3 turn) {
        store3(to_q + i, rotation_exp(turn) * load3(q + i));
        store3(to_v + i, load3(v + i) + transpose_mul(h * right_jacobian(turn), load3(q + i)));
      });
  for (int i = 0; i < m.nv; i++) through_w[i] = h * to_v[i];
}

}  // namespace mujacobian
