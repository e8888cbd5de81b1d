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
  static constexpr int kAnywhere = -1;    // begin a walk anywhere
  static constexpr int kEverywhere = -2;  // do not walk but look at all features

  // `start`, if any: where on the hull walks begin, and where the last one ended, or what is below.
  Polytope(const ModelView& m, const DataView& d, int geom_id, int* start = nullptr);

  const Geom& geom() const { return geom_; }

  // How flat faces are: the vertices of meshes have single precision.
  double flatness() const { return flatness_; }

  bool is_mesh() const { return vertices_ != nullptr; }

  int vertex_count() const { return vertex_count_; }
  Vec3 vertex(int i) const;  // world

  // Height of a vertex over the geom's origin, along a direction in the geom's frame.
  double height(int i, Vec3 local_direction) const { return dot(local_direction, local_vertex(i)); }

  int face_count() const { return face_count_; }
  Vec3 face_normal(int face) const;  // world, outward
  int face_size(int face) const;
  Vec3 face_vertex(int face, int k) const;  // world
  Vec3 clip_vertex(int face,
                   int k) const;  // the same in the order in which MuJoCo clips: clockwise

  Feature facing(Vec3 direction) const;

  // The vertices farthest along a direction, the first `room` of them; returns their number.
  int support(Vec3 direction, int* vertices, int room) const {
    return farthest(transpose_mul(geom_.frame, direction), vertices, room);
  }

  // Calls `visit` with the faces whose normals are that close to `direction` (cosine) until it
  // returns true: the faces around the vertices farthest along it, then on from there.
  template <class Visit>
  bool find_face(Vec3 direction, double cosine, Visit&& visit) const {
    const Vec3 local = transpose_mul(geom_.frame, direction);
    if (!graph_) {
      for (int f = 0; f < face_count_; f++) {
        if (dot(local_normal(f), local) > cosine && visit(f)) return true;
      }
      return false;
    }
    FaceSet seen;
    auto visit_around = [&](int v) {
      for (int i = 0; i < fan_num_[v]; i++) {
        const int f = fans_[fan_adr_[v] + i];
        if (dot(local_normal(f), local) > cosine && seen.add(f) && visit(f)) return true;
      }
      return false;
    };
    const Support& farthest = support(direction);
    for (int k = 0; k < farthest.count; k++) {
      if (visit_around(farthest.vertex[k])) return true;
    }
    for (int j = 0; j < seen.count(); j++) {
      for (int k = 0, n = face_size(seen[j]); k < n; k++) {
        if (visit_around(face_vertex_id(seen[j], k))) return true;
      }
    }
    return false;
  }

  // The same for faces with the very normal `direction`, which need not be flat.
  template <class Visit>
  bool find_face_with(Vec3 normal, Visit&& visit) const {
    return find_face(normal, kSameNormal, [&](int f) {
      Vec3 gap = face_normal(f) - normal;
      return dot(gap, gap) < kOn * kOn && visit(f);
    });
  }

  // p is a vertex of a face around the vertices farthest along `outward`; the tolerance is at least
  // the flatness.
  bool is_vertex(Vec3 p, Vec3 outward, double tolerance = 0) const;

  // Direction of an edge that p is on, of a face around the vertices farthest along `outward`;
  // false if there is none.
  bool edge_through(Vec3 p, Vec3 outward, Vec3& direction) const;

  // Normals of the planes through the sides of a face, perpendicular to it, that p is on; at most
  // two, with the corner they share if they are neighbours.
  int sides_through(int face, Vec3 p, Vec3 normals[2], Vec3& corner) const;

  // The normal of the one of them that a line through p in this direction crosses, the steeper: at
  // a corner of faces of the same width the other is parallel to it, up to rounding. False if none.
  bool crossed_side(int face, Vec3 p, Vec3 along, Vec3& normal) const;

 private:
  static constexpr double kOn = 1e-9;  // distance at which a point is on a feature

  // Cosine of the normals among which the same as a given one is looked for.
  static constexpr double kSameNormal = 0.9999;

  // The first faces that are added, in order, and whether a face is among them.
  class FaceSet {
   public:
    int count() const { return count_; }
    int operator[](int i) const { return face_[i]; }
    // False if it is there already or there is no room.
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

  // The vertices farthest along a direction, the first three.
  struct Support {
    Vec3 direction;
    int count, vertex[3];
  };
  const Support& support(Vec3 direction) const;

  int hull_vertex(int k) const { return hull_ ? hull_[k] : k; }
  Vec3 local_vertex(int i) const;
  Vec3 local_normal(int face) const;
  int face_vertex_id(int face, int k) const;
  int walk(Vec3 local) const;
  int collect(Vec3 local, int best, int* vertices, int room) const;
  int farthest(Vec3 local, int* vertices, int room) const;

  Geom geom_;
  double flatness_;
  const float* vertices_;  // of a mesh, null for other geoms
  int vertex_count_, face_count_;
  const double* normals_;
  const int *face_adr_, *face_num_, *face_vertices_;
  const int *fan_adr_, *fan_num_, *fans_;  // the faces around every vertex
  const int* graph_;                       // the hull's vertices and edges; null: look at all
  const int* hull_;                        // which vertices are on the hull; null: all
  int hull_count_;
  mutable Support support_;  // the last that was asked for
  int* start_;
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
