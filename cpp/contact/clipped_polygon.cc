#include "contact/clipped_polygon.h"

#include <algorithm>
#include <cmath>

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;         // distance within which a vertex is at a point
constexpr double kInside = -1e-15;   // height over a side from which a point is inside (mjMINVAL)
constexpr double kRounding = 1e-14;  // error of heights, relative to coordinates of vertices
constexpr int kRoom = 64;            // largest number of vertices of a polygon
constexpr int kNodes = 3 * kRoom;    // largest number of vertices over all cuts

// A vertex of the original polygon, or the point where the line between two others crosses a side.
struct Node {
  Vec3 point;
  int from, to;  // the two others; negative for an original vertex
  double t;      // place between them, 0 to 1
  Vec3 normal;   // of the plane through the side
  double
      share;  // of the motion along the line: 1, or 1/2 for an end of an edge in the plane (CON-25)
};

// A polygon with the history of its vertices, from which the motion of one of them is computed.
class Clipper {
 public:
  bool add(Vec3 vertex) {
    if (size_ == kRoom) return false;
    polygon_[size_++] = make({vertex, -1, -1, 0, {}, 1});
    tie_ = std::fmax(tie_, kRounding * norm(vertex));
    return true;
  }

  // Keeps the part on the side of the plane to which its normal points. Returns false without room.
  bool cut(Vec3 on_plane, Vec3 normal) {
    double height[kRoom];
    for (int i = 0; i < size_; i++) height[i] = dot(normal, node_[polygon_[i]].point - on_plane);
    if (!share_edges(normal, height)) return false;
    int kept[kRoom], size = 0;
    for (int i = 0; i < size_; i++) {
      const int next = i + 1 < size_ ? i + 1 : 0;
      const double low = height[i], high = height[next];
      if (size + 2 > kRoom || count_ == kNodes) return false;
      if ((low > kInside) != (high > kInside) && low != high) {
        kept[size++] = cross_side(polygon_[i], polygon_[next], low / (low - high), normal);
      }
      if (high > kInside) kept[size++] = polygon_[next];
    }
    std::copy(kept, kept + size, polygon_);
    size_ = size;
    return true;
  }

  // Returns the vertex nearest to x in projection along `ray`, -1 if none is close.
  int find(Vec3 x, Vec3 ray) const {
    int found = -1;
    double least = kOn * kOn;
    for (int i = 0; i < size_; i++) {
      Vec3 gap = node_[polygon_[i]].point - x;
      gap = gap - dot(gap, ray) * ray;
      if (dot(gap, gap) < least) least = dot(gap, gap), found = polygon_[i];
    }
    return found;
  }

  // Returns a vertex with its motions about `from`.
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
    return make({p + t * (q - p), a, b, t, normal, 1});
  }

  // Treats edges of the polygon that are in the plane of the side, up to rounding. Each end slides
  // along the other edge that meets it there, half as far as the side does. The plane then does not
  // cut the edge.                                                                          (CON-25)
  bool share_edges(Vec3 normal, double* height) {
    int ends[kRoom], count = 0;
    for (int i = 0; i < size_; i++) {
      const int before = i > 0 ? i - 1 : size_ - 1, after = i + 1 < size_ ? i + 1 : 0;
      // tie: edges in one plane
      const bool edge_before = std::abs(height[before]) <= tie_;
      const bool edge_after = std::abs(height[after]) <= tie_;
      if (std::abs(height[i]) > tie_ || edge_before == edge_after) continue;
      const int inside = edge_before ? after : before;
      if (height[inside] <= tie_) continue;
      if (count_ == kNodes) return false;
      const int vertex = polygon_[i];
      ends[count] = i;
      moved_[count++] = make({node_[vertex].point, polygon_[inside], vertex, 1, normal, 0.5});
    }
    for (int k = 0; k < count; k++) polygon_[ends[k]] = moved_[k], height[ends[k]] = 0;
    return true;
  }

  static Vec3 carried(Vec3 point, Vec3 from, int k) {
    return k < 3 ? cross(unit3(k), point - from) : unit3(k - 3);
  }

  // Velocities of a vertex relative to the geom: a crossing slides along its line and stays in its
  // plane.                                                                                 (CON-23)
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
      out[k] = with_ends - v.share * dot(across, with_ends + carried(v.point, from, k)) * line;
    }
  }

  int size_ = 0, count_ = 0;
  double tie_ = 0;  // height up to which a vertex is in a plane
  int polygon_[kRoom], moved_[kRoom];
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
