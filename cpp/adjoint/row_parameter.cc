#include <algorithm>
#include <cmath>

#include "adjoint/curve.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "linear/combine.h"

namespace mujacobian {
namespace {

// mjMINMU: the least friction coefficient of a contact
constexpr double kMinMu = 1e-5;

double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

// Returns 1 within the range in which MuJoCo does not clamp a number, else 0.
// tie: range of solimp
double inside(double x, double low, double high) { return x >= low && x <= high ? 1 : 0; }

}  // namespace

void add_force(const Block& b, const double change[kMaxRows], double* column) {
  for (int r = 0; r < b.count; r++) {
    for (int k = 0; k < b.n; k++) column[b.dofs[k]] += b.J[r * b.stride + k] * change[r];
  }
}

double impedance_slope(const double given[5], double gap, int k) {
  const double d0 = clamp(given[0], kMinImp, kMaxImp), d1 = clamp(given[1], kMinImp, kMaxImp);
  const double width = std::fmax(0, given[2]), mid = clamp(given[3], kMinImp, kMaxImp);
  const double power = std::fmax(1, given[4]);
  const double free[5] = {inside(given[0], kMinImp, kMaxImp), inside(given[1], kMinImp, kMaxImp),
                          inside(given[2], 0, INFINITY), inside(given[3], kMinImp, kMaxImp),
                          inside(given[4], 1, INFINITY)};
  // tie: width of solimp
  if (width <= kMinVal) return k < 2 ? 0.5 * free[k] : 0;
  const double x = std::abs(gap) / width;
  // tie: saturated solimp
  if (x >= 1) return k == 1 ? free[1] : 0;
  if (x <= 0) return k == 0 ? free[0] : 0;
  // tie: midpoint of solimp
  const bool early = x <= mid;
  const double from = early ? x : 1 - x, end = early ? mid : 1 - mid;
  const double rest = std::pow(from, power) / std::pow(end, power - 1);  // y, or 1 - y
  const double y = early ? rest : 1 - rest, sign = early ? 1 : -1;
  const double slope = power * rest / from;  // dy/dx
  const double partial[5] = {1 - y, y, -(d1 - d0) * slope * x / width,
                             -(d1 - d0) * (power - 1) * rest / end,
                             (d1 - d0) * sign * rest * std::log(from / end)};
  return free[k] * partial[k];
}

double largest_impedance_slope(const double solimp[5], int k) {
  return k == 1 ? inside(solimp[1], kMinImp, kMaxImp) : 0;
}

namespace {

// J a - aref in contact coordinates.
struct Gap {
  double x[kMaxRows];         // per row; for pyramids from half sums and differences of edges
  double velocity[kMaxRows];  // J v, in the same form
};
Gap gaps(const DataView& d, const Block& b, const double* acc) {
  Gap g{};
  for (int r = 0; r < b.count; r++) {
    double aref;
    if (b.edges == b.count) {
      aref = d.efc_aref[b.row + r];
      g.velocity[r] = d.efc_vel[b.row + r];
    } else {
      const int edge = b.row + (r > 0 ? 2 * (r - 1) : 0);
      const double scale = r > 0 ? 0.5 / b.contact.friction.v[r - 1] : 0.5, sign = r > 0 ? -1 : 1;
      aref = scale * (d.efc_aref[edge] + sign * d.efc_aref[edge + 1]);
      g.velocity[r] = scale * (d.efc_vel[edge] + sign * d.efc_vel[edge + 1]);
    }
    for (int k = 0; k < b.n; k++) g.x[r] += b.J[r * b.stride + k] * acc[b.dofs[k]];
    g.x[r] -= aref;
  }
  return g;
}

// Returns the explicit pair of the contact, which has its own parameters, or -1.
int pair_of(const ModelView& m, const ContactView& c) {
  for (int k = 0; k < m.npair; k++) {
    const int a = m.pair_geom1[k], b = m.pair_geom2[k];
    if ((a == c.geom.v[0] && b == c.geom.v[1]) || (a == c.geom.v[1] && b == c.geom.v[0])) return k;
  }
  return -1;
}

// Returns the weight of geom `side` in numbers that two geoms mix, unless one has priority.
double mix_weight(const ModelView& m, const ContactView& c, int side) {
  const int own = c.geom.v[side], other = c.geom.v[1 - side];
  if (m.geom_priority[own] != m.geom_priority[other]) {
    return m.geom_priority[own] > m.geom_priority[other] ? 1 : 0;
  }
  const double a = m.geom_solmix[own], b = m.geom_solmix[other];
  // tie: solmix
  if (a >= kMinVal && b >= kMinVal) return a / (a + b);
  if (a < kMinVal && b < kMinVal) return 0.5;
  return a < kMinVal ? 0 : 1;
}

// Returns the derivative of max(a, b) with respect to a, one half if both are equal.     (PAR-24)
// tie: larger of two parameters
double max_weight(double a, double b) { return a > b ? 1 : a < b ? 0 : 0.5; }

// Returns the weight of geom `side` in the friction of the contact. The larger coefficient counts,
// and at least mjMINMU.
double friction_weight(const ModelView& m, const ContactView& c, int side, int component) {
  const int own = c.geom.v[side], other = c.geom.v[1 - side];
  const double a = m.geom_friction[3 * own + component];
  // tie: least friction
  if (a < kMinMu) return 0;
  if (m.geom_priority[own] != m.geom_priority[other]) return mix_weight(m, c, side);
  return max_weight(a, m.geom_friction[3 * other + component]);
}

// Returns the weight of geom `side` in the contact's solref. Positive numbers are mixed, otherwise
// the smaller one counts.
double solref_weight(const ModelView& m, const ContactView& c, int side, int component) {
  const int own = c.geom.v[side], other = c.geom.v[1 - side];
  const double *a = m.geom_solref + 2 * own, *b = m.geom_solref + 2 * other;
  const bool same = m.geom_priority[own] == m.geom_priority[other];
  // tie: format of solref
  if (!same || (a[0] > 0 && b[0] > 0)) return mix_weight(m, c, side);
  return max_weight(-a[component], -b[component]);
}

// Writes the changes of the friction coefficients of a contact: sliding twice, torsion, rolling
// twice.
void friction_change(int component, double weight, double change[5]) {
  const int source[5] = {0, 0, 1, 2, 2};
  for (int k = 0; k < 5; k++) change[k] = source[k] == component ? weight : 0;
}

// Edges n +- mu_k t_k with R = 2 mu^2 R_n, R_n ~ 1 + mu^2 or constant                      (PAR-8)
void pyramid_change(const Block& b, const DataView& d, const Gap& g, const double dmu[5],
                    double change[kMaxRows]) {
  const double mu = b.contact.friction.v[0];
  const double normal = has_least_softness(d, b) ? 0 : 2 * mu / (1 + mu * mu);
  const double dlogD = -dmu[0] * (2 / mu + normal);
  for (int k = 1; k < b.count; k++) {
    for (int side = 0; side < 2; side++) {
      const double sign = side ? -1 : 1, friction = sign * b.contact.friction.v[k - 1];
      const double x = g.x[0] + friction * g.x[k], D = d.efc_D[b.row + 2 * (k - 1) + side];
      // tie: edge of a pyramid as a parameter
      if (x >= 0) continue;
      const double force = -D * x;
      const double dforce = force * dlogD - D * sign * dmu[k - 1] * g.x[k];
      change[0] += dforce;
      change[k] += friction * dforce + sign * dmu[k - 1] * force;
    }
  }
}

// Sticking: D_r ~ (friction_r / friction_1)^2. On the cone, with u_r = friction_r x_r, t = |u|:
//   f_n = -D / (1 + mu^2) (x_n - t),   f_r = -f_n / t friction_r^2 x_r                     (PAR-9)
void cone_change(const Block& b, const DataView& d, const Gap& g, const double dmu[5],
                 double change[kMaxRows]) {
  const double* friction = b.contact.friction.v;
  double t2 = 0, tdt = 0;
  for (int r = 1; r < b.count; r++) {
    t2 += friction[r - 1] * friction[r - 1] * g.x[r] * g.x[r];
    tdt += friction[r - 1] * dmu[r - 1] * g.x[r] * g.x[r];
  }
  bool sticking = true;  // sliding couples the normal with a tangent
  for (int r = 1; r < b.count; r++) sticking &= b.hessian[r] == 0;
  if (sticking) {
    for (int r = 2; r < b.count; r++) {
      const double dlogD = 2 * (dmu[r - 1] / friction[r - 1] - dmu[0] / friction[0]);
      change[r] = dlogD * b.force[r];
    }
    return;
  }
  const double t = std::sqrt(t2), dt = tdt / t, mu = b.contact.mu;
  const double dmu2 = 2 * mu * mu / friction[0] * dmu[0];  // of mu^2
  const double D = d.efc_D[b.row] / (1 + mu * mu), normal = -D * (g.x[0] - t);
  const double dnormal = D * dt - normal * dmu2 / (1 + mu * mu);
  change[0] = dnormal;
  for (int r = 1; r < b.count; r++) {
    const double f = friction[r - 1];
    change[r] = -g.x[r] / t * (f * f * (dnormal - normal * dt / t) + 2 * f * dmu[r - 1] * normal);
  }
}

void friction_force(const DataView& d, const Block& b, const Gap& g, const double dmu[5],
                    double change[kMaxRows]) {
  if (b.type == constraint::kContactPyramidal) pyramid_change(b, d, g, dmu, change);
  if (b.type == constraint::kContactElliptic) cone_change(b, d, g, dmu, change);
}

}  // namespace

SpringChange spring_change(const ModelView& m, const double ref[2], double d0, double d1,
                           double top, double dtop) {
  // MuJoCo replaces a solref of mixed signs by its default
  const double fallback[2] = {0.02, 1};
  // tie: solref of mixed signs
  if ((ref[0] > 0) != (ref[1] > 0)) ref = fallback, d0 = d1 = 0;
  if (ref[0] <= 0) {
    return {(-d0 + 2 * ref[0] * dtop / top) / (top * top), (-d1 + ref[1] * dtop / top) / top};
  }
  const bool safe = !(m.opt.disableflags & disable::kRefSafe);
  const double least = safe ? 2 * m.opt.timestep : 0;
  // tie: solref of two timesteps
  d0 *= max_weight(ref[0], least);
  const double time = std::fmax(ref[0], least), ratio = ref[1];
  const double k = 1 / (top * top * time * time * ratio * ratio);
  return {-2 * k * (dtop / top + d0 / time + d1 / ratio),
          -2 / (top * time) * (dtop / top + d0 / time)};
}

namespace {

// Changes of stiffness, damping (normal, friction) and impedance of a contact.
struct RowChange {
  double stiffness, damping[2], impedance;
};

// Returns the changes for a contact. Its friction may have a solref of its own.
RowChange reference_change(const ModelView& m, const Block& b, ContactNumber number, int component,
                           double weight) {
  const ContactView& c = b.contact;
  const double top = clamp(c.solimp.v[1], kMinImp, kMaxImp);
  const double dtop = number == ContactNumber::kSolimp
                          ? weight * largest_impedance_slope(c.solimp.v, component)
                          : 0;
  const bool own_friction = b.type == constraint::kContactElliptic &&
                            (c.solreffriction.v[0] != 0 || c.solreffriction.v[1] != 0);
  RowChange change{};
  for (int kind = 0; kind < 2; kind++) {
    const bool separate = kind == 1 && own_friction;
    const double* ref = separate ? c.solreffriction.v : c.solref.v;
    const auto own = separate ? ContactNumber::kFrictionSolref : ContactNumber::kSolref;
    const double d0 = number == own && component == 0 ? weight : 0;
    const double d1 = number == own && component == 1 ? weight : 0;
    const SpringChange spring = spring_change(m, ref, d0, d1, top, dtop);
    if (kind == 0) change.stiffness = spring.stiffness;
    change.damping[kind] = spring.damping;
  }
  return change;
}

// df = -H dx + f dlogD with dx = -d(aref), aref = -b v - k imp gap                         (PAR-7)
void reference_force(const ModelView& m, const DataView& d, const Block& b, const Gap& g,
                     ContactNumber number, int component, double weight, double change[kMaxRows]) {
  const double gap = d.efc_pos[b.row] - d.efc_margin[b.row];
  const double *kbip = d.efc_KBIP + 4 * b.row, imp = kbip[2];
  RowChange row = reference_change(m, b, number, component, weight);
  if (number == ContactNumber::kSolimp) {
    row.impedance = weight * impedance_slope(b.contact.solimp.v, gap, component);
  }
  double dx[kMaxRows];
  for (int r = 0; r < b.count; r++) dx[r] = row.damping[r > 0] * g.velocity[r];
  dx[0] += (row.stiffness * imp + kbip[0] * row.impedance) * gap;
  const double dlogD = has_least_softness(d, b) ? 0 : row.impedance / (imp * (1 - imp));
  for (int r = 0; r < b.count; r++) {
    change[r] = b.force[r] * dlogD;
    for (int c = 0; c < b.count; c++) change[r] -= b.hessian[r * b.count + c] * dx[c];
  }
}

void add_one_contact(const ColumnContext& x, const Parameter& p, const Block& b, int side,
                     const Column& column) {
  const ModelView& m = x.m;
  const DataView& d = x.d;
  const ContactView& c = b.contact;
  if (c.adhesion != 0) {
    throw Unsupported(contact_name(m, c), "parameters of adhesive contacts are not supported");
  }
  double change[kMaxRows] = {};
  const Gap g = gaps(d, b, x.s.forward.solved);
  if (p.kind == Parameter::kFriction) {
    double dmu[5];
    friction_change(p.component, contact_weight(m, c, side, p), dmu);
    friction_force(d, b, g, dmu, change);
  } else {
    const auto number =
        p.kind == Parameter::kSolimp ? ContactNumber::kSolimp : ContactNumber::kSolref;
    reference_force(m, d, b, g, number, p.component, contact_weight(m, c, side, p), change);
  }
  add_force(b, change, column.early);
}

}  // namespace

void contact_number_change(const ModelView& m, const DataView& d, const Block& b, const double* acc,
                           ContactNumber number, int component, double change[kMaxRows]) {
  const Gap g = gaps(d, b, acc);
  std::fill(change, change + kMaxRows, 0.);
  if (number != ContactNumber::kFriction) {
    return reference_force(m, d, b, g, number, component, 1, change);
  }
  double dmu[5] = {};
  dmu[component] = 1;
  friction_force(d, b, g, dmu, change);
}

// Dry friction at its limit changes with the limit.                                        (PAR-6)
void add_friction_loss(ColumnContext& x, const Parameter& p, const Column& column) {
  const bool of_tendon = kind_of(p).element == object::kTendon;
  const int type = of_tendon ? constraint::kFrictionTendon : constraint::kFrictionDof;
  for (int k = 0; k < x.s.forward.blocks.count; k++) {
    const Block& b = x.s.forward.blocks.block[k];
    if (b.type != type || b.id != p.id || b.hessian[0] != 0) continue;
    const double sign = b.force[0] / x.d.efc_frictionloss[b.row];
    add_force(b, &sign, column.early);
  }
}

// The moments of spatial tendons turn with the position.
void curve_friction_loss(CurveContext& x, const Parameter& p, const ParameterSlopes& to) {
  if (kind_of(p).element != object::kTendon) return;
  const Blocks& blocks = x.s.forward.blocks;
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (b.type != constraint::kFrictionTendon || b.id != p.id || b.hessian[0] != 0) continue;
    const double sign = b.force[0] / x.d.efc_frictionloss[b.row];
    const double* turned = jacobian_change(x.m, x.d, blocks, b, x.curved.mu.g, x.arena);
    for (int i = 0; i < b.n; i++) to.state[b.dofs[i]] += sign * turned[i];
  }
}

// A limit that moves acts as a joint that moves the other way. Its solref changes aref.  (PAR-14)
void add_limit(ColumnContext& x, const Parameter& p, const Column& column) {
  const ModelView& m = x.m;
  const DataView& d = x.d;
  for (int k = 0; k < x.s.forward.blocks.count; k++) {
    const Block& b = x.s.forward.blocks.block[k];
    if (b.type != constraint::kLimitJoint || b.id != p.id || !b.active) continue;
    const double gap = d.efc_pos[b.row] - d.efc_margin[b.row], velocity = d.efc_vel[b.row];
    double change;
    if (p.kind == Parameter::kLimit) {
      // tie: side of a limit as a parameter
      if ((p.component == 0) != (b.J[0] > 0)) continue;
      const ReferenceAcceleration r = reference_acceleration(m, d, b);
      const double pull = r.stiffness + r.through(gap, velocity, d.efc_aref[b.row]);
      change = -b.J[0] * (b.force[0] * r.dlogD - b.hessian[0] * pull);
    } else {
      const double top = clamp(m.jnt_solimp[5 * p.id + 1], kMinImp, kMaxImp);
      const SpringChange spring =
          spring_change(m, m.jnt_solref + 2 * p.id, p.component == 0, p.component == 1, top, 0);
      const double imp = d.efc_KBIP[4 * b.row + 2];
      change = -b.hessian[0] * (spring.damping * velocity + spring.stiffness * imp * gap);
    }
    add_force(b, &change, column.early);
  }
}

void require_limit(const ModelView& m, const Parameter& p) {
  if (p.kind == Parameter::kLimitSolref && has_metric(m)) {
    throw Unsupported(
        element_name(m, object::kJoint, p.id),
        "the solref of its limit is not supported as a parameter with the discrete integrator");
  }
  require_single_dof(m, p, "limits of a joint with several dofs are not supported as parameters");
}

double contact_weight(const ModelView& m, const ContactView& c, int side, const Parameter& p) {
  // with this flag, contacts read the options, not their geoms
  if (c.geom.v[side] != p.id || m.opt.enableflags & enable::kOverride || pair_of(m, c) >= 0)
    return 0;
  if (p.kind == Parameter::kFriction) return friction_weight(m, c, side, p.component);
  if (p.kind == Parameter::kSolref) return solref_weight(m, c, side, p.component);
  return mix_weight(m, c, side);
}

void add_contact(ColumnContext& x, const Parameter& p, const Column& column) {
  for (int k = 0; k < x.s.forward.blocks.count; k++) {
    const Block& b = x.s.forward.blocks.block[k];
    if (!b.geometry || !b.active) continue;
    for (int side = 0; side < 2; side++) {
      if (contact_weight(x.m, b.contact, side, p) != 0) add_one_contact(x, p, b, side, column);
    }
  }
}

void add_pair(ColumnContext& x, const Parameter& p, const Column& column) {
  if (x.m.opt.enableflags & enable::kOverride) return;
  const ContactNumber number = p.kind == Parameter::kPairFriction ? ContactNumber::kFriction
                               : p.kind == Parameter::kPairSolref ? ContactNumber::kSolref
                               : p.kind == Parameter::kPairFrictionSolref
                                   ? ContactNumber::kFrictionSolref
                                   : ContactNumber::kSolimp;
  for (int k = 0; k < x.s.forward.blocks.count; k++) {
    const Block& b = x.s.forward.blocks.block[k];
    if (!b.geometry || !b.active || pair_of(x.m, b.contact) != p.id) continue;
    // tie: least friction
    if (number == ContactNumber::kFriction && b.contact.friction.v[p.component] <= kMinMu) continue;
    double change[kMaxRows];
    contact_number_change(x.m, x.d, b, x.s.forward.solved, number, p.component, change);
    add_force(b, change, column.early);
  }
}

void require_contact(const ModelView& m, const Parameter&) {
  const char* reason = "parameters of contacts and geoms are not supported with it";
  if (has_metric(m)) throw Unsupported("integrator discrete", reason);
  if (m.opt.enableflags & enable::kDiagExact) throw Unsupported("option diagexact", reason);
}

}  // namespace mujacobian
