#include "second_order/path.h"

#include <cstring>

#include "actuation/curvature.h"
#include "forces/implicit.h"
#include "forces/tendon.h"

namespace mujacobian {
namespace {

// A number with its derivatives with respect to the length, the rate and the inputs of a path.
struct LawDerivatives {
  double value, by_length, by_rate;
  double InputSlope::* by_input;
  const double* second;  // (count, count) of PathCurvature
};

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

}  // namespace

const double* acting_motion(const Path& p, const double* mu, const unsigned char* frozen, int nv,
                            Arena& arena) {
  if (!frozen) return mu;
  double* acting = arena.zeros<double>(nv);
  for (int k = 0; k < p.n; k++) {
    if (!frozen[p.dofs[k]]) acting[p.dofs[k]] = mu[p.dofs[k]];
  }
  return acting;
}

ImplicitPower implicit_power(const ModelView& m, const StepDifferential& s, const CurvedPath& path,
                             const double* nu, Arena& arena) {
  const Path& p = path.path;
  ImplicitPower r{arena.take<PathScalar>(p.n), arena.take<PathScalar>(p.n), 0};
  unsigned char** rows = arena.take<unsigned char*>(p.n);  // of each term
  for (int i = 0; i < p.n; i++) {
    unsigned char* pattern = arena.take<unsigned char>(p.n);
    for (int j = 0; j < p.n; j++) {
      pattern[j] = in_damping(m, s.forward.tree, s.step.block, p.dofs[i], p.dofs[j]);
    }
    int k = 0;
    while (k < r.count && std::memcmp(r.b[k].mask, pattern, p.n)) k++;
    if (k == r.count) {
      rows[k] = arena.zeros<unsigned char>(p.n);
      r.a[k] = {PathScalar::kVirtual, &path, nu, rows[k], 0};
      r.b[k] = {PathScalar::kAcceleration, &path, s.step.w, pattern, 0};
      r.count++;
    }
    rows[k][i] = 1;
  }
  return r;
}

PathFunction force_function(const DataView& d, const PathCurvature& c, const CurvedPath& path,
                            Arena& arena) {
  const PathForce& f = *c.of;
  const LawDerivatives law{f.force, f.dlength, f.drate, &InputSlope::force, c.force};
  return law_function(d, c, path, law, arena);
}

void add_path_hessians(const ModelView& m, const DataView& d, const StepDifferential& s,
                       const double* mu, const double* nu, const QuadraticForm& form,
                       Arena& arena) {
  const PathForces& paths = s.forward.paths;
  PathCurvature* all = arena.take<PathCurvature>(paths.tendon_count + paths.actuation.weight_count);
  tendon_curvatures(m, d, paths.tendon, all, arena);
  const int actuators = actuator_curvatures(m, d, paths.actuation, all + paths.tendon_count, arena);
  for (int k = 0; k < paths.tendon_count + actuators; k++) {
    const PathCurvature& c = all[k];
    const PathForce& f = *c.of;
    const CurvedPath path{f.path, c.source};
    if (path.path.n == 0) continue;
    const Arena::Mark mark = arena.mark();

    // mu . m^T F; the rows of saturated joints are omitted for actuators
    const unsigned char* frozen = k < paths.tendon_count ? nullptr : paths.actuation.frozen;
    const double* acting = acting_motion(path.path, mu, frozen, m.nv, arena);
    const PathScalar power{PathScalar::kVirtual, &path, acting, nullptr, 0};
    const PathFunction force = force_function(d, c, path, arena);
    add_path_function(m, d, multiply(force, &power, nullptr, 1, arena), 1, form, arena);

    // nu . h D w
    if (is_implicit(m)) {
      const LawDerivatives law{f.damping, f.damping_dlength, f.damping_drate, &InputSlope::damping,
                               c.damping};
      const PathFunction damping = law_function(d, c, path, law, arena);
      const ImplicitPower implicit = implicit_power(m, s, path, nu, arena);
      add_path_function(m, d, multiply(damping, implicit.a, implicit.b, implicit.count, arena),
                        m.opt.timestep, form, arena);
    }
    arena.rewind(mark);
  }
}

}  // namespace mujacobian
