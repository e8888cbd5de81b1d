#include "contact/support_feature.h"

#include <cmath>
#include <utility>

#include "contact/kinematics.h"

namespace mujacobian {
namespace {

constexpr int kUnknowns = 8;

// Solves a x = b by elimination with pivoting; column n of `a` is b, then x. False if singular.
bool solve(double a[kUnknowns][kUnknowns + 1], int n) {
  for (int p = 0; p < n; p++) {
    int best = p;
    for (int r = p + 1; r < n; r++)
      if (std::abs(a[r][p]) > std::abs(a[best][p])) best = r;
    if (std::abs(a[best][p]) < 1e-14) return false;
    for (int c = 0; c <= n; c++) std::swap(a[p][c], a[best][c]);
    for (int r = 0; r < n; r++) {
      if (r == p) continue;
      double factor = a[r][p] / a[p][p];
      for (int c = p; c <= n; c++) a[r][c] -= factor * a[p][c];
    }
  }
  for (int r = 0; r < n; r++) a[r][n] /= a[r][r];
  return true;
}

double support_distance(const SupportFeature& f, Vec3 n) {
  return dot(n, f.side[1].point - f.side[0].point) - f.side[0].radius - f.side[1].radius;
}

const char* side_name(const SupportSide& side) {
  bool curved = false;
  for (double entry : side.follow.m) curved |= entry != 0;
  if (curved) return "curved surface";
  switch (side.slides) {
    case 0:
      return side.radius == 0 ? "vertex" : "center";
    case 1:
      return side.radius == 0 ? "edge" : "axis";
    default:
      return "face";
  }
}

}  // namespace

// Unknowns: dn (3), ddist, slides t. With n_0 = n, n_1 = -n and D = dist + radii:
//   dx_1 - dx_0 - D dn - n ddist = -gap,   dx_s = moved_s + W_s (+-dn - turn_s x n_s) + a t
//   n . dn = 0,   a . dn = -n . (turn x a) for every slide a
SupportChange support_change(const SupportFeature& f, Vec3 n, double distance, const Vec3 moved[2],
                             const Vec3 turn[2], Vec3 gap) {
  const double reach = distance + f.side[0].radius + f.side[1].radius;
  double a[kUnknowns][kUnknowns + 1] = {};
  const int size = 4 + f.side[0].slides + f.side[1].slides;

  // velocities of the points at fixed normal and slides
  const Vec3 outward[2] = {n, -n};
  Vec3 rest[2];
  for (int s = 0; s < 2; s++) {
    rest[s] = moved[s] - f.side[s].follow * cross(turn[s], outward[s]);
  }

  // rows 0 to 2: the gap stays closed; row 3: the normal keeps its length
  double right[3], nv[3] = {n.x, n.y, n.z};
  store3(right, rest[0] - rest[1] - gap);
  for (int r = 0; r < 3; r++) {
    for (int k = 0; k < 3; k++) {
      a[r][k] = -f.side[1].follow(r, k) - f.side[0].follow(r, k) - (r == k ? reach : 0);
    }
    a[r][3] = -nv[r];
    a[r][size] = right[r];
    a[3][r] = nv[r];
  }

  // the other rows: the normal stays perpendicular to the straight directions
  for (int s = 0, at = 4; s < 2; s++) {
    for (int k = 0; k < f.side[s].slides; k++, at++) {
      double slide[3];
      store3(slide, f.side[s].slide[k]);
      for (int r = 0; r < 3; r++) {
        a[r][at] = s ? slide[r] : -slide[r];
        a[at][r] = slide[r];
      }
      a[at][size] = -dot(n, cross(turn[s], f.side[s].slide[k]));
    }
  }
  SupportChange change{};
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

SupportChange support_change(const SupportFeature& f, Vec3 n, Vec3 from, const Motion motion[2]) {
  Vec3 moved[2], turn[2];
  for (int s = 0; s < 2; s++) {
    moved[s] = velocity(motion[s], from, f.side[s].point);
    turn[s] = motion[s].ang;
  }
  return support_change(f, n, support_distance(f, n), moved, turn, {0, 0, 0});
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

ContactPoint vary(const SupportFeature& f, const ContactPoint& at, const Motion motion[2]) {
  const SupportChange c = support_change(f, at.normal, at.position, motion);
  ContactPoint v;
  v.distance = c.distance;
  v.normal = c.normal;
  v.position =
      c.point[0] + (f.side[0].radius + at.distance / 2) * c.normal + (c.distance / 2) * at.normal;
  return v;
}

Growth grow(const SupportFeature&, const Geom&, int, int) { return {}; }

std::string describe(const SupportFeature& f) {
  return std::string("supports: ") + side_name(f.side[0]) + " on " + side_name(f.side[1]);
}

}  // namespace mujacobian
