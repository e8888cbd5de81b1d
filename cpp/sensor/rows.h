// The derivative of one sensor: a row per value, columns (q, v, act, ctrl, applied force) of the
// whole model.
#pragma once

#include <cstring>

#include "dynamics/forward.h"
#include "spatial/vector.h"

namespace mujacobian {

class SensorRows {
 public:
  // `forward.residual` holds da where the sensor sees accelerations.
  SensorRows(const ModelView& m, const Forward& forward, int dim, Arena& arena)
      : forward_(&forward), dim_(dim), nv_(m.nv), na_(m.na), nu_(m.nu) {
    x_ = arena.zeros<double>(static_cast<std::size_t>(dim) * width());
  }

  int dim() const { return dim_; }
  double& q(int r, int dof) { return row(r)[dof]; }
  double& v(int r, int dof) { return row(r)[nv_ + dof]; }
  double& input(int r, int input) { return row(r)[2 * nv_ + input]; }  // activations, then controls

  // Rows 0 .. 2 += x
  void add_q(int dof, Vec3 x) { q(0, dof) += x.x, q(1, dof) += x.y, q(2, dof) += x.z; }
  void add_v(int dof, Vec3 x) { v(0, dof) += x.x, v(1, dof) += x.y, v(2, dof) += x.z; }

  void clear(int r) { std::memset(row(r), 0, width() * sizeof(double)); }
  const double* state(int r) const { return row(r); }
  const double* ctrl(int r) const { return row(r) + 2 * nv_ + na_; }
  const double* force(int r) const { return row(r) + 2 * nv_ + na_ + nu_; }

  // Row r += scale * d(acc of the dof)
  void add_acceleration(int r, double scale, int dof) {
    add_generalized(r, scale, forward_->residual, dof);
  }

  // Row r += scale * the dof's row of x, which has the components of the forward dynamics
  void add_generalized(int r, double scale, const Residual& x, int dof) {
    if (scale == 0) return;
    const Component& part = x.components[x.component[dof]];
    const double* from = x.row[dof];
    double* to = row(r);
    for (int k = 0; k < part.nv; k++) {
      to[part.dofs[k]] += scale * from[k];
      to[nv_ + part.dofs[k]] += scale * from[part.nv + k];
    }
    const int act = part.act_column(), ctrl = part.ctrl_column(), applied = part.force_column();
    for (int k = 0; k < part.na; k++) to[2 * nv_ + part.acts[k]] += scale * from[act + k];
    for (int k = 0; k < part.nu; k++) to[2 * nv_ + na_ + part.ctrls[k]] += scale * from[ctrl + k];
    for (int k = 0; k < part.nf; k++) {
      to[2 * nv_ + na_ + nu_ + part.dofs[k]] += scale * from[applied + k];
    }
  }

 private:
  int width() const { return 3 * nv_ + na_ + nu_; }
  double* row(int r) { return x_ + static_cast<std::ptrdiff_t>(r) * width(); }
  const double* row(int r) const { return x_ + static_cast<std::ptrdiff_t>(r) * width(); }

  const Forward* forward_;
  int dim_, nv_, na_, nu_;
  double* x_;
};

}  // namespace mujacobian
