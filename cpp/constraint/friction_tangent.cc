#include "constraint/friction_tangent.h"

#include <cmath>
#include <cstring>

#include "constraint/contact.h"
#include "constraint/exact_diagonal.h"
#include "constraint/force.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

// Computes df = -H dx + f dlogD of the rows of the friction block and of their limit.     (SLIP-3)
void start_forces(const FrictionContext& x, const FrictionBlock& friction, FrictionStart& t,
                  const double* dx, const double* dlogD, int stride) {
  const Block& b = *friction.block;
  // a pair of pyramid edges: the force is the difference of the edges, the limit their sum
  if (b.type == constraint::kContactPyramidal) {
    double moved[kMaxRows];
    move_block(b, x.start, moved);
    for (int side = 0; side < 2; side++) {
      const Edge edge = pyramid_edge(x.d, b, moved, friction.first, side);
      auto add_edge = [&](double weight, double* out) {
        add_scaled(out, -weight * edge.stiffness, dx, stride);
        add_scaled(out, -weight * edge.stiffness * edge.mu, dx + friction.first * stride, stride);
        add_scaled(out, weight * edge.force, dlogD, stride);
      };
      add_edge(edge.mu, t.dforce);
      add_edge(std::abs(edge.mu), t.dlimit);
    }
    return;
  }
  // dry friction or a cone, whose limit is the normal force
  auto add_force = [&](int row, double* out) {
    for (int s = 0; s < b.count; s++) {
      add_scaled(out, -b.hessian[row * b.count + s], dx + s * stride, stride);
    }
    add_scaled(out, b.force[row], dlogD, stride);
  };
  for (int r = 0; r < friction.count; r++) add_force(friction.first + r, t.dforce + r * stride);
  if (friction.cone) add_force(0, t.dlimit);
}

}  // namespace

void add_moved_row(const Block& b, int r, const DofRows& change, double* y) {
  const int stride = change.components[change.component[b.dofs[0]]].stride;
  for (int k = 0; k < b.n; k++) {
    add_scaled(y, b.J[r * b.stride + k], change.row[b.dofs[k]], stride);
  }
}

void start_frictions(const FrictionContext& x, int first, int last, FrictionStart* out,
                     Arena& arena) {
  // rho and dlogD over the columns of the component
  const Block& b = *x.frictions[first].block;
  const Component& part = x.change.components[x.change.component[b.dofs[0]]];
  const int stride = part.stride;
  double* rho = arena.zeros<double>(b.count * stride);
  double* dx = arena.take<double>(b.count * stride);
  double* dlogD = arena.zeros<double>(stride);
  BlockChange change = make_change(b, arena);
  differentiate(x.m, x.d, b, x.motion, change, arena);
  for (int k = 0; k < b.n; k++) {
    const int column = x.change.column[b.dofs[k]];
    dlogD[column] = change.dlogD[k];
    for (int r = 0; r < b.count; r++) {
      rho[r * stride + column] = change.rho_q[r * b.stride + k];
      rho[r * stride + part.nv + column] = change.rho_v[r * b.stride + k];
    }
  }
  if (x.m.opt.enableflags & enable::kDiagExact) {
    DiagonalChange diagonal[kMaxRows];  // a contact or a dry friction has one, if any
    if (diagonal_change(x.m, x.d, x.tree, x.blocks, b, x.change, diagonal, arena)) {
      const double shift = b.geometry ? adhesive_reference(x.d, b) : 0;
      for (int k = 0; k < part.nv; k++) {
        dlogD[k] += diagonal[0].dlogD[part.dofs[k]];
        rho[k] += shift * diagonal[0].dlogD[part.dofs[k]];
      }
    }
  }
  // dx = rho + J d(acc)
  for (int r = 0; r < b.count; r++) {
    std::memcpy(dx + r * stride, rho + r * stride, stride * sizeof(double));
    add_moved_row(b, r, x.change, dx + r * stride);
  }

  for (int k = first; k < last; k++) {
    const FrictionBlock& friction = x.frictions[k];
    out[k] = {rho + friction.first * stride, arena.zeros<double>(friction.count * stride),
              arena.zeros<double>(stride)};
    start_forces(x, friction, out[k], dx, dlogD, stride);
  }
}

}  // namespace mujacobian
