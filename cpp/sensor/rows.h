// The derivative of one sensor: one row per value, with columns (q, v, act, ctrl, applied force) of
// the whole model, and columns for direct changes of constraint forces.
#pragma once

#include <cstring>

#include "dynamics/forward.h"
#include "linear/lanes.h"
#include "spatial/vector.h"

namespace mujacobian {

class SensorRows {
 public:
  // Rows of sensors with up to `dim` values. `forward.residual` contains da if they read
  // accelerations.
  SensorRows(const ModelView& m, const ForwardDynamics& forward, int dim, int direct, Arena& arena)
      : forward_(&forward), nv_(m.nv), na_(m.na), nu_(m.nu), nx_(state_size(m)) {
    const DofRows& da = forward.residual;
    forces_ = da.count && da.components[0].nf;
    whole_ = da.count == 1 && da.components[0].na == m.na && da.components[0].nu == m.nu;
    direct_column_ = nx_ + nu_ + (forces_ ? nv_ : 0);
    stride_ = round_to_lanes(direct_column_ + direct);
    x_ = arena.take<double>(static_cast<std::size_t>(dim) * stride_);
    pending_ = arena.zeros<double>(static_cast<std::size_t>(dim) * nv_);
  }

  // Starts a sensor with `dim` values, and sets all rows to zero.
  void reset(int dim) {
    dim_ = dim;
    std::memset(x_, 0, static_cast<std::size_t>(dim) * stride_ * sizeof(double));
  }

  int dim() const { return dim_; }
  double& q(int r, int dof) { return row(r)[dof]; }
  double& v(int r, int dof) { return row(r)[nv_ + dof]; }
  double& input(int r, int input) { return row(r)[2 * nv_ + input]; }  // activations, then controls

  double& direct(int r, int change) { return row(r)[direct_column_ + change]; }

  // Rows 0 .. 2 += x
  void add_q(int dof, Vec3 x) { q(0, dof) += x.x, q(1, dof) += x.y, q(2, dof) += x.z; }
  void add_v(int dof, Vec3 x) { v(0, dof) += x.x, v(1, dof) += x.y, v(2, dof) += x.z; }

  void clear(int r) { std::memset(row(r), 0, stride_ * sizeof(double)); }
  const double* state(int r) const { return row(r); }
  const double* ctrl(int r) const { return row(r) + nx_; }
  const double* direct(int r) const { return row(r) + direct_column_; }
  const double* force(int r) const { return row(r) + nx_ + nu_; }

  // Row r += scale * d(acc of the dof); `settle` adds it
  void add_acceleration(int r, double scale, int dof) {
    pending_[r * nv_ + dof] += scale;
    settled_ = false;
  }

  // Adds the pending accelerations: one pass over each row for all calls of add_acceleration.
  void settle() {
    if (settled_) return;
    for (int r = 0; r < dim_; r++) {
      double* scale = pending_ + r * nv_;
      for (int dof = 0; dof < nv_; dof++) {
        add_generalized(r, scale[dof], forward_->residual, dof);
        scale[dof] = 0;
      }
    }
    settled_ = true;
  }

  // Row r += scale * row 0 of `other`, which is settled
  void add(int r, double scale, const SensorRows& other) {
    add_scaled(row(r), scale, other.row(0), stride_);
  }

  // Rows 0 .. 2 += scale * d(acc of the dof)
  void add_acceleration(Vec3 scale, int dof) {
    add_acceleration(0, scale.x, dof);
    add_acceleration(1, scale.y, dof);
    add_acceleration(2, scale.z, dof);
  }

  // Row r += scale * row of the dof in x, which has the components of the forward dynamics
  void add_generalized(int r, double scale, const DofRows& x, int dof) {
    if (scale == 0) return;
    add_columns(r, scale, x.row[dof], x.components[x.component[dof]], /*forces=*/true);
  }

  // Row r += scale * x over the columns of a component, with or without those of applied forces
  void add_columns(int r, double scale, const double* from, const Component& part, bool forces) {
    double* to = row(r);
    if (whole_) {
      return add_scaled(to, scale, from, forces ? part.end_column() : part.force_column());
    }
    double* input = to + 2 * nv_;
    for (int k = 0; k < part.nv; k++) {
      to[part.dofs[k]] += scale * from[k];
      to[nv_ + part.dofs[k]] += scale * from[part.nv + k];
    }
    const int act = part.act_column(), ctrl = part.ctrl_column(), applied = part.force_column();
    for (int k = 0; k < part.na; k++) input[part.acts[k]] += scale * from[act + k];
    for (int k = 0; k < part.nu; k++) input[na_ + part.ctrls[k]] += scale * from[ctrl + k];
    for (int k = 0; forces && k < part.nf; k++)
      input[na_ + nu_ + part.dofs[k]] += scale * from[applied + k];
  }

 private:
  static void add_scaled(double* to, double scale, const double* from, int n) {
    int k = 0;
    for (Lanes factor = broadcast(scale); k + kLanes <= n; k += kLanes) {
      store_lanes(to + k, load_lanes(to + k) + factor * load_lanes(from + k));
    }
    for (; k < n; k++) to[k] += scale * from[k];
  }

  double* row(int r) { return x_ + static_cast<std::ptrdiff_t>(r) * stride_; }
  const double* row(int r) const { return x_ + static_cast<std::ptrdiff_t>(r) * stride_; }

  const ForwardDynamics* forward_;
  int dim_ = 0, nv_, na_, nu_, nx_, direct_column_, stride_;
  bool forces_;  // there are columns of applied force
  bool whole_;   // one component has all dofs and inputs: its columns are the model's
  double* x_;
  bool settled_ = true;
  double* pending_;  // coefficients of d(acc), (dim, nv)
};

}  // namespace mujacobian
