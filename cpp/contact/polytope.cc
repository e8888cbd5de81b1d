#include "contact/polytope.h"

#include <algorithm>
#include <cmath>

#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;  // distance at which a point is on a feature

// corners of the faces -x +x -y +y -z +z of a box; bit k of a corner: positive along axis k
constexpr int kBoxFaces[6][4] = {{0, 2, 6, 4}, {1, 5, 7, 3}, {0, 4, 5, 1},
                                 {2, 3, 7, 6}, {0, 1, 3, 2}, {4, 6, 7, 5}};

// Hulls with more faces than this are walked.
constexpr int kManyFaces = 40;

// Places from which a walk may start; it starts from the best.
constexpr int kStarts = 16;

bool on_segment(Vec3 p, Vec3 a, Vec3 b, double tolerance) {
  Vec3 ab = b - a, ap = p - a;
  double length = dot(ab, ab), t = dot(ap, ab);
  if (t < 0 || t > length || length == 0) return false;
  Vec3 gap = ap - (t / length) * ab;
  return dot(gap, gap) < tolerance * tolerance;
}

}  // namespace

Polytope::Polytope(const ModelView& m, const DataView& d, int id) : geom_(load_geom(m, d, id)) {
  vertices_ = nullptr, graph_ = nullptr;
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
  fan_adr_ = m.mesh_polymapadr + m.mesh_vertadr[mesh];
  fan_num_ = m.mesh_polymapnum + m.mesh_vertadr[mesh];
  fans_ = m.mesh_polymap;
  bool walk = face_count_ > kManyFaces && m.mesh_graphadr[mesh] >= 0;
  if (walk) graph_ = m.mesh_graph + m.mesh_graphadr[mesh];
}

Vec3 Polytope::local_vertex(int i) const {
  if (vertices_) return {vertices_[3 * i], vertices_[3 * i + 1], vertices_[3 * i + 2]};
  const double* s = geom_.size;
  return {i & 1 ? s[0] : -s[0], i & 2 ? s[1] : -s[1], i & 4 ? s[2] : -s[2]};
}

Vec3 Polytope::vertex(int i) const { return geom_.to_world(local_vertex(i)); }

Vec3 Polytope::local_normal(int face) const {
  if (vertices_) return load3(normals_ + 3 * face);
  double n[3] = {0, 0, 0};
  n[face / 2] = face % 2 ? 1 : -1;
  return load3(n);
}

Vec3 Polytope::face_normal(int face) const { return geom_.frame * local_normal(face); }

int Polytope::face_size(int face) const { return vertices_ ? face_num_[face] : 4; }

int Polytope::face_vertex_id(int face, int k) const {
  return vertices_ ? face_vertices_[face_adr_[face] + k] : kBoxFaces[face][k];
}

Vec3 Polytope::face_vertex(int face, int k) const { return vertex(face_vertex_id(face, k)); }

double Polytope::height(int face, Vec3 local) const {
  return dot(local_normal(face), local - local_vertex(face_vertex_id(face, 0)));
}

// On a convex hull, a vertex that is farther than its neighbours is farthest. Those as far, within
// the flatness, are connected.
int Polytope::climb_vertices(Vec3 local, int* out, int room) const {
  const int count = graph_[0];
  const int *edges_of = graph_ + 2, *id = graph_ + 2 + count, *edges = graph_ + 2 + 2 * count;
  auto reach = [&](int i) { return dot(local, local_vertex(id[i])); };
  int best = 0;
  double farthest = reach(0);
  auto consider = [&](int i) {
    double r = reach(i);
    if (r > farthest) farthest = r, best = i;
  };
  for (int k = 1; k < kStarts; k++) consider(k * (count / kStarts));
  for (int from = -1; from != best;) {
    from = best;
    for (const int* e = edges + edges_of[from]; *e >= 0; e++) consider(*e);
  }
  int found = 0;
  out[found++] = best;
  for (int k = 0; k < found; k++) {
    for (const int* e = edges + edges_of[out[k]]; *e >= 0 && found < room; e++) {
      bool known = std::find(out, out + found, *e) != out + found;
      if (!known && reach(*e) > farthest - flatness_) out[found++] = *e;
    }
  }
  for (int k = 0; k < found; k++) out[k] = id[out[k]];
  return found;
}

int Polytope::support(Vec3 direction, int* out, int room) const {
  Vec3 local = transpose_mul(geom_.frame, direction);
  if (graph_) return climb_vertices(local, out, room);
  double best = -INFINITY;
  for (int i = 0; i < vertex_count_; i++) best = std::fmax(best, dot(local, local_vertex(i)));
  int count = 0;
  for (int i = 0; i < vertex_count_ && count < room; i++) {
    if (dot(local, local_vertex(i)) > best - flatness_) out[count++] = i;
  }
  return count;
}

Feature Polytope::facing(Vec3 direction) const {
  int vertex_id[3];
  Feature f;
  f.size = support(direction, vertex_id, 3);
  for (int k = 0; k < f.size; k++) f.point[k] = vertex(vertex_id[k]);
  return f;
}

// The face through which the ray from the origin to p leaves the hull: N . p / N . v is greatest.
// That is a linear function of the vertices N / (N . v) of the dual polytope, so that here, too, a
// face that is better than its neighbours is best.
int Polytope::climb_faces(Vec3 local) const {
  int best = 0;
  double greatest = -INFINITY;
  auto consider = [&](int face) {
    Vec3 n = local_normal(face);
    double r = dot(n, local) / dot(n, local_vertex(face_vertex_id(face, 0)));
    if (r > greatest) greatest = r, best = face;
  };
  for (int k = 0; k < kStarts; k++) consider(k * (face_count_ / kStarts));
  for (int from = -1; from != best;) {
    from = best;
    for (int k = 0; k < face_size(from) && best == from; k++) {
      int v = face_vertex_id(from, k);
      for (int i = 0; i < fan_num_[v]; i++) consider(fans_[fan_adr_[v] + i]);
    }
  }
  return best;
}

int Polytope::faces_near(Vec3 p, double depth, int* faces, int room) const {
  Vec3 local = geom_.to_local(p);
  int found = 0;
  if (!graph_) {
    for (int f = 0; f < face_count_ && found < room; f++) {
      if (height(f, local) > -depth) faces[found++] = f;
    }
    return found;
  }
  int first = climb_faces(local);
  if (height(first, local) <= -depth) return 0;
  faces[found++] = first;
  for (int j = 0; j < found; j++) {
    for (int k = 0, n = face_size(faces[j]); k < n; k++) {
      int v = face_vertex_id(faces[j], k);
      for (int i = 0; i < fan_num_[v] && found < room; i++) {
        int f = fans_[fan_adr_[v] + i];
        bool known = std::find(faces, faces + found, f) != faces + found;
        if (!known && height(f, local) > -depth) faces[found++] = f;
      }
    }
  }
  return found;
}

bool Polytope::is_vertex(Vec3 p) const {
  Vec3 local = geom_.to_local(p);
  auto is = [&](int i) {
    Vec3 gap = local_vertex(i) - local;
    return dot(gap, gap) < flatness_ * flatness_;
  };
  if (!graph_) {
    for (int i = 0; i < vertex_count_; i++) {
      if (is(i)) return true;
    }
    return false;
  }
  int faces[kRoom];
  for (int j = 0, count = faces_near(p, flatness_, faces); j < count; j++) {
    for (int k = 0, n = face_size(faces[j]); k < n; k++) {
      if (is(face_vertex_id(faces[j], k))) return true;
    }
  }
  return false;
}

bool Polytope::edge_through(Vec3 p, Vec3& direction) const {
  int faces[kRoom];
  for (int j = 0, count = faces_near(p, flatness_, faces); j < count; j++) {
    int f = faces[j];
    if (std::abs(height(f, geom_.to_local(p))) > flatness_) continue;
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

FaceContact face_contact(int owner, Vec3 outward, Vec3 on_face, Vec3 center, double radius,
                         const Geom& other, double flatness, const ContactGeometry& g) {
  double distance = dot(outward, center - on_face) - radius;
  if (std::abs(distance - g.distance) < flatness) distance = g.distance;
  return {owner, outward, center, radius,  distance, FaceContact::kFixed, other, {}, {},
          {},    {},      {},     outward, false};
}

}  // namespace mujacobian
