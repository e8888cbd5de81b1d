#include "contact/clip.h"

#include <algorithm>

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;        // distance at which a point is on a feature
constexpr double kInside = -1e-15;  // height over a side from which a point is inside (mjMINVAL)
constexpr int kRoom = 64;           // vertices of a polygon
constexpr int kNodes = 3 * kRoom;   // vertices ever made of one polygon

// A vertex of the polygon before it was cut, or where the line between two others crosses a side.
struct Node {
  Vec3 point;
  int from, to;  // negative: not a crossing
  double t;      // of the way
  Vec3 normal;   // of the plane through the side
};

// A polygon and its history: how its vertices move is asked of one of them only.
class Clipper {
 public:
  bool add(Vec3 vertex) {
    if (size_ == kRoom) return false;
    polygon_[size_++] = make({vertex, -1, -1, 0, {}});
    return true;
  }

  // Keeps the part on the side of the plane to which its normal points; false without room.
  bool cut(Vec3 on_plane, Vec3 normal) {
    int kept[kRoom], size = 0;
    auto height = [&](int i) { return dot(normal, node_[polygon_[i]].point - on_plane); };
    double low = size_ > 0 ? height(0) : 0;
    const double first = low;
    for (int i = 0; i < size_; i++) {
      const int next = i + 1 < size_ ? i + 1 : 0;
      const double high = next > 0 ? height(next) : first;
      if (size + 2 > kRoom || count_ == kNodes) return false;
      if ((low > kInside) != (high > kInside) && low != high) {
        kept[size++] = cross_side(polygon_[i], polygon_[next], low / (low - high), normal);
      }
      if (high > kInside) kept[size++] = polygon_[next];
      low = high;
    }
    std::copy(kept, kept + size, polygon_);
    size_ = size;
    return true;
  }

  // The vertex that is seen at x along `ray`.
  int find(Vec3 x, Vec3 ray) const {
    for (int i = 0; i < size_; i++) {
      Vec3 gap = node_[polygon_[i]].point - x;
      gap = gap - dot(gap, ray) * ray;
      if (dot(gap, gap) < kOn * kOn) return polygon_[i];
    }
    return -1;
  }

  // How a vertex moves with the polygon's geom, which turns about `from` and moves.
  ClippedVertex vertex(int node, Vec3 from) const {
    ClippedVertex v{node_[node].point, {}};
    slide(node, from, v.motion);
    for (int k = 0; k < 6; k++) v.motion[k] = v.motion[k] + carried(v.point, from, k);
    return v;
  }

 private:
  int make(const Node& node) {
    node_[count_] = node;
    return count_++;
  }
  int cross_side(int a, int b, double t, Vec3 normal) {
    const Vec3 p = node_[a].point, q = node_[b].point;
    return make({p + t * (q - p), a, b, t, normal});
  }

  static Vec3 carried(Vec3 point, Vec3 from, int k) {
    return k < 3 ? cross(unit3(k), point - from) : unit3(k - 3);
  }

  // How a vertex moves relative to the geom: a crossing slides along its line, and stays in its
  // plane.                                                                               (CON-23)
  void slide(int node, Vec3 from, Vec3 out[6]) const {
    const Node& v = node_[node];
    std::fill_n(out, 6, Vec3{0, 0, 0});
    if (v.from < 0) return;
    Vec3 a[6], b[6];
    slide(v.from, from, a);
    slide(v.to, from, b);
    const Vec3 line = node_[v.to].point - node_[v.from].point;
    const Vec3 across = (1 / dot(v.normal, line)) * v.normal;
    for (int k = 0; k < 6; k++) {
      const Vec3 with_ends = a[k] + v.t * (b[k] - a[k]);
      out[k] = with_ends - dot(across, with_ends + carried(v.point, from, k)) * line;
    }
  }

  int size_ = 0, count_ = 0;
  int polygon_[kRoom];
  Node node_[kNodes];
};

}  // namespace

bool find_clipped(const Polytope p[2], int f0, int f1, Vec3 x, Vec3 ray, Vec3 from,
                  ClippedVertex& found) {
  Clipper clipper;
  for (int k = 0, size = p[1].face_size(f1); k < size; k++) {
    if (!clipper.add(p[1].face_vertex(f1, k))) return false;
  }
  const Vec3 base = p[0].face_normal(f0);
  Vec3 a = p[0].clip_vertex(f0, 0);
  for (int k = 0, sides = p[0].face_size(f0); k < sides; k++) {
    const Vec3 b = p[0].clip_vertex(f0, (k + 1) % sides), inward = cross(b - a, base);
    const double length = norm(inward);
    if (length == 0 || !clipper.cut(a, (1 / length) * inward)) return false;
    a = b;
  }
  const int node = clipper.find(x, ray);
  if (node >= 0) found = clipper.vertex(node, from);
  return node >= 0;
}

}  // namespace mujacobian
