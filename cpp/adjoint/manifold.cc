// This file is compiled without fused multiplications, so that it rounds as NumPy does.
#include "adjoint/manifold.h"

#include <cmath>
#include <cstring>

#include "layout/enums.h"

namespace mujacobian {
namespace {

// E(q) t = q (0, t)                                                                        (ADJ-6)
void rate(const double* q, const double* t, double scale, double* out) {
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  const double a = t[0], b = t[1], c = t[2];
  out[0] = scale * (-x * a - y * b - z * c);
  out[1] = scale * (w * a - z * b + y * c);
  out[2] = scale * (z * a + w * b - x * c);
  out[3] = scale * (-y * a + x * b + w * c);
}

// E(q)^T g                                                                                 (ADJ-7)
void rate_transposed(const double* q, const double* g, double scale, double* out) {
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  const double a = g[0], b = g[1], c = g[2], d = g[3];
  out[0] = scale * (-x * a + w * b + z * c - y * d);
  out[1] = scale * (-y * a - z * b + w * c + x * d);
  out[2] = scale * (-z * a + y * b - x * c + w * d);
}

double square(const double* q) { return q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]; }

// E(q) (g 2 / |q|^2): the gradient of a function of q / |q|                                (ADJ-8)
void lift(const double* q, const double* g, double* out) {
  const double scale = 2 / square(q);
  const double scaled[3] = {g[0] * scale, g[1] * scale, g[2] * scale};
  rate(q, scaled, 1, out);
}

// Calls number(q, v) for every entry of a state that is also a tangent coordinate, and turn(q, v)
// for every quaternion and its rotation.
template <class F, class G>
void visit(const ModelView& m, F number, G turn) {
  for (int j = 0; j < m.njnt; j++) {
    int q = m.jnt_qposadr[j], v = m.jnt_dofadr[j];
    const int type = m.jnt_type[j];
    const bool turns = type == joint::kFree || type == joint::kBall;
    const int count = type == joint::kFree ? 3 : turns ? 0 : 1;
    for (int k = 0; k < count; k++) number(q++, v++);
    if (turns) turn(q, v);
  }
  for (int k = 0; k < m.nv + m.na; k++) number(m.nq + k, m.nv + k);
}

}  // namespace

void pull_state(const ModelView& m, const double* x, const double* gradient, double* out) {
  visit(
      m, [&](int q, int v) { out[v] = gradient[q]; },
      [&](int q, int v) { rate_transposed(x + q, gradient + q, 0.5, out + v); });
}

void lift_gradient(const ModelView& m, const double* x, const double* gradient, double* out) {
  visit(
      m, [&](int q, int v) { out[q] = gradient[v]; },
      [&](int q, int v) { lift(x + q, gradient + v, out + q); });
}

void push_change(const ModelView& m, const double* x, const double* change, double* out) {
  visit(
      m, [&](int q, int v) { out[q] = change[v]; },
      [&](int q, int v) { rate(x + q, change + v, 0.5, out + q); });
}

void reduce_change(const ModelView& m, const double* x, const double* change, double* out) {
  visit(
      m, [&](int q, int v) { out[v] = change[q]; },
      [&](int q, int v) { rate_transposed(x + q, change + q, 2 / square(x + q), out + v); });
}

bool has_rotations(const ModelView& m, const double* x) {
  bool good = true;
  visit(
      m, [](int, int) {},
      [&](int q, int) { good = good && !(std::sqrt(square(x + q)) < kMinVal); });
  return good;
}

void lift_poses(const double* poses, const double* gradients, int count, double* out) {
  for (int k = 0; k < count; k++, poses += 7, gradients += 6, out += 7) {
    std::memcpy(out, gradients, 3 * sizeof(double));
    lift(poses + 3, gradients + 3, out + 3);
  }
}

}  // namespace mujacobian
