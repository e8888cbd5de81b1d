#include "adjoint/path_parameter.h"
#include "forces/passive.h"
#include "forces/tendon.h"

namespace mujacobian {
namespace {

// The extension of a tendon beyond its rest length, and the shares of both ends of the dead band.
struct TendonStretch {
  double x;
  double share[2];
  bool plastic;  // the rest length is a state

  bool is_slack() const { return share[0] == 0 && share[1] == 0; }
};

TendonStretch tendon_stretch(const ModelView& m, const DataView& d, int tendon) {
  const bool plastic = is_plastic(m.tendon_plasticadr, tendon);
  const double* rest =
      plastic ? d.plastic + m.tendon_plasticadr[tendon] : m.tendon_lengthspring + 2 * tendon;
  const double length = d.ten_length[tendon];
  // tie: dead band as a parameter
  if (length > rest[1]) return {length - rest[1], {0, 1}, plastic};
  // tie: dead band as a parameter
  if (length < rest[0]) return {length - rest[0], {1, 0}, plastic};
  // at the only rest length of a spring, both ends of the dead band share the slope      (PAR-24)
  // tie: only rest length as a parameter
  const double share = rest[0] == rest[1] ? 0.5 : 0;
  return {0, {share, share}, plastic};
}

// A tendon as a path. Its second derivatives are not needed.
CurvedPath tendon_path_of(const CurveContext& x, int tendon) {
  return {tendon_path(x.m, x.d, tendon, x.arena), {-1, -1}};
}

}  // namespace

void add_tendon(ColumnContext& x, const Parameter& p, const Column& column) {
  PathForce f{};
  const Path path = tendon_path(x.m, x.d, p.id, x.arena);
  const bool acts = tendon_force(x.m, x.d, p.id, path, f);
  if (p.kind == Parameter::kTendonDamping) {
    if (!dampers_enabled(x.m)) return;
    const double damping = has_metric(x.m) && f.damping > 0 ? 0 : -1;
    return add_path(x, {path, -x.d.ten_velocity[p.id], damping, 0}, nullptr, column);
  }
  if (!springs_enabled(x.m)) return;
  const TendonStretch stretch = tendon_stretch(x.m, x.d, p.id);
  const bool stabilizes = f.stiffness <= 0;
  if (p.kind == Parameter::kTendonStiffness) {
    if (stretch.is_slack() || stretch.x == 0) return;
    return add_path(x, {path, -stretch.x, 0, stabilizes ? -1. : 0}, nullptr, column);
  }
  const double share = stretch.share[p.component];
  if (stretch.plastic || share == 0 || !acts) return;
  const double stiffening = stabilizes ? -share * f.stiffness_dlength : 0;
  add_path(x, {path, -share * f.dlength, 0, stiffening}, nullptr, column);
}

void curve_tendon(CurveContext& x, const Parameter& p, const ParameterSlopes& to) {
  if (p.kind == Parameter::kTendonDamping) {
    if (!dampers_enabled(x.m)) return;
    const PathLaw law{-x.d.ten_velocity[p.id], 0, -1, {}, -1, 0, 0, {}};
    return add_law_slopes(x, tendon_path_of(x, p.id), law, nullptr, to);
  }
  const TendonStretch stretch = tendon_stretch(x.m, x.d, p.id);
  if (!springs_enabled(x.m) || stretch.is_slack()) return;
  if (p.kind == Parameter::kTendonStiffness) {
    return add_law_slopes(x, tendon_path_of(x, p.id), {-stretch.x, -1, 0, {}, 0, 0, 0, {}}, nullptr,
                          to);
  }
  if (stretch.plastic) return;
  const Poly spring = acting_stiffness(x.m, p.id);
  const double share = stretch.share[p.component];
  const PathLaw law{
      share * spring.slope(stretch.x), share * spring.curvature(stretch.x), 0, {}, 0, 0, 0, {}};
  add_law_slopes(x, tendon_path_of(x, p.id), law, nullptr, to);
}

void couple_tendons(CurveContext& x, const ParameterList& params, ParameterPairs& pairs) {
  for (int j = 0; springs_enabled(x.m) && j < params.count; j++) {
    const Parameter& p = params.item[j];
    if (p.kind != Parameter::kTendonRestLength) continue;
    const TendonStretch stretch = tendon_stretch(x.m, x.d, p.id);
    if (stretch.plastic || stretch.is_slack()) continue;
    // the force along the path is -x k(x) with x = length - rest
    const Path path = tendon_path(x.m, x.d, p.id, x.arena);
    double power = 0;
    for (int i = 0; i < path.n; i++) power += path.moment[i] * x.curved.mu.g[path.dofs[i]];
    const double curvature = acting_stiffness(x.m, p.id).curvature(stretch.x);
    const double share = stretch.share[p.component];
    for (int k = 0; k < params.count; k++) {
      const Parameter& other = params.item[k];
      if (other.id != p.id) continue;
      if (other.kind == Parameter::kTendonStiffness) pairs.add(j, k, share * power);
      if (other.kind != Parameter::kTendonRestLength || k > j) continue;
      pairs.add(j, k, -share * stretch.share[other.component] * curvature * power);
    }
  }
}

}  // namespace mujacobian
