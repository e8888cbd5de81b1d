#include "tree/path.h"

namespace mujacobian {
namespace {

// Adds the part m_i dF that depends on the rates of other paths.                        (PATH-4)
void add_other_rates(const PathForce& f, const double* qvel, const unsigned char* frozen,
                     const DofRows& residual, double* rate) {
  const Path& p = f.path;
  for (int o = 0; o < f.other_count; o++) {
    const Path& other = *f.others[o].path;
    path_rate_derivative(other, qvel, rate);
    for (int a = 0; a < p.n; a++) {
      int i = p.dofs[a];
      if (frozen && frozen[i]) continue;
      double m = p.moment[a] * f.others[o].force;
      for (int b = 0; b < p.n; b++) {
        residual.dq(i, p.dofs[b]) += m * rate[b];
        residual.dv(i, p.dofs[b]) += m * other.moment[b];
      }
    }
  }
}

}  // namespace

void add_path_force(const PathForce& f, const double* qvel, const unsigned char* frozen,
                    const DofRows& residual, Arena& arena) {
  const Path& p = f.path;

  // the most common case: one dof and a constant moment
  if (p.n == 1 && !p.hessian) {
    int i = p.dofs[0];
    if (frozen && frozen[i]) return;
    double m = p.moment[0];
    residual.dq(i, i) += m * f.dlength * p.dlength[0];
    residual.dv(i, i) += m * f.drate * m;
    for (int k = 0; k < f.input_count; k++) {
      residual.du(i, f.inputs[k].input) += m * f.inputs[k].force;
    }
    return;
  }

  double* rate = arena.take<double>(p.n);
  path_rate_derivative(p, qvel, rate);
  for (int a = 0; a < p.n; a++) {
    int i = p.dofs[a];
    if (frozen && frozen[i]) continue;
    double m = p.moment[a];
    // positions and velocities of the path's dofs: m dF + F dm
    for (int b = 0; b < p.n; b++) {
      int k = p.dofs[b];
      double change = m * (f.dlength * p.dlength[b] + f.drate * rate[b]);
      if (p.hessian) change += f.force * p.hessian[a * p.n + b];
      residual.dq(i, k) += change;
      residual.dv(i, k) += m * f.drate * p.moment[b];
    }
    // activations and controls
    for (int b = 0; b < f.input_count; b++) {
      residual.du(i, f.inputs[b].input) += m * f.inputs[b].force;
    }
  }
  add_other_rates(f, qvel, frozen, residual, rate);
}

}  // namespace mujacobian
