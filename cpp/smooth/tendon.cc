#include "smooth/tendon.h"

#include "layout/engine.h"
#include "layout/enums.h"
#include "smooth/passive.h"
#include "smooth/point.h"
#include "smooth/unsupported.h"

namespace mujacobian {
namespace {

// Sites closer than this have no direction (mjMINVAL is MuJoCo's own guard).
constexpr double kMinLength = 1e-15;

// A straight piece of a spatial tendon between sites of different bodies.
struct Segment {
  Point end[2];
  Vec3 direction;        // unit, from end[0] to end[1]
  double length, scale;  // scale: one over the pulley's divisor
};

bool is_fixed(const ModelView& m, int tendon) {
  return m.wrap_type[m.tendon_adr[tendon]] == wrap::kJoint;
}

template <class F>
void visit_segments(const ModelView& m, const DataView& d, int tendon, F visit) {
  double divisor = 1;
  for (int w = m.tendon_adr[tendon], last = w + m.tendon_num[tendon] - 1; w < last; w++) {
    if (m.wrap_type[w] == wrap::kPulley) divisor = m.wrap_prm[w];
    if (m.wrap_type[w] != wrap::kSite || m.wrap_type[w + 1] != wrap::kSite) continue;
    int site[2] = {m.wrap_objid[w], m.wrap_objid[w + 1]};
    int body[2] = {m.site_bodyid[site[0]], m.site_bodyid[site[1]]};
    if (body[0] == body[1]) continue;
    Vec3 span = load3(d.site_xpos + 3 * site[1]) - load3(d.site_xpos + 3 * site[0]);
    double length = norm(span);
    if (length < kMinLength) {
      throw Unsupported(element_name(m, object::kTendon, tendon),
                        "two consecutive sites coincide: its moment arm is undefined there");
    }
    visit(Segment{{make_point(m, d, body[0], d.site_xpos + 3 * site[0]),
                   make_point(m, d, body[1], d.site_xpos + 3 * site[1])},
                  (1 / length) * span,
                  length,
                  1 / divisor});
  }
}

// A dof that moves one or both ends of a segment.
struct EndMotion {
  int local;  // its index within the tendon's dofs
  int dof;
  bool moves[2];
  Vec3 jacobian;  // of the span end[1] - end[0]
};

// The dofs that move a segment; `local` maps dofs to indices within the tendon.
int end_motions(const ModelView& m, const DataView& d, const Segment& s, const int* local,
                EndMotion* out) {
  int i = last_dof(m, s.end[0].body), j = last_dof(m, s.end[1].body), n = 0;
  while (i >= 0 || j >= 0) {
    EndMotion e;
    e.dof = i > j ? i : j;
    e.moves[0] = i == e.dof, e.moves[1] = j == e.dof;
    e.local = local[e.dof];
    e.jacobian = {0, 0, 0};
    if (e.moves[1]) e.jacobian += point_jacobian(d, s.end[1], e.dof), j = m.dof_parentid[j];
    if (e.moves[0]) e.jacobian += -point_jacobian(d, s.end[0], e.dof), i = m.dof_parentid[i];
    out[n++] = e;
  }
  return n;
}

// Indices of the tendon's dofs within its row, 0 for other dofs: MuJoCo's row has every dof that
// moves one of the tendon's bodies.
int* local_indices(const ModelView& m, int tendon, Arena& arena) {
  int* local = arena.zeros<int>(m.nv);
  const int* dofs = m.ten_J_colind + m.ten_J_rowadr[tendon];
  for (int k = 0; k < m.ten_J_rownnz[tendon]; k++) local[dofs[k]] = k;
  return local;
}

// d(ten_J_j)/dq_k summed over the segments                                              (TEN-3)
double* tendon_hessian(const ModelView& m, const DataView& d, int tendon, Arena& arena) {
  int n = m.ten_J_rownnz[tendon];
  double* hessian = arena.zeros<double>(n * n);
  int* local = local_indices(m, tendon, arena);
  EndMotion* motions = arena.take<EndMotion>(m.nv);
  visit_segments(m, d, tendon, [&](const Segment& s) {
    int count = end_motions(m, d, s, local, motions);
    for (int a = 0; a < count; a++) {
      const EndMotion& j = motions[a];
      Vec3 across = j.jacobian - dot(s.direction, j.jacobian) * s.direction;
      for (int b = 0; b < count; b++) {
        const EndMotion& k = motions[b];
        double h = dot(across, k.jacobian) / s.length;
        for (int e = 0; e < 2; e++) {
          if (!j.moves[e] || !k.moves[e]) continue;
          double along = dot(s.direction, point_hessian(m, d, s.end[e], j.dof, k.dof));
          h += e ? along : -along;
        }
        hessian[j.local * n + k.local] += s.scale * h;
      }
    }
  });
  return hessian;
}

// beta = d(ten_J)/dt . v and its derivatives with respect to the tendon's dofs          (TEN-5)
struct TendonBias {
  double value;
  double *dq, *dv;
};
TendonBias tendon_bias(const ModelView& m, const DataView& d, int tendon, const MotionSweep& sweep,
                       Arena& arena) {
  int n = m.ten_J_rownnz[tendon];
  TendonBias bias{0, arena.zeros<double>(n), arena.zeros<double>(n)};
  int* local = local_indices(m, tendon, arena);
  EndMotion* motions = arena.take<EndMotion>(m.nv);
  visit_segments(m, d, tendon, [&](const Segment& s) {
    PointMotion p0 = point_motion(d, sweep, s.end[0]), p1 = point_motion(d, sweep, s.end[1]);
    Vec3 v = p1.v - p0.v, a = p1.a - p0.a;
    double along = dot(s.direction, v);
    Vec3 across = v - along * s.direction;
    bias.value += s.scale * (dot(s.direction, a) + dot(across, across) / s.length);

    int count = end_motions(m, d, s, local, motions);
    for (int b = 0; b < count; b++) {
      const EndMotion& k = motions[b];
      Vec3 dv_q{0, 0, 0}, da_q{0, 0, 0}, dv_v{0, 0, 0}, da_v{0, 0, 0};
      for (int e = 0; e < 2; e++) {
        if (!k.moves[e]) continue;
        double sign = e ? 1 : -1;
        PointMotion dq = point_motion_dq(d, sweep, s.end[e], k.dof);
        PointMotion dv = point_motion_dv(d, sweep, s.end[e], k.dof);
        dv_q += sign * dq.v, da_q += sign * dq.a, dv_v += sign * dv.v, da_v += sign * dv.a;
      }
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

bool tendon_wraps(const ModelView& m, int tendon) {
  for (int w = m.tendon_adr[tendon], last = w + m.tendon_num[tendon]; w < last; w++) {
    int type = m.wrap_type[w];
    if (type != wrap::kJoint && type != wrap::kPulley && type != wrap::kSite) return true;
  }
  return false;
}

Path tendon_path(const ModelView& m, const DataView& d, int tendon, Arena& arena) {
  int adr = m.ten_J_rowadr[tendon];
  const double* moment = d.ten_J + adr;
  return {m.ten_J_rownnz[tendon], m.ten_J_colind + adr, moment, moment,
          is_fixed(m, tendon) ? nullptr : tendon_hessian(m, d, tendon, arena)};
}

int tendon_forces(const ModelView& m, const DataView& d, PathForce* forces, Arena& arena) {
  int count = 0;
  for (int t = 0; t < m.ntendon; t++) {
    const double* p = m.tendon_stiffnesspoly + kNPoly * t;
    Poly stiffness{m.tendon_stiffness[t], {p[0], p[1]}};
    Poly damping = tendon_damping(m, t);
    if (!springs_enabled(m)) stiffness = {};
    if (!dampers_enabled(m)) damping = {};
    if (stiffness.zero() && damping.zero()) continue;

    // dead band: no force between the two rest lengths
    double length = d.ten_length[t], rate = d.ten_velocity[t];
    double lower = m.tendon_lengthspring[2 * t], upper = m.tendon_lengthspring[2 * t + 1];
    double x = length > upper ? length - upper : length < lower ? length - lower : 0;
    bool slack = length <= upper && length >= lower && lower < upper;

    PathForce& f = forces[count++];
    f = {};
    f.path = tendon_path(m, d, t, arena);
    f.force = -x * stiffness.coefficient(x) - rate * damping.coefficient(rate < 0 ? -rate : rate);
    f.dlength = slack ? 0 : -stiffness.slope(x);
    f.drate = -damping.slope_odd(rate);
    f.damping = f.drate;
    f.damping_drate = -damping.curvature_odd(rate);
  }
  return count;
}

void add_tendon_armature(const ModelView& m, const DataView& d, const Topology& tree,
                         const double* acc, const Residual& residual, Arena& arena) {
  MotionSweep sweep{nullptr, nullptr};
  for (int t = 0; t < m.ntendon; t++) {
    double armature = tendon_armature(m, t);
    if (armature == 0 || is_fixed(m, t)) continue;  // a fixed tendon's inertia is constant
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

}  // namespace mujacobian
