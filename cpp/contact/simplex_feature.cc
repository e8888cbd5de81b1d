#include "contact/simplex_feature.h"

#include <cmath>

#include "contact/kinematics.h"

namespace mujacobian {

template <class S>
SimplexBasisT<S> simplex_basis(const SimplexFeatureT<S>& f) {
  SimplexBasisT<S> b{f.size - 1, {}, {}, {}};
  for (int i = 0; i < b.size; i++) b.edge[i] = difference(f, i + 1) - difference(f, 0);
  if (b.size == 1) b.dual[0] = (1 / dot(b.edge[0], b.edge[0])) * b.edge[0];
  if (b.size == 2) {
    b.cross = cross(b.edge[0], b.edge[1]);
    const S area = dot(b.cross, b.cross);
    b.dual[0] = (1 / area) * cross(b.edge[1], b.cross);
    b.dual[1] = (1 / area) * cross(b.cross, b.edge[0]);
  }
  return b;
}

ContactPoint rederive(const SimplexFeature& f, Vec3 towards) {
  Vec3 witness[2] = {};
  for (int s = 0; s < 2; s++) {
    for (int k = 0; k < f.size; k++) witness[s] += f.weight[k] * f.point[s][k];
  }
  // a plane has a normal even where the witness points meet
  Vec3 normal = f.size == 3 ? simplex_basis(f).cross : witness[1] - witness[0];
  normal = (std::copysign(1, dot(normal, towards)) / norm(normal)) * normal;
  double distance = dot(normal, difference(f, 0)) - f.radius;
  return {distance, 0.5 * (witness[0] + witness[1] - f.radius * normal), normal};
}

double slack(const SimplexFeature&, Vec3) { return 0; }

double agreement(const SimplexFeature& f, double) { return f.tolerance; }

namespace {

// With u = sum of weight dw and t = sum of d_i (de_i . n):
//   d(weight_i) = -d_i . (u + D t),   dn = -t + (u across n and the edges) / D            (CON-22)
// Also returns the changes of weights 1 and 2.
template <class S>
ContactPointT<S> vary(const SimplexFeatureT<S>& f, const ContactPointT<S>& at,
                      const MotionT<S> motion[2], S dweight[2]) {
  const SimplexBasisT<S> b = simplex_basis(f);
  const S reach = at.distance + f.radius;
  const Vec3T<S> n = at.normal;

  // velocities of the pairs: differences, and their sums and those of the points at fixed weights
  Vec3T<S> moved[3], sum[3], carried{}, middle{}, tilt{};
  for (int k = 0; k < f.size; k++) {
    Vec3T<S> v0 = at_point(motion[0], f.point[0][k] - at.position);
    Vec3T<S> v1 = at_point(motion[1], f.point[1][k] - at.position);
    moved[k] = v1 - v0;
    sum[k] = f.point[0][k] + f.point[1][k];
    carried += f.weight[k] * moved[k];
    middle += f.weight[k] * (v0 + v1);
  }
  for (int i = 0; i < b.size; i++) tilt += dot(moved[i + 1] - moved[0], n) * b.dual[i];

  // change of the distance, and of the position with the weights
  ContactPointT<S> v;
  v.distance = dot(n, carried);
  Vec3T<S> aside = carried - v.distance * n;
  for (int i = 0; i < b.size; i++) {
    aside = aside - dot(b.dual[i], carried) * b.edge[i];
    dweight[i] = -dot(b.dual[i], carried + reach * tilt);
    middle += dweight[i] * (sum[i + 1] - sum[0]);
  }
  v.normal = -tilt;
  if (f.size < 3) v.normal += (1 / reach) * aside;
  v.position = 0.5 * (middle - f.radius * v.normal);
  return v;
}

}  // namespace

template <class S>
ContactPointT<S> vary(const SimplexFeatureT<S>& f, const ContactPointT<S>& at,
                      const MotionT<S> motion[2]) {
  S dweight[2];
  return vary(f, at, motion, dweight);
}

template <class S>
SimplexFeatureT<S> moved(const SimplexFeature& f, const ContactPoint& at,
                         const MotionT<S> motion[2], const ContactSource&) {
  SimplexFeatureT<S> result = constant<S>(f);
  S dweight[2];
  vary(result, constant<S>(at), motion, dweight);
  for (int k = 0; k < f.size; k++) {
    for (int s = 0; s < 2; s++) {
      result.point[s][k] = moved_point(motion[s], at.position, f.point[s][k]);
    }
    if (k == 0) continue;
    result.weight[k] = result.weight[k] + dweight[k - 1];
    result.weight[0] = result.weight[0] - dweight[k - 1];
  }
  return result;
}

template SimplexBasis simplex_basis(const SimplexFeature&);
template ContactPoint vary(const SimplexFeature&, const ContactPoint&, const Motion[2]);
template ContactPointT<Packet> vary(const SimplexFeatureT<Packet>&, const ContactPointT<Packet>&,
                                    const MotionT<Packet>[2]);
template ContactPointT<ContactDual> vary(const SimplexFeatureT<ContactDual>&,
                                         const ContactPointT<ContactDual>&,
                                         const MotionT<ContactDual>[2]);
template SimplexFeatureT<ContactDual> moved(const SimplexFeature&, const ContactPoint&,
                                            const MotionT<ContactDual>[2], const ContactSource&);

Growth grow(const SimplexFeature&, const Geom&, int, int) { return {}; }

std::string describe(const SimplexFeature& f) {
  return f.size == 1 ? "pair of vertices" : std::to_string(f.size) + " pairs of vertices";
}

}  // namespace mujacobian
