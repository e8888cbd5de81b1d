#include "contact/clip.h"

#include <cmath>

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;        // distance at which a point is on a feature
constexpr double kInside = -1e-15;  // height over a side from which a point is inside (mjMINVAL)
constexpr int kRoom = 64;

struct Polygon {
  int size;
  ClippedVertex vertex[kRoom];
};

ClippedVertex carried_vertex(Vec3 point, Vec3 from) {
  const Vec3 axis[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  ClippedVertex v{point, {}};
  for (int k = 0; k < 3; k++) {
    v.motion[k] = cross(axis[k], point - from);
    v.motion[3 + k] = axis[k];
  }
  return v;
}

// Where the line from a to b crosses the plane with this normal: at a + t (b - a).
ClippedVertex crossing(const ClippedVertex& a, const ClippedVertex& b, double t, Vec3 normal) {
  const Vec3 line = b.point - a.point;
  const double slope = dot(normal, line);
  ClippedVertex v{a.point + t * line, {}};
  for (int k = 0; k < 6; k++) {
    const Vec3 moved = a.motion[k] + t * (b.motion[k] - a.motion[k]);
    v.motion[k] = moved - (dot(normal, moved) / slope) * line;
  }
  return v;
}

// The part of a polygon on the side of the plane to which its normal points; false without room.
bool cut(const Polygon& polygon, Vec3 on_plane, Vec3 normal, Polygon& out) {
  out.size = 0;
  for (int i = 0; i < polygon.size; i++) {
    const ClippedVertex& a = polygon.vertex[i];
    const ClippedVertex& b = polygon.vertex[(i + 1) % polygon.size];
    const double height[2] = {dot(normal, a.point - on_plane), dot(normal, b.point - on_plane)};
    const bool inside[2] = {height[0] > kInside, height[1] > kInside};
    if (out.size + 2 > kRoom) return false;
    if (inside[0] != inside[1] && height[0] != height[1]) {
      out.vertex[out.size++] = crossing(a, b, height[0] / (height[0] - height[1]), normal);
    }
    if (inside[1]) out.vertex[out.size++] = b;
  }
  return true;
}

}  // namespace

bool find_clipped(const Polytope p[2], int f0, int f1, Vec3 x, Vec3 ray, Vec3 from,
                  ClippedVertex& found) {
  Polygon polygon[2];
  polygon[0].size = p[1].face_size(f1);
  if (polygon[0].size > kRoom) return false;
  for (int k = 0; k < polygon[0].size; k++) {
    polygon[0].vertex[k] = carried_vertex(p[1].face_vertex(f1, k), from);
  }
  const Vec3 base = p[0].face_normal(f0);
  int now = 0;
  for (int k = 0, sides = p[0].face_size(f0); k < sides; k++) {
    const Vec3 a = p[0].clip_vertex(f0, k), b = p[0].clip_vertex(f0, (k + 1) % sides);
    const Vec3 inward = cross(b - a, base);
    const double length = norm(inward);
    if (length == 0 || !cut(polygon[now], a, (1 / length) * inward, polygon[1 - now])) return false;
    now = 1 - now;
  }
  for (int k = 0; k < polygon[now].size; k++) {
    found = polygon[now].vertex[k];
    Vec3 gap = found.point - x;
    gap = gap - dot(gap, ray) * ray;
    if (dot(gap, gap) < kOn * kOn) return true;
  }
  return false;
}

}  // namespace mujacobian
