#include "rods/triangles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace mujacobian::rods {
namespace {

constexpr int kLeaf = 4;  // faces of a leaf of the tree, at most

double angle(Vec3 a, Vec3 b) { return std::atan2(norm(cross(a, b)), dot(a, b)); }

Vec3 smaller(Vec3 a, Vec3 b) {
  return {std::min(a.x, b.x), std::min(a.y, b.y), std::min(a.z, b.z)};
}
Vec3 larger(Vec3 a, Vec3 b) { return {std::max(a.x, b.x), std::max(a.y, b.y), std::max(a.z, b.z)}; }

// Square of the distance from a box
double square_from(Vec3 p, Vec3 low, Vec3 high) {
  const Vec3 over = larger(larger(low - p, p - high), {0, 0, 0});
  return dot(over, over);
}

}  // namespace

Triangles::Triangles(std::vector<Vec3> vertices, std::vector<std::array<int, 3>> faces)
    : vertices_(std::move(vertices)),
      faces_(std::move(faces)),
      vertex_normals_(vertices_.size()),
      edge_normals_(faces_.size()),
      order_(faces_.size()) {
  // pseudonormals: their sign tells inside from outside at faces, edges and vertices    (ROD-52)
  std::map<std::pair<int, int>, Vec3> across;  // normal of the face on the left of each edge
  for (const auto& face : faces_) {
    const Vec3 a = vertices_[face[0]], b = vertices_[face[1]], c = vertices_[face[2]];
    const Vec3 area = cross(b - a, c - a);
    const Vec3 normal = (1 / norm(area)) * area;
    face_normals_.push_back(normal);
    for (int k = 0; k < 3; k++) {
      const Vec3 at = vertices_[face[k]];
      const Vec3 next = vertices_[face[(k + 1) % 3]], last = vertices_[face[(k + 2) % 3]];
      vertex_normals_[face[k]] += angle(next - at, last - at) * normal;
      across[{face[k], face[(k + 1) % 3]}] = normal;
    }
  }
  for (size_t f = 0; f < faces_.size(); f++) {
    for (int k = 0; k < 3; k++) {
      edge_normals_[f][k] = face_normals_[f] + across.at({faces_[f][(k + 1) % 3], faces_[f][k]});
    }
  }
  std::iota(order_.begin(), order_.end(), 0);
  build(0, static_cast<int>(faces_.size()));
}

int Triangles::build(int begin, int end) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  Node node{{kFar, kFar, kFar}, {-kFar, -kFar, -kFar}, begin, end, -1, -1};
  for (int i = begin; i < end; i++) {
    for (int v : faces_[order_[i]]) {
      node.low = smaller(node.low, vertices_[v]), node.high = larger(node.high, vertices_[v]);
    }
  }
  const int index = static_cast<int>(nodes_.size());
  nodes_.push_back(node);
  if (end - begin <= kLeaf) return index;
  // halve the faces along the longest side
  const Vec3 side = node.high - node.low;
  auto center = [&](int face) {
    Vec3 sum{};
    for (int v : faces_[face]) sum += vertices_[v];
    return side.x >= side.y && side.x >= side.z ? sum.x : side.y >= side.z ? sum.y : sum.z;
  };
  const int middle = (begin + end) / 2;
  std::nth_element(order_.begin() + begin, order_.begin() + middle, order_.begin() + end,
                   [&](int a, int b) { return std::pair(center(a), a) < std::pair(center(b), b); });
  const int left = build(begin, middle), right = build(middle, end);
  nodes_[index].left = left, nodes_[index].right = right;
  return index;
}

Triangles::Foot Triangles::foot(int face, Vec3 p) const {
  const auto& corner = faces_[face];
  const Vec3 x[3] = {vertices_[corner[0]], vertices_[corner[1]], vertices_[corner[2]]};
  // above the face if p is on the inner side of all edges
  bool is_above = true;
  for (int k = 0; k < 3; k++) {
    const Vec3 inward = cross(face_normals_[face], x[(k + 1) % 3] - x[k]);
    is_above = is_above && dot(inward, p - x[k]) > 0;
  }
  if (is_above) {
    const double height = dot(face_normals_[face], p - x[0]);
    return {height * height, height * face_normals_[face], face_normals_[face]};
  }
  // otherwise the nearest point is on an edge
  Foot nearest{std::numeric_limits<double>::infinity(), {}, {}};
  for (int k = 0; k < 3; k++) {
    const Vec3 along = x[(k + 1) % 3] - x[k];
    const double t = std::clamp(dot(p - x[k], along) / dot(along, along), 0.0, 1.0);
    const Vec3 offset = p - x[k] - t * along;
    const double square = dot(offset, offset);
    if (square >= nearest.square) continue;
    const Vec3 normal = t == 0   ? vertex_normals_[corner[k]]
                        : t == 1 ? vertex_normals_[corner[(k + 1) % 3]]
                                 : edge_normals_[face][k];
    nearest = {square, offset, normal};
  }
  return nearest;
}

double Triangles::signed_distance(Vec3 p) const {
  Foot nearest{std::numeric_limits<double>::infinity(), {}, {}};
  std::vector<int> stack{0};
  while (!stack.empty()) {
    const Node& node = nodes_[stack.back()];
    stack.pop_back();
    if (square_from(p, node.low, node.high) >= nearest.square) continue;
    if (node.left < 0) {
      for (int i = node.begin; i < node.end; i++) {
        const Foot here = foot(order_[i], p);
        if (here.square < nearest.square) nearest = here;
      }
      continue;
    }
    // the nearer child first
    const Node &left = nodes_[node.left], &right = nodes_[node.right];
    const bool is_left_nearer =
        square_from(p, left.low, left.high) < square_from(p, right.low, right.high);
    stack.push_back(is_left_nearer ? node.right : node.left);
    stack.push_back(is_left_nearer ? node.left : node.right);
  }
  const double distance = std::sqrt(nearest.square);
  return dot(nearest.offset, nearest.normal) < 0 ? -distance : distance;
}

}  // namespace mujacobian::rods
