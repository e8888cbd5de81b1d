#include "adjoint/path_parameter.h"

namespace mujacobian {
namespace {

// The metric adds the force -h (k (m v + h m a) + b (m a)), and h (h k + b) m_i^2 to M_ii   (PAR-5)
void add_to_metric(const ColumnContext& x, const PathChange& change, const Column& column) {
  const Path& path = change.path;
  const double h = x.m.opt.timestep;
  double along = 0, rate = 0;  // m a, m v
  for (int a = 0; a < path.n; a++) {
    along += path.moment[a] * x.s.at[path.dofs[a]];
    rate += path.moment[a] * x.d.qvel[path.dofs[a]];
  }
  const double pull = h * (change.stiffness * (rate + h * along) + change.damping * along);
  for (int a = 0; a < path.n; a++) {
    const int i = path.dofs[a];
    const double moment = path.moment[a];
    column.early[i] += moment * pull;
    if (column.added) {
      column.added[i] -= moment * moment * h * (h * change.stiffness + change.damping);
    }
  }
}

PathFunction law_function(const CurveContext& x, const CurvedPath& path, double value,
                          double by_length, double by_rate, const InputSlopes& by_input) {
  PathFunction f = make_path_function(2 + by_input.count, x.arena);
  f.value = value;
  f.scalar[0] = {PathScalar::kLength, &path, nullptr, nullptr, 0};
  f.scalar[1] = {PathScalar::kVelocity, &path, x.d.qvel, nullptr, 0};
  f.slope[0] = by_length, f.slope[1] = by_rate;
  for (int k = 0; k < by_input.count; k++) {
    f.scalar[2 + k] = {PathScalar::kInput, nullptr, nullptr, nullptr, by_input.input[k]};
    f.slope[2 + k] = by_input.slope[k];
  }
  return f;
}

}  // namespace

void add_path(const ColumnContext& x, const PathChange& change, const unsigned char* frozen,
              const Column& column) {
  const Path& path = change.path;
  for (int a = 0; a < path.n; a++) {
    const int i = path.dofs[a];
    if (!(frozen && frozen[i])) column.early[i] += path.moment[a] * change.force;
    if (change.damping == 0 || !x.s.step.block) continue;  // only implicit integrators
    double rate = 0;
    for (int b = 0; b < path.n; b++) {
      if (in_damping(x.m, x.s.forward.tree, x.s.step.block, i, path.dofs[b])) {
        rate += path.moment[b] * x.s.step.w[path.dofs[b]];
      }
    }
    column.late[i] += x.m.opt.timestep * change.damping * path.moment[a] * rate;
  }
  if (has_metric(x.m)) add_to_metric(x, change, column);
}

void add_law_slopes(const CurveContext& x, const CurvedPath& path, const PathLaw& law,
                    const unsigned char* frozen, const ParameterSlopes& to) {
  const PathGradient gradient{to.state, to.ctrl, to.late};
  const double* acting = acting_motion(path.path, x.curved.mu.g, frozen, x.m.nv, x.arena);
  const PathScalar power{PathScalar::kVirtual, &path, acting, nullptr, 0};
  const PathFunction force =
      law_function(x, path, law.force, law.by_length, law.by_rate, law.by_input);
  add_path_gradient(x.m, multiply(force, &power, nullptr, 1, x.arena), gradient);
  if (!x.s.step.block) return;  // only implicit integrators
  const double h = x.m.opt.timestep;
  InputSlopes scaled = law.damping_by_input;
  double* slope = x.arena.take<double>(scaled.count);
  for (int k = 0; k < scaled.count; k++) slope[k] = h * scaled.slope[k];
  scaled.slope = slope;
  const PathFunction damping = law_function(x, path, h * law.damping, h * law.damping_by_length,
                                            h * law.damping_by_rate, scaled);
  const PathProduct implicit = implicit_power(x.m, x.s, path, x.curved.mu.s, x.arena);
  add_path_gradient(x.m, multiply(damping, implicit.a, implicit.b, implicit.count, x.arena),
                    gradient);
}

}  // namespace mujacobian
