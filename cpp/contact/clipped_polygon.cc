#include "contact/clipped_polygon.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;          // distance within which a vertex is at a point
constexpr double kInside = -kMinVal;  // height over a side from which a point is inside
constexpr double kRounding = 1e-14;   // error of heights, relative to coordinates of vertices
constexpr int kRoom = 64;             // largest number of vertices of a polygon
constexpr int kNodes = 3 * kRoom;     // largest number of vertices over all cuts

// A vertex of the original polygon, or the point where the line between two others crosses a side.
template <class S>
struct NodeT {
  Vec3T<S> point;
  int from, to;     // the two others; negative for an original vertex
  S t;              // place between them, 0 to 1
  Vec3T<S> normal;  // of the plane through the side
  double
      share;  // of the motion along the line: 1, or 1/2 for an end of an edge in the plane (CON-25)
};
using Node = NodeT<double>;

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
    vertex_motion(node_, node, from, v.motion);
    return v;
  }

  // Sets `out` to the motions of a vertex about `position` after infinitesimal motions of the geoms
  // about `from`, that of the cutter first.                                                (CON-38)
  void move_vertex(int node, Vec3 from, const MotionT<ContactDual> motion[2],
                   Vec3T<ContactDual> position, Vec3T<ContactDual> out[6]) const {
    NodeT<ContactDual> nodes[kNodes];
    move_nodes(node, from, motion, nodes);
    vertex_motion(nodes, node, position, out);
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

  template <class S>
  static Vec3T<S> carried(Vec3T<S> point, Vec3T<S> from, int k) {
    return k < 3 ? cross(Vec3T<S>(unit3(k)), point - from) : Vec3T<S>(unit3(k - 3));
  }

  template <class S>
  static void vertex_motion(const NodeT<S>* nodes, int node, Vec3T<S> from, Vec3T<S> out[6]) {
    slide(nodes, node, from, out);
    for (int k = 0; k < 6; k++) out[k] = out[k] + carried(nodes[node].point, from, k);
  }

  // Sets a node and all nodes on which it depends to what they are after the motions.
  void move_nodes(int node, Vec3 from, const MotionT<ContactDual> motion[2],
                  NodeT<ContactDual>* out) const {
    const Node& v = node_[node];
    const ClippedVertex still = vertex(node, from);
    const MotionT<ContactDual> apart = motion[1] + -1.0 * motion[0];
    const ContactDual relative[6] = {apart.ang.x, apart.ang.y, apart.ang.z,
                                     apart.lin.x, apart.lin.y, apart.lin.z};
    Vec3T<ContactDual> point = moved_point(motion[0], from, v.point);
    for (int k = 0; k < 6; k++) point += relative[k] * Vec3T<ContactDual>(still.motion[k]);
    out[node] = {point, v.from, v.to, v.t, turned(motion[0], v.normal), v.share};
    if (v.from < 0) return;
    move_nodes(v.from, from, motion, out);
    move_nodes(v.to, from, motion, out);
    const Vec3T<ContactDual> line = out[v.to].point - out[v.from].point;
    out[node].t = dot(point - out[v.from].point, line) / dot(line, line);
  }

  // Velocities of a vertex relative to the geom: a crossing slides along its line and stays in its
  // plane.                                                                                 (CON-23)
  template <class S>
  static void slide(const NodeT<S>* nodes, int node, Vec3T<S> from, Vec3T<S> out[6]) {
    const NodeT<S>& v = nodes[node];
    std::fill_n(out, 6, Vec3T<S>{0, 0, 0});
    if (v.from < 0) return;
    Vec3T<S> a[6], b[6];
    slide(nodes, v.from, from, a);
    slide(nodes, v.to, from, b);
    const Vec3T<S> line = nodes[v.to].point - nodes[v.from].point;
    const Vec3T<S> across = (1 / dot(v.normal, line)) * v.normal;
    for (int k = 0; k < 6; k++) {
      const Vec3T<S> with_ends = a[k] + v.t * (b[k] - a[k]);
      out[k] = with_ends - v.share * dot(across, with_ends + carried(v.point, from, k)) * line;
    }
  }

  int size_ = 0, count_ = 0;
  double tie_ = 0;  // height up to which a vertex is in a plane
  int polygon_[kRoom], moved_[kRoom];
  Node node_[kNodes];
};

// Clips face f1 of p[1] by the sides of face f0 of p[0].
bool clip(const Polytope p[2], int f0, int f1, Clipper& clipper) {
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
  return true;
}

}  // namespace

bool find_clipped(const Polytope p[2], int f0, int f1, Vec3 x, Vec3 ray, Vec3 from,
                  ClippedVertex& found) {
  Clipper clipper;
  if (!clip(p, f0, f1, clipper)) return false;
  const int node = clipper.find(x, ray);
  if (node >= 0) found = clipper.vertex(node, from);
  return node >= 0;
}

void move_clipped(const ContactSource& source, int cutter, const int face[2], Vec3 x, Vec3 from,
                  const MotionT<ContactDual> motion[2], Vec3T<ContactDual> position,
                  Vec3T<ContactDual> out[6]) {
  const Polytope p[2] = {{source.m, source.d, source.geom[cutter]},
                         {source.m, source.d, source.geom[1 - cutter]}};
  const MotionT<ContactDual> ordered[2] = {motion[cutter], motion[1 - cutter]};
  Clipper clipper;
  const bool clipped = clip(p, face[0], face[1], clipper);
  const int node = clipped ? clipper.find(x, {0, 0, 0}) : -1;
  // find_clipped has found this vertex with the same arithmetic
  if (node < 0) throw std::logic_error("a clipped polygon has lost a vertex");
  clipper.move_vertex(node, from, ordered, position, out);
}

}  // namespace mujacobian
