#include "contact/prism.h"

namespace mujacobian {
namespace {

// Vertices of the edges, and three vertices of each face.
constexpr int kEdges[9][2] = {{0, 1}, {1, 2}, {2, 0}, {3, 4}, {4, 5},
                              {5, 3}, {0, 3}, {1, 4}, {2, 5}};
constexpr int kFaces[5][3] = {{0, 1, 2}, {3, 4, 5}, {0, 1, 4}, {1, 2, 5}, {2, 0, 3}};

}  // namespace

SupportSide Prism::side(Vec3 n, Vec3 witness) const {
  for (const Vec3& v : vertex) {
    if (norm(v - witness) < fuzz) return {.point = v};
  }
  for (const auto& edge : kEdges) {
    const Vec3 a = vertex[edge[0]], along = unit(vertex[edge[1]] - a);
    const Vec3 foot = a + dot(witness - a, along) * along;
    if (norm(foot - witness) < fuzz) return {.point = foot, .slide = {along, {}}, .slides = 1};
  }
  const Vec3 inside = 0.25 * (vertex[0] + vertex[4]) + 0.5 * vertex[2];
  SupportSide best{};
  double squarely = -2;
  for (const auto& face : kFaces) {
    const Vec3 a = vertex[face[0]], along = unit(vertex[face[1]] - a);
    Vec3 normal = unit(cross(along, vertex[face[2]] - a));
    if (dot(normal, a - inside) < 0) normal = -normal;
    if (dot(normal, n) < squarely) continue;
    squarely = dot(normal, n);
    const Vec3 foot = witness - dot(normal, witness - a) * normal;
    best = {.point = foot, .slide = {along, cross(normal, along)}, .slides = 2};
  }
  return best;
}

}  // namespace mujacobian
