#include "contact/polytope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "layout/enums.h"

namespace mujacobian {
namespace {

// Corners of the faces -x +x -y +y -z +z of a box, clockwise from outside and in MuJoCo's order.
// Bit k of a corner is set if it is positive along axis k.
constexpr int kBoxFaces[6][4] = {{2, 6, 4, 0}, {7, 3, 1, 5}, {4, 5, 1, 0},
                                 {2, 3, 7, 6}, {3, 2, 0, 1}, {6, 7, 5, 4}};

constexpr int kCapSides = 16;  // of the polygon of a cap

// Searches walk on hulls with more faces than this.
constexpr int kManyFaces = 40;

// Distance, in meters, within which a point is on a line up to rounding.
constexpr double kExactly = 1e-12;

// Number of places from which a walk may start. It starts from the best one.
constexpr int kStarts = 8;

bool on_segment(Vec3 p, Vec3 a, Vec3 b, double tolerance) {
  Vec3 ab = b - a, ap = p - a;
  double length = dot(ab, ab), t = dot(ap, ab);
  if (t < 0 || t > length || length == 0) return false;
  Vec3 gap = ap - (t / length) * ab;
  return dot(gap, gap) < tolerance * tolerance;
}

}  // namespace

Polytope::Polytope(const ModelView& m, const DataView& d, int id, int* start)
    : geom_(load_geom(m, d, id)), start_(start) {
  vertices_ = nullptr, graph_ = nullptr, hull_ = nullptr;
  support_.count = 0;
  if (geom_.type == geom::kBox) {
    vertex_count_ = hull_count_ = 8, face_count_ = 6;
    flatness_ = kOn;
    return;
  }
  if (geom_.type == geom::kCylinder) {
    vertex_count_ = hull_count_ = 2 * kCapSides, face_count_ = 2;
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
  hull_count_ = vertex_count_;
  if (m.mesh_graphadr[mesh] < 0) return;
  const int* graph = m.mesh_graph + m.mesh_graphadr[mesh];
  hull_count_ = graph[0], hull_ = graph + 2 + graph[0];
  if (face_count_ > kManyFaces && !(start && *start == kEverywhere)) graph_ = graph;
}

Vec3 Polytope::local_vertex(int i) const {
  if (vertices_) return {vertices_[3 * i], vertices_[3 * i + 1], vertices_[3 * i + 2]};
  const double* s = geom_.size;
  if (geom_.type == geom::kCylinder) {
    double angle = 2 * std::numbers::pi / kCapSides * (i % kCapSides);
    return {s[0] * std::cos(angle), s[0] * std::sin(angle), i < kCapSides ? -s[1] : s[1]};
  }
  return {i & 1 ? s[0] : -s[0], i & 2 ? s[1] : -s[1], i & 4 ? s[2] : -s[2]};
}

Vec3 Polytope::vertex(int i) const { return geom_.to_world(local_vertex(i)); }

Vec3 Polytope::local_normal(int face) const {
  if (vertices_) return load3(normals_ + 3 * face);
  double n[3] = {0, 0, 0};
  n[geom_.type == geom::kCylinder ? 2 : face / 2] = face % 2 ? 1 : -1;
  return load3(n);
}

Vec3 Polytope::face_normal(int face) const { return geom_.frame * local_normal(face); }

int Polytope::face_size(int face) const {
  if (vertices_) return face_num_[face];
  return geom_.type == geom::kCylinder ? kCapSides : 4;
}

int Polytope::face_vertex_id(int face, int k) const {
  if (vertices_) return face_vertices_[face_adr_[face] + k];
  if (geom_.type == geom::kBox) return kBoxFaces[face][k];
  return face ? kCapSides + k : kCapSides - 1 - k;
}

Vec3 Polytope::face_vertex(int face, int k) const { return vertex(face_vertex_id(face, k)); }

Vec3 Polytope::clip_vertex(int face, int k) const {
  return face_vertex(face, vertices_ ? face_num_[face] - 1 - k : k);
}

// Returns the vertex of the hull that is farthest along a direction, by its place in the graph. On
// a convex hull, a vertex that is farther than its neighbors is the farthest vertex.
int Polytope::walk(Vec3 local) const {
  const int count = graph_[0];
  const int *edges_of = graph_ + 2, *id = graph_ + 2 + count, *edges = graph_ + 2 + 2 * count;
  auto value = [&](int i) { return dot(local, local_vertex(id[i])); };
  int best = start_ && *start_ >= 0 ? *start_ : 0;
  double greatest = value(best);
  auto improves = [&](int i) {
    double v = value(i);
    if (!(v > greatest)) return false;
    greatest = v, best = i;
    return true;
  };
  if (!start_ || *start_ < 0) {
    for (int k = 1; k < kStarts; k++) improves(k * (count / kStarts));
  }
  for (const int* e = edges + edges_of[best]; *e >= 0;) {
    e = improves(*e) ? edges + edges_of[best] : e + 1;
  }
  if (start_) *start_ = best;
  return best;
}

// Finds the vertices that are as far as `best`, within the flatness. They are connected.
int Polytope::collect(Vec3 local, int best, int* out, int room) const {
  const int count = graph_[0];
  const int *edges_of = graph_ + 2, *id = graph_ + 2 + count, *edges = graph_ + 2 + 2 * count;
  double least = dot(local, local_vertex(id[best])) - flatness_;
  int found = 0;
  out[found++] = best;
  for (int k = 0; k < found; k++) {
    for (const int* e = edges + edges_of[out[k]]; *e >= 0 && found < room; e++) {
      bool known = std::find(out, out + found, *e) != out + found;
      if (!known && dot(local, local_vertex(id[*e])) > least) out[found++] = *e;
    }
  }
  for (int k = 0; k < found; k++) out[k] = id[out[k]];
  return found;
}

int Polytope::farthest(Vec3 local, int* out, int room) const {
  if (graph_) return collect(local, walk(local), out, room);
  double best = -INFINITY;
  for (int k = 0; k < hull_count_; k++) {
    best = std::fmax(best, dot(local, local_vertex(hull_vertex(k))));
  }
  int count = 0;
  for (int k = 0; k < hull_count_ && count < room; k++) {
    const int i = hull_vertex(k);
    if (dot(local, local_vertex(i)) > best - flatness_) out[count++] = i;
  }
  return count;
}

const Polytope::Support& Polytope::support(Vec3 direction) const {
  const Vec3 turn = direction - support_.direction;
  if (support_.count && dot(turn, turn) == 0) return support_;
  support_.direction = direction;
  support_.count = farthest(transpose_mul(geom_.frame, direction), support_.vertex, 3);
  return support_;
}

PolytopePart Polytope::facing(Vec3 direction) const {
  const Support& farthest = support(direction);
  PolytopePart f;
  f.size = farthest.count;
  for (int k = 0; k < f.size; k++) f.point[k] = vertex(farthest.vertex[k]);
  return f;
}

bool Polytope::is_vertex(Vec3 p, Vec3 outward, double tolerance) const {
  Vec3 local = geom_.to_local(p);
  tolerance = std::fmax(tolerance, flatness_);
  auto is = [&](int i) {
    Vec3 d = local_vertex(i) - local;
    return dot(d, d) < tolerance * tolerance;
  };
  if (!graph_) {
    for (int k = 0; k < hull_count_; k++) {
      if (is(hull_vertex(k))) return true;
    }
    return false;
  }
  const Support& farthest = support(outward);
  for (int k = 0; k < farthest.count; k++) {
    if (is(farthest.vertex[k])) return true;
  }
  for (int k = 0; k < farthest.count; k++) {
    const int v = farthest.vertex[k];
    for (int i = 0; i < fan_num_[v]; i++) {
      const int f = fans_[fan_adr_[v] + i];
      for (int j = 0; j < face_num_[f]; j++) {
        if (is(face_vertices_[face_adr_[f] + j])) return true;
      }
    }
  }
  return false;
}

bool Polytope::edge_through(Vec3 p, Vec3 outward, Vec3& direction, double tolerance) const {
  const Vec3 local = geom_.to_local(p);
  tolerance = std::fmax(tolerance, flatness_);
  auto corner = [&](int f, int k) { return local_vertex(face_vertex_id(f, k)); };
  auto of_face = [&](int f) {
    const int n = face_size(f);
    Vec3 a = corner(f, 0);
    for (int k = 1; k <= n; k++) {
      const Vec3 b = corner(f, k % n);
      if (on_segment(local, a, b, tolerance)) {
        direction = geom_.frame * ((1 / norm(b - a)) * (b - a));
        return true;
      }
      a = b;
    }
    return false;
  };
  if (!graph_) {
    for (int f = 0; f < face_count_; f++) {
      // faces of meshes need not be flat
      const double height = is_mesh() ? 0 : dot(local_normal(f), local - corner(f, 0));
      if (std::abs(height) <= tolerance && of_face(f)) return true;
    }
    return false;
  }
  const Support& farthest = support(outward);
  for (int k = 0; k < farthest.count; k++) {
    const int v = farthest.vertex[k];
    for (int i = 0; i < fan_num_[v]; i++) {
      if (of_face(fans_[fan_adr_[v] + i])) return true;
    }
  }
  return false;
}

bool Polytope::chord_through(Vec3 p, Vec3& direction) const {
  struct Ray {
    Vec3 to;       // from p to a vertex
    double slope;  // its x component at unit length
  };
  const Vec3 local = geom_.to_local(p);
  std::vector<Ray> rays;
  for (int k = 0; k < hull_count_; k++) {
    const Vec3 to = local_vertex(hull_vertex(k)) - local;
    const double length = norm(to);
    if (length > kExactly) rays.push_back({to, to.x / length});
  }
  std::sort(rays.begin(), rays.end(), [](const Ray& a, const Ray& b) { return a.slope < b.slope; });

  // the two vertices are on opposite rays, so that their slopes differ in sign only
  double least = kExactly;
  for (const Ray& one : rays) {
    auto is_less = [](const Ray& ray, double slope) { return ray.slope < slope; };
    auto other = std::lower_bound(rays.begin(), rays.end(), -one.slope - kOn, is_less);
    for (; other != rays.end() && other->slope <= -one.slope + kOn; ++other) {
      const Vec3 chord = other->to - one.to;
      const double length = norm(chord);
      if (dot(one.to, other->to) >= 0 || length == 0) continue;
      const double gap = norm(cross(one.to, chord)) / length;
      if (gap < least) least = gap, direction = geom_.frame * ((1 / length) * chord);
    }
  }
  return least < kExactly;
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
    if (std::abs(dot(side, p - a)) > kOn) continue;
    // neighbors share a corner: the start of the later side, or of the first side if it is the last
    if (count == 1) corner = k == first + 1 ? a : face_vertex(face, first);
    if (count == 0) first = k;
    normals[count++] = side;
  }
  return count;
}

bool Polytope::crossed_side(int face, Vec3 p, Vec3 along, Vec3& normal) const {
  Vec3 sides[2], corner;
  double steepest = kOn;
  for (int k = 0, n = sides_through(face, p, sides, corner); k < n; k++) {
    const double slope = std::abs(dot(sides[k], along));
    if (slope > steepest) steepest = slope, normal = sides[k];
  }
  return steepest > kOn;
}

}  // namespace mujacobian
