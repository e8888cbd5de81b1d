#include "dynamics/free_body.h"

#include "spatial/vector.h"

namespace mujacobian {
namespace {

struct FreeBody {
  double mass;
  Mat3 orientation;  // R
  Vec3 com;          // s
  Mat3 inertia;      // I
};

FreeBody load(const ModelView& m, const DataView& d, int body) {
  FreeBody b;
  b.mass = m.body_subtreemass[body];
  b.orientation = load9(d.xmat + 9 * body);
  // the composite inertia is about the center of mass of the whole tree, in world axes
  b.com = transpose_mul(b.orientation, load3(d.subtree_com + 3 * body) - load3(d.xpos + 3 * body));
  const double* i = d.crb + 10 * body;
  Mat3 world = {{i[0], i[3], i[4], i[3], i[1], i[5], i[4], i[5], i[2]}};
  b.inertia = transposed(b.orientation) * world * b.orientation;
  return b;
}

// Q(x, y): force and torque in the frame of the body. Q(r, r) = 2 c.
struct Wrench {
  Vec3 force, torque;
};
Wrench bilinear(const FreeBody& b, Vec3 x, Vec3 y) {
  Vec3 f = b.mass * (cross(x, cross(y, b.com)) + cross(y, cross(x, b.com)));
  return {f, cross(b.com, f) + cross(x, b.inertia * y) + cross(y, b.inertia * x)};
}

}  // namespace

void add_free_bias_rate(const ModelView& m, const DataView& d, int body, double h, double* a,
                        int stride) {
  FreeBody b = load(m, d, body);
  Vec3 r = load3(d.qvel + m.body_dofadr[body] + 3);
  for (int k = 0; k < 3; k++) {
    Wrench q = bilinear(b, r, unit3(k));
    double column[6];
    store3(column, h * (b.orientation * q.force)), store3(column + 3, h * q.torque);
    for (int i = 0; i < 6; i++) a[i * stride + 3 + k] += column[i];
  }
}

void subtract_free_bias_change(const ModelView& m, const DataView& d, int body, double h,
                               const double w[6], const DofRows& residual) {
  FreeBody b = load(m, d, body);
  int dof = m.body_dofadr[body];
  Vec3 r = load3(d.qvel + dof + 3), y = load3(w + 3);
  // a rotation of the body rotates the force; the derivative with respect to velocity is Q again
  Vec3 bias = bilinear(b, r, y).force;
  for (int k = 0; k < 3; k++) {
    double turned[3], force[3], torque[3];
    Wrench q = bilinear(b, unit3(k), y);
    store3(turned, b.orientation * cross(unit3(k), bias));
    store3(force, b.orientation * q.force);
    store3(torque, q.torque);
    for (int i = 0; i < 3; i++) {
      residual.dq(dof + i, dof + 3 + k) -= h * turned[i];
      residual.dv(dof + i, dof + 3 + k) -= h * force[i];
      residual.dv(dof + 3 + i, dof + 3 + k) -= h * torque[i];
    }
  }
}

}  // namespace mujacobian
