#include "contact/simplex_feature.h"

#include <cmath>

namespace mujacobian {

SimplexBasis simplex_basis(const SimplexFeature& f) {
  SimplexBasis b{f.size - 1, {}, {}, {}};
  for (int i = 0; i < b.size; i++) b.edge[i] = difference(f, i + 1) - difference(f, 0);
  if (b.size == 1) b.dual[0] = (1 / dot(b.edge[0], b.edge[0])) * b.edge[0];
  if (b.size == 2) {
    b.cross = cross(b.edge[0], b.edge[1]);
    double area = dot(b.cross, b.cross);
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

// With u = sum of weight dw and t = sum of d_i (de_i . n):
//   d(weight_i) = -d_i . (u + D t),   dn = -t + (u across n and the edges) / D            (CON-22)
ContactPoint vary(const SimplexFeature& f, const ContactPoint& at, const Motion motion[2]) {
  const SimplexBasis b = simplex_basis(f);
  const double reach = at.distance + f.radius;
  const Vec3 n = at.normal;

  // velocities of the pairs: differences, and their sums and those of the points at fixed weights
  Vec3 moved[3], sum[3], carried{}, middle{}, tilt{};
  for (int k = 0; k < f.size; k++) {
    Vec3 v0 = at_point(motion[0], f.point[0][k] - at.position);
    Vec3 v1 = at_point(motion[1], f.point[1][k] - at.position);
    moved[k] = v1 - v0;
    sum[k] = f.point[0][k] + f.point[1][k];
    carried += f.weight[k] * moved[k];
    middle += f.weight[k] * (v0 + v1);
  }
  for (int i = 0; i < b.size; i++) tilt += dot(moved[i + 1] - moved[0], n) * b.dual[i];

  // change of the distance, and of the position with the weights
  ContactPoint v;
  v.distance = dot(n, carried);
  Vec3 aside = carried - v.distance * n;
  for (int i = 0; i < b.size; i++) {
    aside = aside - dot(b.dual[i], carried) * b.edge[i];
    middle += -dot(b.dual[i], carried + reach * tilt) * (sum[i + 1] - sum[0]);
  }
  v.normal = -tilt;
  if (f.size < 3) v.normal += (1 / reach) * aside;
  v.position = 0.5 * (middle - f.radius * v.normal);
  return v;
}

Growth grow(const SimplexFeature&, const Geom&, int, int) { return {}; }

std::string describe(const SimplexFeature& f) {
  return f.size == 1 ? "pair of vertices" : std::to_string(f.size) + " pairs of vertices";
}

}  // namespace mujacobian
