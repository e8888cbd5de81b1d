// Boxes and convex hulls of meshes, by vertices and polygons.
#pragma once

#include "contact/geometry.h"

namespace mujacobian {

class Polytope {
 public:
  Polytope(const ModelView& m, const DataView& d, int geom_id);

  const Geom& geom() const { return geom_; }

  // How flat faces are: the vertices of meshes have single precision.
  double flatness() const { return flatness_; }

  int vertex_count() const { return vertex_count_; }
  Vec3 vertex(int i) const;  // world

  // Height of a vertex over the geom's origin, along a direction in the geom's frame.
  double height(int i, Vec3 local_direction) const { return dot(local_direction, local_vertex(i)); }

  int face_count() const { return face_count_; }
  Vec3 face_normal(int face) const;  // world, outward
  int face_size(int face) const;
  Vec3 face_vertex(int face, int k) const;  // world

  // The vertices farthest along `direction`, at most `room` of them; returns their number.
  int support(Vec3 direction, int* vertices, int room) const;

  // p is a vertex.
  bool is_vertex(Vec3 p) const;

  // Direction of an edge that p is on; false if there is none.
  bool edge_through(Vec3 p, Vec3& direction) const;

  // Normals of the planes through the sides of a face, perpendicular to it, that p is on; at most
  // two, with the corner they share if they are neighbours.
  int sides_through(int face, Vec3 p, Vec3 normals[2], Vec3& corner) const;

 private:
  Vec3 local_vertex(int i) const;

  Geom geom_;
  double flatness_;
  const float* vertices_;  // of a mesh, null for a box
  int vertex_count_, face_count_;
  const double* normals_;
  const int *face_adr_, *face_num_, *face_vertices_;
};

}  // namespace mujacobian
