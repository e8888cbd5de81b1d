#include "forces/tendon.h"

#include <algorithm>

#include "forces/link.h"
#include "forces/passive.h"
#include "forces/tendon_curvature.h"
#include "forces/wrap.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "tree/inertia.h"
#include "tree/point.h"

namespace mujacobian {
namespace {

// A geom between two sites that the tendon wraps around.
struct WrappedGeom {
  Wrap wrap;
  Point site[2];     // the sites before and after it
  Point on_geom[2];  // the same points of space, as points of the body of the geom
};

// A straight piece of a spatial tendon, between points of different bodies.
struct Segment {
  Point end[2];
  Vec3 direction;           // unit, from end[0] to end[1]
  double length, scale;     // scale: one over the divisor of the pulley
  const WrappedGeom* geom;  // null between two sites
  int slipping;             // the end that slips on the geom

  // Returns the motion of the slipping end on the surface of the geom with q_k.        (WRAP-7)
  Vec3 slip(const ModelView& m, const DataView& d, int k) const;
};

// Returns whether the dof moves the body.
bool moves(const ModelView& m, int dof, int body) {
  int last = last_dof(m, body);
  while (last > dof) last = m.dof_parentid[last];
  return last == dof;
}

Vec3 Segment::slip(const ModelView& m, const DataView& d, int k) const {
  Vec3 sum = {0, 0, 0};
  for (int e = 0; e < 2; e++) {
    Vec3 relative = {0, 0, 0};
    if (moves(m, k, geom->site[e].body)) relative += point_jacobian(d, geom->site[e], k);
    if (moves(m, k, geom->on_geom[e].body)) relative += -point_jacobian(d, geom->on_geom[e], k);
    sum += geom->wrap.slip[1 - slipping][e] * relative;
  }
  return sum;
}

Segment make_segment(const ModelView& m, const DataView& d, int tendon, const int body[2],
                     const double* from, const double* to, double scale) {
  Vec3 span = load3(to) - load3(from);
  double length = norm(span);
  // tie: tendon of no length
  if (length < kMinVal) {
    throw Unsupported(element_name(m, object::kTendon, tendon),
                      "two consecutive points of its path coincide: its moment arm is undefined");
  }
  return {{make_point(m, d, body[0], from), make_point(m, d, body[1], to)},
          (1 / length) * span,
          length,
          scale,
          nullptr,
          0};
}

// Calls visit(segment) for the straight pieces of a spatial tendon.
template <class F>
void visit_segments(const ModelView& m, const DataView& d, int tendon, F visit) {
  visit_links(m, d, tendon, [&](const Link& link) {
    if (link.rigid()) return;
    const auto& [body, end, scale, index, wrapped, points] = link;
    if (index < 0) return visit(make_segment(m, d, tendon, body, end[0], end[1], scale));

    // from the first site to the geom, and from the geom to the second site
    const Vec3 ends[2] = {load3(end[0]), load3(end[1])};
    const WrappedGeom geom = {
        find_wrap(m, d, tendon, index, ends, points),
        {make_point(m, d, body[0], end[0]), make_point(m, d, body[1], end[1])},
        {make_point(m, d, wrapped, end[0]), make_point(m, d, wrapped, end[1])}};
    const int first[2] = {body[0], wrapped}, second[2] = {wrapped, body[1]};
    Segment arriving = make_segment(m, d, tendon, first, end[0], points, scale);
    Segment leaving = make_segment(m, d, tendon, second, points + 3, end[1], scale);
    arriving.geom = leaving.geom = &geom;
    arriving.slipping = 1;
    visit(arriving);
    visit(leaving);
  });
}

// A dof that moves a segment, by its ends or by the geom that the tendon wraps around.
struct EndMotion {
  int local;  // its index within the dofs of the tendon
  int dof;
  bool moves[2];  // the ends that it moves
  Vec3 jacobian;  // motion of the span end[1] - end[0], with the ends fixed to their bodies
  Vec3 slip;      // motion of the slipping end on the geom
};

// Writes the dofs that move the points of a segment relative to one another, and returns their
// number. Dofs that move all points together do not change its length. `local` maps dofs to indices
// within the tendon.
int end_motions(const ModelView& m, const DataView& d, const Segment& s, const int* local,
                EndMotion* out) {
  // the site on the other side of the geom moves the touching point, too
  int bodies[3] = {s.end[0].body, s.end[1].body, s.end[0].body};
  if (s.geom) bodies[2] = s.geom->site[s.slipping].body;

  // climb from the bodies to the root until their dofs are the same
  int at[3], n = 0;
  for (int b = 0; b < 3; b++) at[b] = last_dof(m, bodies[b]);
  while (at[0] != at[1] || at[1] != at[2]) {
    EndMotion e;
    e.dof = std::max({at[0], at[1], at[2]});
    if (e.dof < 0) break;
    e.local = local[e.dof];
    e.jacobian = e.slip = {0, 0, 0};
    for (int b = 0; b < 3; b++) {
      bool moved = at[b] == e.dof;
      if (moved) at[b] = m.dof_parentid[e.dof];
      if (b < 2) e.moves[b] = moved;
    }
    if (e.moves[0]) e.jacobian += -point_jacobian(d, s.end[0], e.dof);
    if (e.moves[1]) e.jacobian += point_jacobian(d, s.end[1], e.dof);
    if (s.geom) e.slip = s.slip(m, d, e.dof);
    out[n++] = e;
  }
  return n;
}

// Adds d(ten_J_j)/dq_k of one segment to the Hessian (n, n).                      (TEN-3, WRAP-8)
void add_hessian(const ModelView& m, const DataView& d, const Segment& s, const EndMotion* motions,
                 int count, double* hessian, int n) {
  for (int a = 0; a < count; a++) {
    const EndMotion& j = motions[a];
    Vec3 across = j.jacobian - dot(s.direction, j.jacobian) * s.direction;
    // if the end slips, j rotates another point of the body
    Vec3 lever = {0, 0, 0};
    if (s.geom && j.moves[s.slipping]) lever = cross(s.direction, load3(d.cdof + 6 * j.dof));
    Vec3 slip = (s.slipping ? 1 : -1) * ((1 / s.length) * across + lever);
    for (int b = 0; b < count; b++) {
      const EndMotion& k = motions[b];
      double h = dot(across, k.jacobian) / s.length + dot(slip, k.slip);
      for (int e = 0; e < 2; e++) {
        if (!j.moves[e] || !k.moves[e]) continue;
        double along = dot(s.direction, point_hessian(m, d, s.end[e], j.dof, k.dof));
        h += e ? along : -along;
      }
      hessian[j.local * n + k.local] += s.scale * h;
    }
  }
}

// Adds the difference between dl/dq and the moment. MuJoCo computes the touching points of inside
// wraps only to a tolerance, so that the length is not exactly stationary there.        (WRAP-9)
void add_inside_gradient(const Segment& s, const EndMotion* motions, int count, double* gradient) {
  for (int k = 0; k < count; k++) {
    double stretch = s.scale * dot(s.direction, motions[k].slip);
    gradient[motions[k].local] += s.slipping ? stretch : -stretch;
  }
}

// beta = d(ten_J)/dt . v and its derivatives with respect to the dofs of the tendon     (TEN-5)
struct TendonBias {
  double value;
  double *dq, *dv;
};
TendonBias tendon_bias(const ModelView& m, const DataView& d, int tendon, const MotionSweep& sweep,
                       Arena& arena) {
  int n = m.ten_J_rownnz[tendon];
  TendonBias bias{0, arena.zeros<double>(n), arena.zeros<double>(n)};
  int* local = tendon_indices(m, tendon, arena);
  EndMotion* motions = arena.take<EndMotion>(m.nv);
  visit_segments(m, d, tendon, [&](const Segment& s) {
    // relative motion of the two ends, along the segment and across it
    PointMotion p0 = point_motion(d, sweep, s.end[0]), p1 = point_motion(d, sweep, s.end[1]);
    Vec3 v = p1.v - p0.v, a = p1.a - p0.a;
    double along = dot(s.direction, v);
    Vec3 across = v - along * s.direction;
    bias.value += s.scale * (dot(s.direction, a) + dot(across, across) / s.length);

    int count = end_motions(m, d, s, local, motions);
    for (int b = 0; b < count; b++) {
      // its change with one dof
      const EndMotion& k = motions[b];
      Vec3 dv_q{0, 0, 0}, da_q{0, 0, 0}, dv_v{0, 0, 0}, da_v{0, 0, 0};
      for (int e = 0; e < 2; e++) {
        if (!k.moves[e]) continue;
        double sign = e ? 1 : -1;
        PointMotion dq = point_motion_dq(d, sweep, s.end[e], k.dof);
        PointMotion dv = point_motion_dv(d, sweep, s.end[e], k.dof);
        dv_q += sign * dq.v, da_q += sign * dq.a, dv_v += sign * dv.v, da_v += sign * dv.a;
      }
      // the direction and the length of the segment change, too
      double stretch = dot(s.direction, k.jacobian);
      Vec3 turn = (1 / s.length) * (k.jacobian - stretch * s.direction);
      bias.dq[k.local] += s.scale * (dot(turn, a) + dot(s.direction, da_q) +
                                     (2 * dot(across, dv_q) - 2 * along * dot(turn, v)) / s.length -
                                     dot(across, across) * stretch / (s.length * s.length));
      bias.dv[k.local] += s.scale * (dot(s.direction, da_v) + 2 * dot(across, dv_v) / s.length);
    }
  });
  return bias;
}

}  // namespace

bool tendon_is_fixed(const ModelView& m, int tendon) {
  return m.wrap_type[m.tendon_adr[tendon]] == wrap::kJoint;
}

int* tendon_indices(const ModelView& m, int tendon, Arena& arena) {
  int* local = arena.zeros<int>(m.nv);
  const int* dofs = m.ten_J_colind + m.ten_J_rowadr[tendon];
  for (int k = 0; k < m.ten_J_rownnz[tendon]; k++) local[dofs[k]] = k;
  return local;
}

bool tendon_wraps(const ModelView& m, int tendon) {
  for (int w = m.tendon_adr[tendon], last = w + m.tendon_num[tendon]; w < last; w++) {
    int type = m.wrap_type[w];
    if (type != wrap::kJoint && type != wrap::kPulley && type != wrap::kSite) return true;
  }
  return false;
}

Path tendon_path(const ModelView& m, const DataView& d, int tendon, Arena& arena) {
  const int adr = m.ten_J_rowadr[tendon], n = m.ten_J_rownnz[tendon];
  const double* moment = d.ten_J + adr;
  if (tendon_is_fixed(m, tendon)) return {n, m.ten_J_colind + adr, moment, moment, nullptr};

  double* gradient = arena.take<double>(n);
  double* hessian = arena.zeros<double>(n * n);
  std::copy(moment, moment + n, gradient);
  const int* local = tendon_indices(m, tendon, arena);
  EndMotion* motions = arena.take<EndMotion>(m.nv);
  visit_segments(m, d, tendon, [&](const Segment& s) {
    int count = end_motions(m, d, s, local, motions);
    add_hessian(m, d, s, motions, count, hessian, n);
    if (s.geom && s.geom->wrap.inside) add_inside_gradient(s, motions, count, gradient);
  });
  return {n, m.ten_J_colind + adr, moment, gradient, hessian};
}

const double* tendon_moment(const ModelView& m, const DataView& d, int tendon, Arena& arena) {
  double* moment = arena.zeros<double>(m.ten_J_rownnz[tendon]);
  const int* local = tendon_indices(m, tendon, arena);
  EndMotion* motions = arena.take<EndMotion>(m.nv);
  visit_segments(m, d, tendon, [&](const Segment& s) {
    for (int k = 0, count = end_motions(m, d, s, local, motions); k < count; k++) {
      moment[motions[k].local] += s.scale * dot(s.direction, motions[k].jacobian);
    }
  });
  return moment;
}

namespace {

// Returns the damping of a tendon, zero if dampers are disabled.
Poly acting_damping(const ModelView& m, int t) {
  return dampers_enabled(m) ? tendon_damping(m, t) : Poly{};
}

// The extension of a tendon beyond the dead band: there is no force between the two rest lengths.
struct TendonExtension {
  double x;
  bool slack;
};
TendonExtension tendon_extension(const ModelView& m, const DataView& d, int t) {
  double length = d.ten_length[t];
  const double* rest = m.tendon_lengthspring + 2 * t;
  if (is_plastic(m.tendon_plasticadr, t)) rest = d.plastic + m.tendon_plasticadr[t];
  double lower = rest[0], upper = rest[1];
  // tie: dead band
  double x = length > upper ? length - upper : length < lower ? length - lower : 0;
  // tie: only rest length
  bool slack = length <= upper && length >= lower && lower < upper;
  return {x, slack};
}

}  // namespace

Poly acting_stiffness(const ModelView& m, int t) {
  const double* p = m.tendon_stiffnesspoly + kNPoly * t;
  return springs_enabled(m) ? Poly{m.tendon_stiffness[t], {p[0], p[1]}} : Poly{};
}

bool tendon_force(const ModelView& m, const DataView& d, int t, const Path& path, PathForce& f) {
  const Poly stiffness = acting_stiffness(m, t), damping = acting_damping(m, t);
  if (stiffness.zero() && damping.zero()) return false;

  const double rate = d.ten_velocity[t];
  const auto [x, slack] = tendon_extension(m, d, t);

  // the force, its derivatives, and the parts of these that implicit integrators use
  f = {};
  f.path = path;
  // tie: tendon damping at rest
  f.force = -x * stiffness.coefficient(x) - rate * damping.coefficient(rate < 0 ? -rate : rate);
  f.dlength = slack ? 0 : -stiffness.slope(x);
  f.drate = -damping.slope_odd(rate);
  f.damping = f.drate;
  f.damping_drate = -damping.curvature_odd(rate);
  if (x != 0) {
    f.stiffness = f.dlength;
    f.stiffness_dlength = -stiffness.curvature(x);
  }
  return true;
}

void tendon_curvatures(const ModelView& m, const DataView& d, const PathForce* forces,
                       PathCurvature* out, Arena& arena) {
  for (int t = 0; t < m.ntendon; t++) {
    const Poly stiffness = acting_stiffness(m, t), damping = acting_damping(m, t);
    if (stiffness.zero() && damping.zero()) continue;
    const auto [x, slack] = tendon_extension(m, d, t);
    double* force = arena.zeros<double>(4);
    double* implicit = arena.zeros<double>(4);
    if (!slack) force[0] = -stiffness.curvature(x);
    force[3] = -damping.curvature_odd(d.ten_velocity[t]);
    implicit[3] = -damping.third();
    *out++ = {forces++, 2, nullptr, force, implicit, tendon_source(m, t)};
  }
}

int tendon_forces(const ModelView& m, const DataView& d, PathForce* forces, Arena& arena) {
  int count = 0;
  for (int t = 0; t < m.ntendon; t++) {
    PathForce& f = forces[count];
    if (!tendon_force(m, d, t, {}, f)) continue;
    f.path = tendon_path(m, d, t, arena);
    count++;
  }
  return count;
}

void add_tendon_armature(const ModelView& m, const DataView& d, const Topology& tree,
                         const double* acc, const DofRows& residual, Arena& arena) {
  MotionSweep sweep{nullptr, nullptr};
  for (int t = 0; t < m.ntendon; t++) {
    double armature = tendon_armature(m, t);
    if (armature == 0 || tendon_is_fixed(m, t))
      continue;  // the inertia of a fixed tendon is constant
    if (!sweep.rates) sweep = sweep_motion(m, d, nullptr, {0, 0, 0}, arena);
    Path p = tendon_path(m, d, t, arena);
    TendonBias bias = tendon_bias(m, d, t, sweep, arena);

    for (int i = 0; i < p.n; i++) {
      // row i of (J^T J) a within the pattern of M, and its change                      (TEN-4)
      double product = bias.value;
      double* change = arena.take<double>(p.n);
      for (int k = 0; k < p.n; k++) change[k] = bias.dq[k];
      for (int j = 0; j < p.n; j++) {
        if (!in_mass_matrix(m, tree, p.dofs[i], p.dofs[j])) continue;
        double a = acc[p.dofs[j]];
        product += p.moment[j] * a;
        for (int k = 0; k < p.n; k++) change[k] += a * p.hessian[j * p.n + k];
      }
      for (int k = 0; k < p.n; k++) {
        residual.dq(p.dofs[i], p.dofs[k]) -=
            armature * (p.hessian[i * p.n + k] * product + p.moment[i] * change[k]);
        residual.dv(p.dofs[i], p.dofs[k]) -= armature * p.moment[i] * bias.dv[k];
      }
    }
  }
}

TendonAcceleration tendon_acceleration(const ModelView& m, const DataView& d, int tendon,
                                       const Path& p, const double* acc, const MotionSweep& still,
                                       Arena& arena) {
  TendonBias sum = tendon_bias(m, d, tendon, still, arena);
  for (int i = 0; i < p.n; i++) {
    const double a = acc[p.dofs[i]];
    sum.value += p.moment[i] * a;
    for (int k = 0; k < p.n; k++) sum.dq[k] += a * p.hessian[i * p.n + k];
  }
  return {sum.value, sum.dq, sum.dv};
}

TendonPull tendon_pull(const ModelView& m, const DataView& d, int tendon, int body,
                       const Motion* motions, int count, Arena& arena) {
  const int n = m.ten_J_rownnz[tendon];
  TendonPull pull{false, arena.zeros<double>(count), arena.zeros<double>(count * n)};
  int* local = tendon_indices(m, tendon, arena);
  EndMotion* ends = arena.take<EndMotion>(m.nv);
  // whether a body is in the subtree; the world never is
  auto inside = [&](int b) {
    if (b == 0) return false;
    while (b > body) b = m.body_parentid[b];
    return b == body;
  };
  visit_segments(m, d, tendon, [&](const Segment& s) {
    const bool first = inside(s.end[0].body), second = inside(s.end[1].body);
    if (first == second) return;  // a segment within the subtree has no effect, nor has one outside
    pull.any = true;

    // dl/dz: the end in the subtree moves along the segment
    const int e = second ? 1 : 0;
    const double sign = second ? s.scale : -s.scale;
    const Vec3 offset = s.end[e].offset;
    for (int z = 0; z < count; z++) {
      pull.value[z] += sign * dot(s.direction, at_point(motions[z], offset));
    }

    // its change with every dof that moves the segment
    for (int b = 0, found = end_motions(m, d, s, local, ends); b < found; b++) {
      const EndMotion& k = ends[b];
      Vec3 span = k.jacobian, moved{0, 0, 0};
      if (k.moves[e]) moved += point_jacobian(d, s.end[e], k.dof);
      if (s.geom) {
        span += s.slipping ? k.slip : -k.slip;
        if (s.slipping == e) moved += k.slip;
      }
      // the direction of the segment turns, and the motion z turns with its body
      const Vec3 turn = (1 / s.length) * (span - dot(s.direction, span) * s.direction);
      const bool carries = moves(m, k.dof, body);
      for (int z = 0; z < count; z++) {
        const Motion& motion = motions[z];
        Vec3 change = cross(motion.ang, moved);
        if (carries) change += at_point(cross(dof_axis(d, k.dof), motion), offset);
        pull.change[z * n + k.local] +=
            sign * (dot(turn, at_point(motion, offset)) + dot(s.direction, change));
      }
    }
  });
  return pull;
}

}  // namespace mujacobian
