#include "second_order/mobility.h"

#include <cstring>

#include "forces/inertia_derivative.h"
#include "second_order/row.h"
#include "second_order/tendon_inertia.h"
#include "tree/inertia.h"
#include "tree/inverse_dynamics_hessian.h"

namespace mujacobian {
namespace {

const Component& component_of(const Block& b, const DofRows& layout) {
  return layout.components[layout.component[b.dofs[0]]];
}

// Adds -d2(x . M y)/dq2 at fixed x and y.
void subtract_inertia(const ModelView& m, const DataView& d, const Topology& tree, const double* x,
                      const double* y, const QuadraticForm& form, Arena& arena) {
  double* minus = arena.take<double>(m.nv);
  for (int i = 0; i < m.nv; i++) minus[i] = -y[i];
  QuadraticForm fixed = form;
  fixed.mixed = make_like(m, form.layout, arena).row;  // x does not change
  add_inertia_hessian(m, d, tree, x, minus, fixed, arena);
  add_tendon_inertia_hessian(m, d, tree, x, minus, fixed, arena);
}

}  // namespace

MobileRow make_mobile_row(const ModelView& m, const DataView& d, const Topology& tree,
                          const Block& b, const double* weight, const BlockMotion& motion,
                          const DofRows& layout, Arena& arena) {
  MobileRow r{&b,
              {},
              arena.zeros<double>(m.nv),
              arena.take<double>(m.nv),
              make_like(m, layout, arena),
              make_like(m, layout, arena),
              make_like(m, layout, arena)};
  for (int k = 0; k < b.count; k++) {
    r.weight[k] = weight[k];
    for (int i = 0; i < b.n; i++) r.row[b.dofs[i]] += weight[k] * b.J[k * b.stride + i];
  }
  std::memcpy(r.z, r.row, m.nv * sizeof(double));
  solve_inertia(m, {d.qLD, d.qLDiagInv}, r.z);

  // d(J^T)/dq is that of J^T f at unit forces
  Block unit = b;
  std::memcpy(unit.force, r.weight, sizeof(unit.force));
  unit.contact.adhesion = 0;
  BlockChange change = make_change(unit, arena);
  differentiate(m, d, unit, motion, change, arena);
  inertia_derivative(m, d, tree, r.z, r.pushed, arena);
  for (int i = 0; i < b.n; i++)
    for (int k = 0; k < b.n; k++) {
      const double turned = change.geometric_stiffness[i * b.stride + k];
      r.turned.dq(b.dofs[i], b.dofs[k]) = turned;
      r.pushed.dq(b.dofs[i], b.dofs[k]) += turned;
    }

  // dz = M^-1 (d(J^T) - dM z)
  const Component& part = component_of(b, layout);
  for (int i = 0; i < part.nv; i++) {
    const int dof = part.dofs[i];
    std::memcpy(r.dz.row[dof], r.pushed.row[dof], part.stride * sizeof(double));
  }
  visit_trees(m, part.dofs, part.nv, [&](int, int first, int last) {
    const int dof = part.dofs[first];
    solve_inertia(m, tree, {d.qLD, d.qLDiagInv}, dof, last - first, r.dz.row[dof], part.stride, 0,
                  part.nv);
  });
  return r;
}

double mobility(const ModelView& m, const MobileRow& a, const MobileRow& b) {
  double sum = 0;
  for (int i = 0; i < m.nv; i++) sum += a.row[i] * b.z[i];
  return sum;
}

void add_mobility_change(const ModelView&, const MobileRow& a, const MobileRow& b, double scale,
                         const DofRows& layout, double* out) {
  const Component& part = component_of(*a.block, layout);
  for (int i = 0; i < part.nv; i++) {
    const int dof = part.dofs[i];
    const double za = scale * a.z[dof], zb = scale * b.z[dof];
    for (int k = 0; k < part.nv; k++) {
      out[part.dofs[k]] += zb * a.turned.row[dof][k] + za * b.pushed.row[dof][k];
    }
  }
}

void add_mobility_hessian(const ModelView& m, const DataView& d, const Topology& tree,
                          const Blocks& blocks, const MobileRow* rows, int count,
                          const double* weight, const QuadraticForm& form, Arena& arena) {
  for (int a = 0; a < count; a++) {
    const Arena::Mark mark = arena.mark();
    const MobileRow& row = rows[a];
    const Component& part = component_of(*row.block, form.layout);
    double* y = arena.zeros<double>(m.nv);
    double* dy = arena.zeros<double>(static_cast<std::size_t>(part.nv) * part.stride);
    for (int b = 0; b < count; b++) {
      const double scale = weight[a * count + b];
      if (scale == 0) continue;
      for (int i = 0; i < m.nv; i++) y[i] += scale * rows[b].z[i];
      for (int i = 0; i < part.nv; i++)
        for (int k = 0; k < part.nv; k++) {
          dy[i * part.stride + k] += scale * rows[b].dz.row[part.dofs[i]][k];
        }
    }

    // J and M change at fixed motions
    double twice[kMaxRows];
    for (int k = 0; k < kMaxRows; k++) twice[k] = 2 * row.weight[k];
    add_row_power_hessian(m, d, blocks, *row.block, twice, y, form, arena);
    subtract_inertia(m, d, tree, row.z, y, form, arena);

    // the motions change
    for (int i = 0; i < part.nv; i++)
      for (int j = 0; j < part.nv; j++) {
        const double pushed = row.pushed.row[part.dofs[i]][j];
        double* half = form.q(part.dofs[j]);
        for (int k = 0; pushed != 0 && k < part.nv; k++)
          half[k] += pushed * dy[i * part.stride + k];
      }
    arena.rewind(mark);
  }
}

}  // namespace mujacobian
