// A convex polytope with vertices and polygons: a box, the convex hull of a mesh, or the caps of a
// cylinder, which MuJoCo clips as polygons of sixteen sides. Searches on large hulls walk from
// neighbor to neighbor; searches on small ones check all vertices or faces.
#pragma once

#include "contact/geom.h"
#include "layout/views.h"

namespace mujacobian {

// The vertex, edge or face of a polytope that faces a direction.
struct PolytopePart {
  int size;       // 1: a vertex, 2: an edge, 3: a face
  Vec3 point[3];  // as many of its vertices
  Vec3 along() const { return (1 / norm(point[1] - point[0])) * (point[1] - point[0]); }
};

class Polytope {
 public:
  static constexpr int kAnywhere = -1;    // begin a walk anywhere
  static constexpr int kEverywhere = -2;  // do not walk but check all vertices and faces

  // `start`: the place on the hull where walks begin and where the last one ended, or one of the
  // constants above. Null means kAnywhere.
  Polytope(const ModelView& m, const DataView& d, int geom_id, int* start = nullptr);

  const Geom& geom() const { return geom_; }

  // Distance of vertices from the plane of their face: meshes have single precision.
  double flatness() const { return flatness_; }

  bool is_mesh() const { return vertices_ != nullptr; }

  int vertex_count() const { return vertex_count_; }
  int hull_count() const { return hull_count_; }
  int hull_vertex(int k) const { return hull_ ? hull_[k] : k; }
  Vec3 vertex(int i) const;  // world

  // Height of a vertex over the geom's origin, along a direction in the geom's frame.
  double height(int i, Vec3 local_direction) const { return dot(local_direction, local_vertex(i)); }

  Vec3 face_normal(int face) const;  // world, outward
  int face_size(int face) const;
  Vec3 face_vertex(int face, int k) const;  // world
  Vec3 local_face_vertex(int face, int k) const { return local_vertex(face_vertex_id(face, k)); }
  // the same, clockwise, which is the order in which MuJoCo clips
  Vec3 clip_vertex(int face, int k) const;

  // The vertex, edge or face that is farthest along a direction.
  PolytopePart facing(Vec3 direction) const;

  // Finds up to `room` of the vertices that are farthest along a direction; returns their number.
  int support(Vec3 direction, int* vertices, int room) const {
    return farthest(transpose_mul(geom_.frame, direction), vertices, room);
  }

  // Calls `visit` with the faces whose normals are that close to `direction` (cosine) until it
  // returns true. It begins with the faces around the farthest vertices, and goes on to neighbors.
  template <class Visit>
  bool find_face(Vec3 direction, double cosine, Visit&& visit) const {
    const Vec3 local = transpose_mul(geom_.frame, direction);
    if (!graph_) {
      for (int f = 0; f < face_count_; f++) {
        if (dot(local_normal(f), local) > cosine && visit(f)) return true;
      }
      return false;
    }
    FaceSet visited;
    auto visit_around = [&](int v) {
      for (int i = 0; i < fan_num_[v]; i++) {
        const int f = fans_[fan_adr_[v] + i];
        if (dot(local_normal(f), local) > cosine && visited.add(f) && visit(f)) return true;
      }
      return false;
    };
    const Support& farthest = support(direction);
    for (int k = 0; k < farthest.count; k++) {
      if (visit_around(farthest.vertex[k])) return true;
    }
    for (int j = 0; j < visited.count(); j++) {
      for (int k = 0, n = face_size(visited[j]); k < n; k++) {
        if (visit_around(face_vertex_id(visited[j], k))) return true;
      }
    }
    return false;
  }

  // The same for faces whose normal is `normal`. They need not be flat.
  template <class Visit>
  bool find_face_with(Vec3 normal, Visit&& visit) const {
    return find_face(normal, kSameNormal, [&](int f) {
      Vec3 gap = face_normal(f) - normal;
      return dot(gap, gap) < kOn * kOn && visit(f);
    });
  }

  // Whether p is a vertex of a face around the vertices farthest along `outward`. The tolerance is
  // at least the flatness.
  bool is_vertex(Vec3 p, Vec3 outward, double tolerance = 0) const;

  // Finds the direction of an edge that p is on, of a face around the vertices farthest along
  // `outward`. Returns false if there is none. The tolerance is at least the flatness.
  bool edge_through(Vec3 p, Vec3 outward, Vec3& direction, double tolerance = 0) const;

  // Finds the direction of the line between two vertices of the hull that p is on, up to rounding.
  // The line need not be an edge. Returns false if there is none.
  bool chord_through(Vec3 p, Vec3& direction) const;

  // Finds the sides of a face whose planes, perpendicular to the face, contain p. Returns their
  // number, at most two, with the normals and the corner that two neighbors share.
  int sides_through(int face, Vec3 p, Vec3 normals[2], Vec3& corner) const;

  // Finds the normal of the one of them that a line through p in this direction crosses, the
  // steeper one: at a corner of faces of the same width, the line is parallel to the other one up
  // to rounding. Returns false if there is none.
  bool crossed_side(int face, Vec3 p, Vec3 along, Vec3& normal) const;

 private:
  static constexpr double kOn = 1e-9;  // distance within which a point is on an edge or plane

  // Cosine of the normals that are compared with a given one.
  static constexpr double kSameNormal = 0.9999;

  // A set of up to kRoom faces, in the order in which they were added.
  class FaceSet {
   public:
    int count() const { return count_; }
    int operator[](int i) const { return face_[i]; }
    // Returns false if the set contains the face or is full.
    bool add(int face) {
      if (count_ == kRoom) return false;
      int slot = (face * 0x9E3779B1u) >> 24;
      for (; place_[slot] != 0; slot = (slot + 1) % kSlots) {
        if (face_[place_[slot] - 1] == face) return false;
      }
      face_[count_++] = face;
      place_[slot] = static_cast<unsigned char>(count_);
      return true;
    }

   private:
    static constexpr int kRoom = 128, kSlots = 256;
    int count_ = 0, face_[kRoom];
    unsigned char place_[kSlots] = {};
  };

  // The first three of the vertices that are farthest along a direction.
  struct Support {
    Vec3 direction;
    int count, vertex[3];
  };
  const Support& support(Vec3 direction) const;

  Vec3 local_vertex(int i) const;
  Vec3 local_normal(int face) const;
  int face_vertex_id(int face, int k) const;
  int walk(Vec3 local) const;
  int collect(Vec3 local, int best, int* vertices, int room) const;
  int farthest(Vec3 local, int* vertices, int room) const;

  Geom geom_;
  double flatness_;
  const float* vertices_;  // of a mesh; null for other geoms
  int vertex_count_, face_count_;
  const double* normals_;
  const int *face_adr_, *face_num_, *face_vertices_;
  const int *fan_adr_, *fan_num_, *fans_;  // the faces around every vertex
  const int* graph_;  // vertices and edges of a hull to walk on; null: no walks
  const int* hull_;   // the vertices on the hull; null: all
  int hull_count_;
  mutable Support support_;  // result of the last search
  int* start_;
};

}  // namespace mujacobian
