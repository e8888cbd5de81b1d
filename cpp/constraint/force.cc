#include "constraint/force.h"

#include <cmath>

#include "layout/enums.h"

namespace mujacobian {
namespace {

// Sets one row in the quadratic zone: f = -D x, H = D.
void set_quadratic(const DataView& d, Block& b, int r, double x) {
  b.force[r] = -d.efc_D[b.row + r] * x;
  b.hessian[r * b.count + r] = d.efc_D[b.row + r];
  b.active = true;
}

// Dry friction: quadratic within its bounds, otherwise constant.
void evaluate_friction(const DataView& d, Block& b, double x) {
  double limit = d.efc_frictionloss[b.row];
  // tie: bound of dry friction
  if (std::abs(x) < d.efc_R[b.row] * limit) return set_quadratic(d, b, 0, x);
  b.force[0] = x < 0 ? limit : -limit;
  b.active = true;
}

// A pyramid: the edges n +- mu_k t_k are one-sided rows, whose forces and Hessians are summed in
// contact coordinates.
void evaluate_pyramid(const DataView& d, Block& b, const double* moved) {
  for (int k = 1; k < b.count; k++) {
    for (int side = 0; side < 2; side++) {
      const auto [mu, force, stiffness] = pyramid_edge(d, b, moved, k, side);
      if (stiffness == 0) continue;
      b.force[0] += force, b.force[k] += mu * force;
      b.hessian[0] += stiffness;
      b.hessian[k] += mu * stiffness, b.hessian[k * b.count] += mu * stiffness;
      b.hessian[k * b.count + k] += mu * mu * stiffness;
      b.active = true;
    }
  }
}

// An elliptic cone: free, sticking (quadratic) or sliding (on the cone).                (ROW-9)
void evaluate_cone(const DataView& d, Block& b, const double* x) {
  const int dim = b.count;
  const ConePoint p = cone_point(d, b, x);
  if (p.zone == ConePoint::kFree) return;
  if (p.zone == ConePoint::kSticking) {
    for (int r = 0; r < dim; r++) set_quadratic(d, b, r, x[r]);
    return;
  }

  // sliding: the force is on the cone
  const double mu = b.contact.mu, n = p.u[0], t = p.t, *u = p.u;
  b.active = true;
  b.force[0] = -p.stiffness * (n - mu * t) * mu;
  for (int r = 1; r < dim; r++) b.force[r] = -b.force[0] / t * u[r] * p.scale[r];
  for (int r = 0; r < dim; r++) {
    for (int c = 0; c < dim; c++) {
      double h;
      if (r == 0 || c == 0) {
        h = r == c ? 1 : -mu / t * u[r + c];
      } else {
        h = mu * n / (t * t * t) * u[r] * u[c] + (r == c ? mu * mu - mu * n / t : 0);
      }
      b.hessian[r * dim + c] = p.stiffness * p.scale[r] * p.scale[c] * h;
    }
  }
}

}  // namespace

ConePoint cone_point(const DataView& d, const Block& b, const double* x) {
  const double mu = b.contact.mu;
  ConePoint p{};
  p.scale[0] = mu;
  for (int r = 1; r < b.count; r++) p.scale[r] = b.contact.friction.v[r - 1];
  for (int r = 0; r < b.count; r++) p.u[r] = p.scale[r] * x[r];
  double t2 = 0;
  for (int r = 1; r < b.count; r++) t2 += p.u[r] * p.u[r];
  const double n = p.u[0], t = p.t = std::sqrt(t2);
  p.stiffness = d.efc_D[b.row] / (mu * mu * (1 + mu * mu));
  p.zone = ConePoint::kSliding;
  // tie: cone and no force
  if (n >= mu * t || (t <= 0 && n >= 0)) {
    p.zone = ConePoint::kFree;
    // tie: cone and sticking
  } else if (mu * n + t <= 0 || (t <= 0 && n < 0)) {
    p.zone = ConePoint::kSticking;
  }
  return p;
}

Edge pyramid_edge(const DataView& d, const Block& b, const double* moved, int k, int side) {
  int row = b.row + 2 * (k - 1) + side;
  double mu = side ? -b.contact.friction.v[k - 1] : b.contact.friction.v[k - 1];
  double x = moved[0] + mu * moved[k] - d.efc_aref[row];
  // tie: edge of a pyramid
  if (x >= 0) return {mu, 0, 0};
  return {mu, -d.efc_D[row] * x, d.efc_D[row]};
}

void evaluate(const ModelView&, const DataView& d, const double* acc, Block& b) {
  // J a
  double moved[kMaxRows], x[kMaxRows];
  for (int r = 0; r < b.count; r++) {
    moved[r] = 0;
    for (int k = 0; k < b.n; k++) moved[r] += b.J[r * b.stride + k] * acc[b.dofs[k]];
    b.force[r] = 0;
  }
  for (int k = 0; k < b.count * b.count; k++) b.hessian[k] = 0;

  // terms of the metric, and pyramids, which have one aref per edge
  if (b.type == kMetricTerm) {
    b.force[0] = -b.weight * moved[0];
    b.hessian[0] = b.weight;
    b.active = true;
    return;
  }
  b.active = b.geometry && b.contact.adhesion != 0;  // adhesion acts even if the rows have no force
  if (b.type == constraint::kContactPyramidal) return evaluate_pyramid(d, b, moved);

  // J a - aref of all other rows
  for (int r = 0; r < b.count; r++) x[r] = moved[r] - d.efc_aref[b.row + r];
  if (b.type == constraint::kEquality) {
    for (int r = 0; r < b.count; r++) set_quadratic(d, b, r, x[r]);
  } else if (b.type == constraint::kFrictionDof || b.type == constraint::kFrictionTendon) {
    evaluate_friction(d, b, x[0]);
  } else if (b.type == constraint::kContactElliptic) {
    evaluate_cone(d, b, x);
  } else if (x[0] < 0) {  // tie: row without force
    set_quadratic(d, b, 0, x[0]);
  }
}

}  // namespace mujacobian
