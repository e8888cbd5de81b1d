// Signed distances from a closed surface of triangles.
#pragma once

#include <array>
#include <vector>

#include "spatial/vector.h"

namespace mujacobian::rods {

// A closed surface whose faces are counterclockwise from outside. The distance is negative inside.
class Triangles {
 public:
  Triangles(std::vector<Vec3> vertices, std::vector<std::array<int, 3>> faces);

  double signed_distance(Vec3 p) const;

 private:
  struct Node {
    Vec3 low, high;   // bounding box
    int begin, end;   // faces of a leaf, in the order of `order_`
    int left, right;  // children, or -1
  };
  int build(int begin, int end);
  // The nearest point on a face: its vector to p, and the pseudonormal of the feature there
  struct Foot {
    double square;
    Vec3 offset, normal;
  };
  Foot foot(int face, Vec3 p) const;

  std::vector<Vec3> vertices_;
  std::vector<std::array<int, 3>> faces_;
  std::vector<Vec3> face_normals_, vertex_normals_;  // the latter weighted by angles
  std::vector<std::array<Vec3, 3>> edge_normals_;    // of the edges that begin at each corner
  std::vector<int> order_;
  std::vector<Node> nodes_;
};

}  // namespace mujacobian::rods
