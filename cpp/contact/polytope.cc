#include "contact/polytope.h"

#include <cmath>

#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;  // distance at which a point is on a feature

// corners of the faces -x +x -y +y -z +z of a box; bit k of a corner: positive along axis k
constexpr int kBoxFaces[6][4] = {{0, 2, 6, 4}, {1, 5, 7, 3}, {0, 4, 5, 1},
                                 {2, 3, 7, 6}, {0, 1, 3, 2}, {4, 6, 7, 5}};

bool on_segment(Vec3 p, Vec3 a, Vec3 b, double tolerance) {
  Vec3 ab = b - a, ap = p - a;
  double length = dot(ab, ab), t = dot(ap, ab);
  if (t < 0 || t > length || length == 0) return false;
  Vec3 gap = ap - (t / length) * ab;
  return dot(gap, gap) < tolerance * tolerance;
}

}  // namespace

Polytope::Polytope(const ModelView& m, const DataView& d, int id) : geom_(load_geom(m, d, id)) {
  vertices_ = nullptr;
  if (geom_.type == geom::kBox) {
    vertex_count_ = 8, face_count_ = 6;
    flatness_ = kOn;
    return;
  }
  flatness_ = kOn + 3e-7 * m.geom_rbound[id];
  int mesh = m.geom_dataid[id];
  vertices_ = m.mesh_vert + 3 * m.mesh_vertadr[mesh];
  vertex_count_ = m.mesh_vertnum[mesh];
  face_count_ = m.mesh_polynum[mesh];
  int adr = m.mesh_polyadr[mesh];
  normals_ = m.mesh_polynormal + 3 * adr;
  face_adr_ = m.mesh_polyvertadr + adr;
  face_num_ = m.mesh_polyvertnum + adr;
  face_vertices_ = m.mesh_polyvert;
}

Vec3 Polytope::local_vertex(int i) const {
  if (vertices_) return {vertices_[3 * i], vertices_[3 * i + 1], vertices_[3 * i + 2]};
  const double* s = geom_.size;
  return {i & 1 ? s[0] : -s[0], i & 2 ? s[1] : -s[1], i & 4 ? s[2] : -s[2]};
}

Vec3 Polytope::vertex(int i) const { return geom_.to_world(local_vertex(i)); }

Vec3 Polytope::face_normal(int face) const {
  if (vertices_) return geom_.frame * load3(normals_ + 3 * face);
  Vec3 axis = column(geom_.frame, face / 2);
  return face % 2 ? axis : -axis;
}

int Polytope::face_size(int face) const { return vertices_ ? face_num_[face] : 4; }

Vec3 Polytope::face_vertex(int face, int k) const {
  return vertex(vertices_ ? face_vertices_[face_adr_[face] + k] : kBoxFaces[face][k]);
}

int Polytope::support(Vec3 direction, int* out, int room) const {
  Vec3 local = transpose_mul(geom_.frame, direction);
  double best = -INFINITY;
  for (int i = 0; i < vertex_count_; i++) best = std::fmax(best, dot(local, local_vertex(i)));
  int count = 0;
  for (int i = 0; i < vertex_count_ && count < room; i++) {
    if (dot(local, local_vertex(i)) > best - flatness_) out[count++] = i;
  }
  return count;
}

bool Polytope::is_vertex(Vec3 p) const {
  Vec3 local = geom_.to_local(p);
  for (int i = 0; i < vertex_count_; i++) {
    Vec3 gap = local_vertex(i) - local;
    if (dot(gap, gap) < flatness_ * flatness_) return true;
  }
  return false;
}

bool Polytope::edge_through(Vec3 p, Vec3& direction) const {
  for (int f = 0; f < face_count_; f++) {
    if (std::abs(dot(face_normal(f), p - face_vertex(f, 0))) > flatness_) continue;
    for (int k = 0, n = face_size(f); k < n; k++) {
      Vec3 a = face_vertex(f, k), b = face_vertex(f, (k + 1) % n);
      if (!on_segment(p, a, b, flatness_)) continue;
      direction = (1 / norm(b - a)) * (b - a);
      return true;
    }
  }
  return false;
}

int Polytope::sides_through(int face, Vec3 p, Vec3 normals[2], Vec3& corner) const {
  Vec3 n = face_normal(face);
  int count = 0, first = 0;
  for (int k = 0, size = face_size(face); k < size && count < 2; k++) {
    Vec3 a = face_vertex(face, k), b = face_vertex(face, (k + 1) % size);
    Vec3 side = cross(b - a, n);
    double length = norm(side);
    if (length == 0) continue;
    side = (1 / length) * side;
    if (std::abs(dot(side, p - a)) > flatness_) continue;
    // neighbours share a corner: the start of the later side, or of the first after going round
    if (count == 1) corner = k == first + 1 ? a : face_vertex(face, first);
    if (count == 0) first = k;
    normals[count++] = side;
  }
  return count;
}

}  // namespace mujacobian
