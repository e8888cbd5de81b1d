// Boxes, convex hulls of meshes and the caps of cylinders, by vertices and polygons: MuJoCo clips
// faces against caps as if these had sixteen sides. Features of large hulls are found by
// walking from neighbour to neighbour, those of small ones by looking at all.
#pragma once

#include "contact/geometry.h"

namespace mujacobian {

// The feature of a polytope that faces a direction: its number of vertices (3: a face) and points.
struct Feature {
  int size;
  Vec3 point[3];
  Vec3 along() const { return (1 / norm(point[1] - point[0])) * (point[1] - point[0]); }
};

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

  Feature facing(Vec3 direction) const;

  // Faces around the vertices farthest along `direction`, and on from there, whose normals are that
  // close to it (cosine), at most `room` of them; returns their number.
  static constexpr int kRoom = 128;
  int faces_facing(Vec3 direction, double cosine, int* faces, int room = kRoom) const;

  // p is a vertex.
  bool is_vertex(Vec3 p) const;

  // Direction of an edge that p is on, of a face around the vertices farthest along `outward`;
  // false if there is none.
  bool edge_through(Vec3 p, Vec3 outward, Vec3& direction) const;

  // Normals of the planes through the sides of a face, perpendicular to it, that p is on; at most
  // two, with the corner they share if they are neighbours.
  int sides_through(int face, Vec3 p, Vec3 normals[2], Vec3& corner) const;

 private:
  Vec3 local_vertex(int i) const;
  Vec3 local_normal(int face) const;
  int face_vertex_id(int face, int k) const;
  template <typename Value>
  int walk(Value value) const;
  int collect(Vec3 local, int best, int* vertices, int room) const;

  Geom geom_;
  double flatness_;
  const float* vertices_;  // of a mesh, null for other geoms
  int vertex_count_, face_count_;
  const double* normals_;
  const int *face_adr_, *face_num_, *face_vertices_;
  const int *fan_adr_, *fan_num_, *fans_;  // the faces around every vertex
  const int* graph_;                       // the hull's vertices and edges; null: look at all
};

// A point of `other`, or a sphere around it, over a face of a polytope. `flatness` is how well the
// face defines the distance; MuJoCo's own is taken where they agree.
FaceContact face_contact(int owner, Vec3 outward, Vec3 on_face, Vec3 center, double radius,
                         const Geom& other, double flatness, const ContactGeometry& g);

// Two faces that are nearly aligned, of which the second has the normal of the contact.
bool identify_aligned(const Polytope p[2], ContactGeometry& g);

// An end of an edge over a face of `owner`, or where it crosses a side of the face.
bool identify_edge_on_face(const Polytope p[2], int owner, ContactGeometry& g);

}  // namespace mujacobian
