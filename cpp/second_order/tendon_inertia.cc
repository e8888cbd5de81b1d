#include "second_order/tendon_inertia.h"

#include "forces/link.h"
#include "forces/passive.h"
#include "forces/tendon.h"
#include "forces/tendon_curvature.h"
#include "second_order/body_pair.h"
#include "second_order/path_function.h"
#include "tree/inertia.h"

namespace mujacobian {
namespace {

// Calls visit(tendon, armature) for the spatial tendons with armature. The inertia of other tendons
// is constant.
template <class F>
void visit_armatures(const ModelView& m, F visit) {
  for (int t = 0; t < m.ntendon; t++) {
    const double armature = tendon_armature(m, t);
    if (armature != 0 && !tendon_is_fixed(m, t)) visit(t, armature);
  }
}

// The acceleration of the length of a straight piece of a tendon between points of two bodies, with
// the accelerations of the bodies at rest of the joints.                                   (TEN-5)
class StretchRate : public PairFunction {
 public:
  // `r` are the points from the common point
  StretchRate(const PairState& at, const Vec3 r[2], double weight)
      : at_(at), r_(r), weight_(weight) {}

  PairCotangent derivative(const PairState& by) const override {
    // relative motion of the two ends
    PairVec r[2], u[2], span{0, 0, 0}, v{0, 0, 0}, a{0, 0, 0};
    MotionT<PairNumber> velocity[2], acceleration[2];
    for (int s = 0; s < 2; s++) {
      r[s] = with(r_[s], at_point(by.pose.of[s], r_[s]));
      velocity[s] = with(at_.velocity.of[s], by.velocity.of[s]);
      acceleration[s] = with(at_.acceleration.of[s], by.acceleration.of[s]);
      u[s] = at_point(velocity[s], r[s]);
      span += kSign[s] * r[s];
      v += kSign[s] * u[s];
      a += kSign[s] * (at_point(acceleration[s], r[s]) + cross(velocity[s].ang, u[s]));
    }

    // the cotangents of a, v and of the span
    const PairNumber length = sqrt(dot(span, span)), inverse = PairNumber(1) / length;
    const PairVec n = inverse * span;
    const PairNumber along = dot(n, v);
    const PairVec across = v - along * n, turn = a - (2 * along * inverse) * v;
    const PairVec v_bar = (2 * inverse) * across;
    const PairNumber shorter = dot(n, turn) + inverse * dot(across, across);
    const PairVec span_bar = inverse * (turn - shorter * n);

    // through the ends to the bodies
    PairCotangent bar{};
    for (int s = 0; s < 2; s++) {
      const PairNumber weight = kSign[s] * weight_;
      const PairVec a_bar = weight * n, w = velocity[s].ang;
      const PairVec u_bar = weight * v_bar + cross(a_bar, w);
      bar.acceleration[s] = {cross(r[s], a_bar), a_bar};
      bar.velocity[s] = {cross(r[s], u_bar) + cross(u[s], a_bar), u_bar};
      const PairVec r_bar = weight * span_bar + cross(a_bar, acceleration[s].ang) + cross(u_bar, w);
      bar.pose[s] = {cross(r[s], r_bar), r_bar};
    }
    return bar;
  }

 private:
  static constexpr double kSign[2] = {-1, 1};
  const PairState& at_;
  const Vec3* r_;
  double weight_;
};

// Adds `weight` times the second derivatives of the acceleration of the length of a tendon at rest
// of the joints.
void add_stretch_rate(const ModelView& m, const DataView& d, int tendon, double weight,
                      const MotionSweep& sweep, const QuadraticForm& form, Arena& arena) {
  QuadraticForm still = form;
  still.mixed = nullptr;
  visit_links(m, d, tendon, [&](const Link& link) {
    if (link.rigid()) return;
    const Vec3 end[2] = {load3(link.end[0]), load3(link.end[1])};
    const Vec3 r[2] = {{0, 0, 0}, end[1] - end[0]};
    const Pair p = make_pair(m, d, link.site_body, end[0], sweep, nullptr, nullptr, arena);
    add_pair_function(m, p, StretchRate(p.at, r, weight * link.scale), still, arena);
  });
}

}  // namespace

void add_tendon_inertia_hessian(const ModelView& m, const DataView& d, const Topology& tree,
                                const double* x, const double* mu, const QuadraticForm& form,
                                Arena& arena) {
  visit_armatures(m, [&](int t, double armature) {
    const CurvedPath path{tendon_path(m, d, t, arena), tendon_source(m, t)};
    auto in_pattern = [&](int i, int j) { return in_mass_matrix(m, tree, i, j); };
    const PathProduct product = path_product(path, mu, x, in_pattern, arena);
    PathFunction constant = make_path_function(0, arena);
    constant.value = armature;
    add_path_function(m, d, multiply(constant, product.a, product.b, product.count, arena), 1, form,
                      arena);
  });
}

void add_tendon_bias_hessian(const ModelView& m, const DataView& d, const double* mu,
                             const QuadraticForm& form, Arena& arena) {
  MotionSweep sweep{nullptr, nullptr};
  visit_armatures(m, [&](int t, double armature) {
    if (!sweep.rates) sweep = sweep_motion(m, d, nullptr, {0, 0, 0}, arena);
    const CurvedPath path{tendon_path(m, d, t, arena), tendon_source(m, t)};
    const Path& p = path.path;
    const double* still = arena.zeros<double>(m.nv);
    const TendonAcceleration beta = tendon_acceleration(m, d, t, p, still, sweep, arena);

    // beta times the virtual rate of the tendon, and their second derivatives
    PathFunction rate = make_path_function(1, arena);
    rate.scalar[0] = {PathScalar::kVirtual, &path, mu, nullptr, 0};
    rate.slope[0] = 1;
    add_path_function(m, d, rate, armature * beta.value, form, arena);
    add_stretch_rate(m, d, t, armature * rate.scalar[0].rate(), sweep, form, arena);

    // products of first derivatives
    double* slope = arena.take<double>(p.n);
    path_rate_derivative(p, mu, slope);
    for (int i = 0; i < p.n; i++)
      for (int k = 0; k < p.n; k++) {
        double* row = form.q(p.dofs[i]);
        row[form.q_column(p.dofs[k])] += armature * slope[i] * beta.dq[k];
        row[form.v_column(p.dofs[k])] += armature * slope[i] * beta.dv[k];
      }
  });
}

}  // namespace mujacobian
