#include "contact/support_feature.h"

#include <cmath>
#include <utility>

#include "contact/kinematics.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr int kUnknowns = 8;

// Solves a x = b by elimination with pivoting; column n of `a` is b, then x. False if singular.
template <class S>
bool solve(S a[kUnknowns][kUnknowns + 1], int n) {
  for (int p = 0; p < n; p++) {
    int best = p;
    for (int r = p + 1; r < n; r++)
      if (std::abs(value(a[r][p])) > std::abs(value(a[best][p]))) best = r;
    if (std::abs(value(a[best][p])) < 1e-14) return false;
    for (int c = 0; c <= n; c++) std::swap(a[p][c], a[best][c]);
    for (int r = 0; r < n; r++) {
      if (r == p) continue;
      const S factor = a[r][p] / a[p][p];
      for (int c = p; c <= n; c++) a[r][c] = a[r][c] - factor * a[p][c];
    }
  }
  for (int r = 0; r < n; r++) a[r][n] = a[r][n] / a[r][r];
  return true;
}

template <class S>
S support_distance(const SupportFeatureT<S>& f, Vec3T<S> n) {
  return dot(n, f.side[1].point - f.side[0].point) - f.side[0].radius - f.side[1].radius;
}

bool is_curved(const SupportSide& side) {
  bool curved = false;
  for (double entry : side.follow.m) curved |= entry != 0;
  return curved;
}

const char* side_name(const SupportSide& side) {
  if (is_curved(side)) return "curved surface";
  switch (side.slides) {
    case 0:
      return side.radius == 0 ? "vertex" : "center";
    case 1:
      return side.radius == 0 ? "edge" : "axis";
    default:
      return "face";
  }
}

// How the support of an ellipsoid, or of the rim of a cylinder, follows the outward normal n. Every
// component of n is computed in the frame of the geom, because the normal at a rim can be so close
// to the axis that differences of larger numbers lose its radial part.                     (CON-37)
template <class S>
Mat3T<S> support_follow(const GeomT<S>& geom, const Vec3T<S>& n) {
  const double* s = geom.size;
  const Vec3T<S> u = column(geom.frame, 0), v = column(geom.frame, 1), w = geom.axis();
  const Vec3T<S> local = transpose_mul(geom.frame, n);
  if (geom.type == geom::kCylinder) {
    const S flat = norm(Vec3T<S>{local.x, local.y, 0});
    const Vec3T<S> t = (local.x / flat) * v - (local.y / flat) * u;
    return outer((s[0] / flat) * t, t);
  }
  const Vec3T<S> sn{s[0] * local.x, s[1] * local.y, s[2] * local.z};
  const S inverse = 1 / norm(sn);
  const Vec3T<S> x = inverse * (geom.frame * Vec3T<S>{s[0] * sn.x, s[1] * sn.y, s[2] * sn.z});
  return outer((s[0] * s[0] * inverse) * u, u) + outer((s[1] * s[1] * inverse) * v, v) +
         outer((s[2] * s[2] * inverse) * w, w) + outer((-inverse) * x, x);
}

}  // namespace

// Unknowns: dn (3), ddist, slides t. With n_0 = n, n_1 = -n and D = dist + radii:
//   dx_1 - dx_0 - D dn - n ddist = -gap,   dx_s = moved_s + W_s (+-dn - turn_s x n_s) + a t
//   n . dn = 0,   a . dn = -n . (turn x a) for every slide a
template <class S>
SupportChangeT<S> support_change(const SupportFeatureT<S>& f, Vec3T<S> n, S distance,
                                 const Vec3T<S> moved[2], const Vec3T<S> turn[2], Vec3T<S> gap) {
  const S reach = distance + f.side[0].radius + f.side[1].radius;
  S a[kUnknowns][kUnknowns + 1] = {};
  const int size = 4 + f.side[0].slides + f.side[1].slides;

  // velocities of the points at fixed normal and slides
  const Vec3T<S> outward[2] = {n, -n};
  Vec3T<S> rest[2];
  for (int s = 0; s < 2; s++) {
    rest[s] = moved[s] - f.side[s].follow * cross(turn[s], outward[s]);
  }

  // rows 0 to 2: the gap stays closed; row 3: the normal keeps its length
  S right[3], nv[3] = {n.x, n.y, n.z};
  store3(right, rest[0] - rest[1] - gap);
  for (int r = 0; r < 3; r++) {
    for (int k = 0; k < 3; k++) {
      a[r][k] = -f.side[1].follow(r, k) - f.side[0].follow(r, k) - (r == k ? reach : S(0));
    }
    a[r][3] = -nv[r];
    a[r][size] = right[r];
    a[3][r] = nv[r];
  }

  // the other rows: the normal stays perpendicular to the straight directions
  for (int s = 0, at = 4; s < 2; s++) {
    for (int k = 0; k < f.side[s].slides; k++, at++) {
      S slide[3];
      store3(slide, f.side[s].slide[k]);
      for (int r = 0; r < 3; r++) {
        a[r][at] = s ? slide[r] : -slide[r];
        a[at][r] = slide[r];
      }
      a[at][size] = -dot(n, cross(turn[s], f.side[s].slide[k]));
    }
  }
  SupportChangeT<S> change{};
  if (!solve(a, size)) {
    change.distance = NAN;
    return change;
  }

  // the points follow the normal and slide
  change.normal = {a[0][size], a[1][size], a[2][size]};
  change.distance = a[3][size];
  for (int s = 0, at = 4; s < 2; s++) {
    change.point[s] = rest[s] + (s ? -1.0 : 1.0) * (f.side[s].follow * change.normal);
    for (int k = 0; k < f.side[s].slides; k++, at++) {
      change.point[s] += a[at][size] * f.side[s].slide[k];
    }
  }
  return change;
}

template <class S>
SupportChangeT<S> support_change(const SupportFeatureT<S>& f, Vec3T<S> n, Vec3T<S> from,
                                 const MotionT<S> motion[2]) {
  Vec3T<S> moved[2], turn[2];
  for (int s = 0; s < 2; s++) {
    moved[s] = velocity(motion[s], from, f.side[s].point);
    turn[s] = motion[s].ang;
  }
  return support_change(f, n, support_distance(f, n), moved, turn, Vec3T<S>{0, 0, 0});
}

template <class S>
SupportFeatureT<S> moved(const SupportFeature& f, Vec3 normal, Vec3 from,
                         const MotionT<S> motion[2], const ContactSource& source) {
  SupportFeatureT<S> result = constant<S>(f);
  const SupportChangeT<S> change = support_change<S>(result, normal, from, motion);
  for (int s = 0; s < 2; s++) {
    SupportSideT<S>& side = result.side[s];
    side.point += change.point[s];
    for (int k = 0; k < side.slides; k++) side.slide[k] = turned(motion[s], side.slide[k]);
    if (!is_curved(f.side[s])) continue;
    const Geom geom = load_geom(source.m, source.d, source.geom[s]);
    side.follow = support_follow(moved<S>(geom, from, motion[s]), normal + change.normal);
  }
  return result;
}

ContactPoint rederive(const SupportFeature& f, Vec3 normal) {
  double distance = support_distance(f, normal);
  return {distance, f.side[0].point + (f.side[0].radius + distance / 2) * normal, normal};
}

// How far the points are from lying on a common normal.
double slack(const SupportFeature& f, Vec3 normal) {
  return norm(across(f.side[1].point - f.side[0].point, normal));
}

double agreement(const SupportFeature&, double curved) { return curved; }

template <class S>
ContactPointT<S> vary(const SupportFeatureT<S>& f, const ContactPointT<S>& at,
                      const MotionT<S> motion[2]) {
  const SupportChangeT<S> c = support_change(f, at.normal, at.position, motion);
  ContactPointT<S> v;
  v.distance = c.distance;
  v.normal = c.normal;
  v.position =
      c.point[0] + (f.side[0].radius + at.distance / 2) * c.normal + (c.distance / 2) * at.normal;
  return v;
}

template SupportChange support_change(const SupportFeature&, Vec3, double, const Vec3[2],
                                      const Vec3[2], Vec3);
template SupportChange support_change(const SupportFeature&, Vec3, Vec3, const Motion[2]);
template SupportChangeT<ContactDual> support_change(const SupportFeatureT<ContactDual>&,
                                                    Vec3T<ContactDual>, Vec3T<ContactDual>,
                                                    const MotionT<ContactDual>[2]);
template SupportChangeT<Packet> support_change(const SupportFeatureT<Packet>&, Vec3T<Packet>,
                                               Vec3T<Packet>, const MotionT<Packet>[2]);
template ContactPoint vary(const SupportFeature&, const ContactPoint&, const Motion[2]);
template ContactPointT<Packet> vary(const SupportFeatureT<Packet>&, const ContactPointT<Packet>&,
                                    const MotionT<Packet>[2]);
template ContactPointT<ContactDual> vary(const SupportFeatureT<ContactDual>&,
                                         const ContactPointT<ContactDual>&,
                                         const MotionT<ContactDual>[2]);
template SupportFeatureT<ContactDual> moved(const SupportFeature&, Vec3, Vec3,
                                            const MotionT<ContactDual>[2], const ContactSource&);

Growth grow(const SupportFeature&, const Geom&, int, int) { return {}; }

std::string describe(const SupportFeature& f) {
  return std::string("supports: ") + side_name(f.side[0]) + " on " + side_name(f.side[1]);
}

}  // namespace mujacobian
