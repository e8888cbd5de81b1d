#include "second_order/path.h"

#include "actuation/curvature.h"
#include "forces/implicit.h"
#include "forces/tendon.h"

namespace mujacobian {
PathFunction law_function(const DataView& d, const PathCurvature& c, const CurvedPath& path,
                          const LawDerivatives& law, Arena& arena) {
  // with a linear law, only the inputs of the force itself matter
  const PathForce& f = *c.of;
  const int inputs = c.count ? c.count - 2 : f.input_count;
  PathFunction g = make_path_function(2 + inputs, arena);
  g.value = law.value;
  g.scalar[0] = {PathScalar::kLength, &path, nullptr, nullptr, 0};
  g.scalar[1] = {PathScalar::kVelocity, &path, d.qvel, nullptr, 0};
  g.slope[0] = law.by_length, g.slope[1] = law.by_rate;
  for (int k = 0; k < inputs; k++) {
    const int input = c.count ? c.inputs[k] : f.inputs[k].input;
    g.scalar[2 + k] = {PathScalar::kInput, nullptr, nullptr, nullptr, input};
    for (int i = 0; i < f.input_count; i++) {
      if (f.inputs[i].input == input) g.slope[2 + k] = f.inputs[i].*law.by_input;
    }
  }
  for (int k = 0; k < c.count * c.count; k++) g.second[k] = law.second[k];
  return g;
}

PathFunction damping_function(const DataView& d, const PathCurvature& c, const CurvedPath& path,
                              Arena& arena) {
  const PathForce& f = *c.of;
  const LawDerivatives law{f.damping, f.damping_dlength, f.damping_drate, &InputSlope::damping,
                           c.damping};
  return law_function(d, c, path, law, arena);
}

const double* acting_motion(const Path& p, const double* mu, const unsigned char* frozen, int nv,
                            Arena& arena) {
  if (!frozen) return mu;
  double* acting = arena.zeros<double>(nv);
  for (int k = 0; k < p.n; k++) {
    if (!frozen[p.dofs[k]]) acting[p.dofs[k]] = mu[p.dofs[k]];
  }
  return acting;
}

PathProduct implicit_power(const ModelView& m, const StepDifferential& s, const CurvedPath& path,
                           const double* nu, Arena& arena) {
  return path_product(
      path, nu, s.step.w,
      [&](int i, int j) { return in_damping(m, s.forward.tree, s.step.block, i, j); }, arena);
}

PathFunction force_function(const DataView& d, const PathCurvature& c, const CurvedPath& path,
                            Arena& arena) {
  const PathForce& f = *c.of;
  const LawDerivatives law{f.force, f.dlength, f.drate, &InputSlope::force, c.force};
  return law_function(d, c, path, law, arena);
}

PathCurvatures path_curvatures(const ModelView& m, const DataView& d, const PathForces& paths,
                               Arena& arena) {
  const int tendons = paths.tendon_count;
  PathCurvature* all =
      arena.take<PathCurvature>(tendons + paths.actuation.weight_count + m.ntendon);
  tendon_curvatures(m, d, paths.tendon, all, arena);
  return {all, tendons + actuator_curvatures(m, d, paths.actuation, all + tendons, arena), tendons};
}

void add_path_hessians(const ModelView& m, const DataView& d, const StepDifferential& s,
                       const double* mu, const double* nu, const QuadraticForm& form,
                       Arena& arena) {
  const PathForces& paths = s.forward.paths;
  const PathCurvatures all = path_curvatures(m, d, paths, arena);
  for (int k = 0; k < all.count; k++) {
    const PathCurvature& c = all.item[k];
    const CurvedPath path{c.of->path, c.source};
    if (path.path.n == 0) continue;
    const Arena::Mark mark = arena.mark();

    // mu . m^T F; the rows of saturated joints are omitted for actuators
    const unsigned char* frozen = k < all.tendons ? nullptr : paths.actuation.frozen;
    const double* acting = acting_motion(path.path, mu, frozen, m.nv, arena);
    const PathScalar power{PathScalar::kVirtual, &path, acting, nullptr, 0};
    const PathFunction force = force_function(d, c, path, arena);
    add_path_function(m, d, multiply(force, &power, nullptr, 1, arena), 1, form, arena);

    // nu . h D w
    if (is_implicit(m) && !has_metric(m)) {
      const PathFunction damping = damping_function(d, c, path, arena);
      const PathProduct implicit = implicit_power(m, s, path, nu, arena);
      add_path_function(m, d, multiply(damping, implicit.a, implicit.b, implicit.count, arena),
                        m.opt.timestep, form, arena);
    }
    arena.rewind(mark);
  }
}

}  // namespace mujacobian
