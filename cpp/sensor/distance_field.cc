#include "sensor/distance_field.h"

#include <algorithm>
#include <cmath>

#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

constexpr int kCorners = 8;  // of the box of a node of an octree, one per child

double sign(double x) {
  // tie: middle of a distance field
  return (x > 0) - (x < 0);
}

// Relative distance from a center or an axis within which rounding decides the direction from it.
constexpr double kCentral = 1e-9;

// Returns x / |x|, the gradient of |x|; not a number if |x| is zero up to rounding.
Vec3 direction(Vec3 x, double size) {
  const double length = norm(x);
  // tie: center of a distance field
  return (length < kCentral * size ? std::nan("") : 1 / length) * x;
}

// The distance from a ball around the origin.
FieldValue ball_field(Vec3 x, double radius) { return {norm(x) - radius, direction(x, radius)}; }

// Below the three faces next to the point by a_i < 0: D = -|c| min_i a_i^2 / s_i with
// c_i = s_i / a_i.                                                                       (SEN-35)
FieldValue box_field(Vec3 point, const double s[3]) {
  double x[3], a[3];
  store3(x, point);
  for (int i = 0; i < 3; i++) a[i] = std::abs(x[i]) - s[i];
  const double deepest = std::max({a[0], a[1], a[2]});
  if (deepest >= 0) return {deepest, {0, 0, 0}};
  const double length = std::sqrt(s[0] * s[0] / (a[0] * a[0]) + s[1] * s[1] / (a[1] * a[1]) +
                                  s[2] * s[2] / (a[2] * a[2]));
  double reach[3], gradient[3];
  for (int i = 0; i < 3; i++) reach[i] = a[i] * a[i] / s[i];
  const double least = std::min({reach[0], reach[1], reach[2]});
  int nearest = 0;
  for (int i = 0; i < 3; i++) nearest += reach[i] == least;
  for (int i = 0; i < 3; i++) {
    gradient[i] = least * s[i] * s[i] / (length * a[i] * a[i] * a[i]);
    // tie: nearest face of a distance field
    if (reach[i] == least) gradient[i] -= length * 2 * a[i] / s[i] / nearest;
    gradient[i] *= sign(x[i]);
  }
  return {-length * least, load3(gradient)};
}

// D = k (k - 1) / l with k = |S^-1 x| and l = |S^-2 x|                                   (SEN-36)
FieldValue ellipsoid_field(Vec3 x, const double s[3]) {
  const auto scaled = [&](Vec3 y) { return Vec3{y.x / s[0], y.y / s[1], y.z / s[2]}; };
  const Vec3 once = scaled(x), twice = scaled(once);
  const double k = norm(once), l = norm(twice);
  const Vec3 dk = scaled(direction(once, 1)), dl = (1 / l) * scaled(scaled(twice));
  return {k * (k - 1) / l, ((2 * k - 1) / l) * dk - (k * (k - 1) / (l * l)) * dl};
}

// The larger one of the distances from the side and from the nearer cap.
FieldValue cylinder_field(Vec3 x, double radius, double half_length) {
  const Vec3 across{x.x, x.y, 0};
  const double side = norm(across) - radius, cap = std::abs(x.z) - half_length;
  const double flat = side < cap ? 1 : side > cap ? 0 : 0.5;  // tie: rim of a distance field
  Vec3 gradient{0, 0, flat * sign(x.z)};
  if (flat < 1) gradient += (1 - flat) * direction(across, radius);
  return {std::max(side, cap), gradient};
}

// The root of an octree: the arrays of its nodes.
struct Octree {
  const double* box;    // center and half sizes, (nodes, 6)
  const int* child;     // (nodes, 8)
  const double* value;  // of the field at the corners of the boxes, (nodes, 8)
};

// Trilinear interpolation in the leaf at a point inside the octree. Adds it to the field.  (SEN-37)
void interpolate(const Octree& tree, const double x[3], double& distance, double gradient[3]) {
  double share[3], width[3];  // the place in the box of the node, from 0 to 1, and its size
  int node = 0;
  for (bool leaf = false; !leaf;) {
    int octant = 0;
    leaf = true;
    for (int i = 0; i < 3; i++) {
      const double center = tree.box[6 * node + i], half = tree.box[6 * node + 3 + i];
      const double lower = center - half;
      width[i] = center + half - lower;
      share[i] = (x[i] - lower) / width[i];
      // tie: cells of an octree
      octant |= share[i] < 0.5 ? 0 : 1 << i;
    }
    for (int k = 0; k < kCorners; k++) leaf &= tree.child[kCorners * node + k] == -1;
    if (!leaf) node = tree.child[kCorners * node + octant];
  }
  for (int k = 0; k < kCorners; k++) {
    double weight[3], slope[3];
    for (int i = 0; i < 3; i++) {
      const bool upper = k >> i & 1;
      weight[i] = upper ? share[i] : 1 - share[i];
      slope[i] = (upper ? 1 : -1) / width[i];
    }
    const double corner = tree.value[kCorners * node + k];
    distance += corner * weight[0] * weight[1] * weight[2];
    gradient[0] += corner * slope[0] * weight[1] * weight[2];
    gradient[1] += corner * weight[0] * slope[1] * weight[2];
    gradient[2] += corner * weight[0] * weight[1] * slope[2];
  }
}

// Beside the octree, the field is that at the nearest point a little inside it, plus the distance.
// (SEN-38)
FieldValue octree_field(const ModelView& m, int mesh, Vec3 point) {
  constexpr double kInset = 1e-6;
  const std::ptrdiff_t root = m.mesh_octadr[mesh];
  const Octree tree{m.oct_aabb + 6 * root, m.oct_child + kCorners * root,
                    m.oct_coeff + kCorners * root};
  double x[3], beside[3] = {}, distance = 0, gradient[3] = {};
  store3(x, point);
  for (int i = 0; i < 3; i++) {
    const double excess = std::abs(x[i] - tree.box[i]) - tree.box[3 + i];
    if (!(excess > 0)) continue;
    const double side = sign(x[i] - tree.box[i]);
    beside[i] = side * excess;
    x[i] -= side * (excess + kInset);
  }
  interpolate(tree, x, distance, gradient);
  const double length = norm(load3(beside));
  for (int i = 0; i < 3; i++) {
    if (beside[i] != 0) gradient[i] = beside[i] / length;
  }
  return {distance + length, load3(gradient)};
}

FieldValue evaluate(const ModelView& m, int geom, Vec3 x) {
  const double* size = m.geom_size + 3 * geom;
  switch (m.geom_type[geom]) {
    case geom::kPlane:
      return {x.z, {0, 0, 1}};
    case geom::kSphere:
      return ball_field(x, size[0]);
    case geom::kCapsule:
      // tie: end of the axis of a distance field
      return ball_field({x.x, x.y, x.z - std::clamp(x.z, -size[1], size[1])}, size[0]);
    case geom::kEllipsoid:
      return ellipsoid_field(x, size);
    case geom::kCylinder:
      return cylinder_field(x, size[0], size[1]);
    case geom::kBox:
      return box_field(x, size);
    case geom::kMesh:
      return octree_field(m, m.geom_dataid[geom], x);
    default:
      throw Unsupported(element_name(m, object::kGeom, geom),
                        "a tactile sensor reads its distance field, which a plugin computes");
  }
}

}  // namespace

bool has_distance_field(const ModelView& m, int geom) {
  return m.geom_type[geom] != geom::kMesh || m.mesh_octadr[m.geom_dataid[geom]] != -1;
}

FieldValue distance_field(const ModelView& m, int geom, Vec3 x) {
  const FieldValue field = evaluate(m, geom, x);
  if (std::isfinite(norm(field.gradient))) return field;
  throw Unsupported(element_name(m, object::kGeom, geom),
                    "a taxel is at its center or on its axis, where its distance field has a kink");
}

}  // namespace mujacobian
