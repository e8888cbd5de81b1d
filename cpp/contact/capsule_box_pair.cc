// Pairs of a capsule and a box: spheres at up to two points of the capsule's segment. The first one
// is nearest to the box, and the second one is ahead of it along a face or an edge. (CON-15)
#include <cmath>
#include <limits>

#include "contact/pair_table.h"
#include "contact/sphere_pair.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kParallel = kMinVal;
constexpr double kTie = 1e-12;   // m: distance of an end from the plane of a side that it is in
constexpr double kAtEnd = 1e-9;  // distance from an end, relative to half the segment

// A segment in the frame of a box; its points are middle + t half, t from -1 to 1.
struct Segment {
  double middle[3], half[3];
  double at(double t, int k) const { return middle[k] + t * half[k]; }
};

Segment in_box_frame(const Geom& capsule, const Geom& box) {
  Segment s;
  store3(s.middle, box.to_local(capsule.position));
  store3(s.half, capsule.size[1] * transpose_mul(box.frame, capsule.axis()));
  return s;
}

// The point at which a segment is nearest to a box: an end over a face, or a point over an edge.
struct Nearest {
  double gap;      // squared distance
  double t;        // place on the segment, -1 to 1
  bool inner;      // t is between the ends
  int face;        // axis of the face under the end, -1: the end is inside the box, or over an edge
  int edge;        // axis of the edge, -1: over a face
  int corner;      // bit k: positive along axis k; of the end of the edge, or of its lower end if
                   // `along`
  double on_edge;  // place on the edge, -1 to 1
  bool along;      // on_edge is between the ends
};

// Compares the ends of the segment that are over a face, or inside, with the best point.
void over_faces(const Segment& s, const double* size, Nearest& best) {
  for (int end = -1; end <= 1; end += 2) {
    int outside = 0, face = -1;
    double gap = 0;
    for (int k = 0; k < 3; k++) {
      double beyond = std::abs(s.at(end, k)) - size[k];
      if (beyond <= 0) continue;
      outside++, face = k;
      gap += beyond * beyond;
    }
    // tie: end of a capsule over a box
    if (outside <= 1 && gap < best.gap) best = {gap, double(end), false, face, -1, 0, 0, false};
  }
}

// Returns t clamped to -1 .. 1. If it was outside, sets `end` to the sign of that end.
double clamped(double t, int& end) {
  if (t >= -1 && t <= 1) return t;
  return end = t > 0 ? 1 : -1;
}

// Compares the nearest point over an edge with the best point: the edge along `axis` through
// `corner`, whose bit `axis` is not set.
void over_edge(const Segment& s, const double* size, int axis, int corner, Nearest& best) {
  double from[3];  // from the segment's middle to the middle of the edge
  for (int k = 0; k < 3; k++) {
    from[k] = (k == axis ? 0 : corner >> k & 1 ? size[k] : -size[k]) - s.middle[k];
  }
  double ee = size[axis] * size[axis], es = -size[axis] * s.half[axis], ss = 0, v = 0;
  for (int k = 0; k < 3; k++) ss += s.half[k] * s.half[k], v += s.half[k] * from[k];
  double u = -size[axis] * from[axis], det = ee * ss - es * es;
  if (std::abs(det) < kParallel) return;

  Nearest n{0, 0, false, -1, axis, corner, 0, false};
  int edge_end = 0, segment_end = 0;
  n.on_edge = clamped((ss * u - es * v) / det, edge_end);
  n.t = clamped((v - es * n.on_edge) / ss, segment_end);
  // like MuJoCo, keep edge_end even if the point leaves the end of the edge again
  if (segment_end != 0) n.on_edge = clamped((u - es * n.t) / ee, edge_end);
  n.inner = segment_end == 0;
  n.along = edge_end == 0;
  if (edge_end > 0) n.corner |= 1 << axis;
  for (int k = 0; k < 3; k++) {
    double gap = from[k] - n.t * s.half[k] + (k == axis ? n.on_edge * size[k] : 0);
    n.gap += gap * gap;
  }
  if (n.gap < best.gap - kParallel) best = n;
}

Nearest nearest(const Segment& s, const double* size) {
  Nearest best{std::numeric_limits<double>::infinity(), 0, false, -1, -1, 0, 0, false};
  over_faces(s, size, best);
  for (int axis = 0; axis < 3; axis++) {
    for (int corner = 0; corner < 8; corner++) {
      if (!(corner >> axis & 1)) over_edge(s, size, axis, corner, best);
    }
  }
  return best;
}

// Whether an end of the segment is exactly over a side of a face, to which it is not parallel.
bool ends_over_edge(const Segment& s, const double* size) {
  for (int end = -1; end <= 1; end += 2) {
    bool tied = false;
    int outside = 0;
    for (int k = 0; k < 3; k++) {
      const double beyond = std::abs(s.at(end, k)) - size[k];
      // tie: capsule as long as a box
      if (std::abs(beyond) <= kTie) {
        tied |= std::abs(s.half[k]) > kTie;
      } else {
        outside += beyond > 0;
      }
    }
    if (tied && outside <= 1) return true;
  }
  return false;
}

// The way from the first point to the second one.
struct Step {
  double length;  // in units of t; zero if there is no second point
  int axis;       // axis of the box along which the way ends; -1: at the end of the segment
  SegmentPoint::Rule rule;
  bool to_end;  // see SegmentPoint
};

void shorten(Step& step, double length, int axis, bool to_end = false) {
  if (length < step.length) step = {length, axis, SegmentPoint::kStep, to_end};
}

Step signed_by(Step step, double sign) {
  step.length *= sign;
  return step;
}

// Change of t over the width of the box along axis k.
double width(const Segment& s, const double* size, int k) {
  return 2 * size[k] / std::abs(s.half[k]);
}

// The way from a corner: along the edge that the segment follows, or along a face. Bit k of
// `against` is set if the segment points from the corner into the box along axis k.
Step from_corner(const Segment& s, const double* size, const Nearest& n, int against) {
  if (against == 0 || against == 7) return {};  // towards the corner or away from it
  bool one = against == 1 || against == 2 || against == 4;
  if (!one) against = 7 - against;
  int axis = against / 2;  // 1, 2, 4: axis 0, 1, 2
  double forward = one ? 1 : -1, length = 0;
  for (int k = 0; k < 3; k++) length += s.half[k] * s.half[k];
  if (s.half[axis] * s.half[axis] > 0.5 * length) {
    Step step{1 - forward * n.t, -1, SegmentPoint::kStart, false};
    shorten(step, width(s, size, axis), axis);
    return signed_by(step, forward);
  }
  Step step{1 + forward * n.t, -1, SegmentPoint::kStart, false};
  for (int k = 1; k < 3; k++) {
    int other = (axis + k) % 3;
    shorten(step, width(s, size, other), other);
  }
  return signed_by(step, -forward);
}

// The way from an edge that the segment crosses: over the face to which it is less inclined.
Step from_edge(const Segment& s, const double* size, const Nearest& n, int against) {
  against &= 7 - (1 << n.edge);
  if (against != 1 && against != 2 && against != 4) return {};
  int first = (n.edge + 1) % 3, across = (n.edge + 2) % 3;
  if (std::abs(s.half[first]) > std::abs(s.half[across])) across = first;
  double forward = against >> across & 1 ? 1 : -1;
  Step step{1 - forward * n.t, -1, SegmentPoint::kStart, false};
  shorten(step, width(s, size, across), across);
  double rest = (s.half[n.edge] > 0) == (forward > 0) ? 1 - n.on_edge : 1 + n.on_edge;
  shorten(step, size[n.edge] * rest / std::abs(s.half[n.edge]), n.edge, true);
  return signed_by(step, forward);
}

// The way from an end over a face: to the point where the segment leaves the face.
Step from_face(const Segment& s, const double* size, const Nearest& n) {
  if (n.face < 0) return {};
  Step step{2, -1, SegmentPoint::kStart, false};
  for (int k = 0; k < 3; k++) {
    if (k == n.face) continue;
    for (int side = -1; side <= 1; side += 2) {
      double length = (side * size[k] - s.at(n.t, k)) / (-n.t * s.half[k]);
      if (length > 0 && length < step.length) step = {length, k, SegmentPoint::kPlane, false};
    }
  }
  return signed_by(step, -n.t);
}

Step second(const Segment& s, const double* size, const Nearest& n) {
  if (n.edge < 0) return from_face(s, size, n);
  int ahead = (s.half[0] > 0) + 2 * (s.half[1] > 0) + 4 * (s.half[2] > 0);
  int against = ahead ^ n.corner;
  return n.along ? from_edge(s, size, n, against) : from_corner(s, size, n, against);
}

// The nearest points of the segment and the box, and how they slide.
CenterPair centers_at(const Nearest& n, const Geom& capsule, const Geom& box) {
  CenterPair c;
  c.center[0] = capsule.position + (n.t * capsule.size[1]) * capsule.axis();
  c.axis[0] = capsule.axis();
  c.slide[0] = n.inner ? CenterPair::kLine : CenterPair::kFixed;
  if (n.edge < 0) return c;
  double p[3];
  for (int k = 0; k < 3; k++) p[k] = n.corner >> k & 1 ? box.size[k] : -box.size[k];
  p[n.edge] = n.on_edge * box.size[n.edge];
  c.center[1] = box.to_world(load3(p));
  c.axis[1] = column(box.frame, n.edge);
  c.slide[1] = n.along ? CenterPair::kLine : CenterPair::kFixed;
  return c;
}

// The contact at an end of the segment if an end is exactly over a side of a face. Over that side,
// whichever of the two is farther inside has the point.                                    (CON-27)
bool identify_end(const Segment& s, const Geom& capsule, const Geom& box, ContactGeometry& g) {
  const Vec3 witness = g.position - (g.distance / 2 + capsule.size[0]) * g.normal;
  const double t = dot(witness - capsule.position, capsule.axis()) / capsule.size[1];
  const int end = t > 0 ? 1 : -1;
  if (std::abs(t - end) > kAtEnd) return false;
  int side = -1, face = -1, sides = 0, faces = 0;
  for (int k = 0; k < 3; k++) {
    const double beyond = std::abs(s.at(end, k)) - box.size[k];
    if (std::abs(beyond) <= kTie && std::abs(s.half[k]) > kTie) {
      side = k, sides++;
    } else if (beyond > 0) {
      face = k, faces++;
    }
  }
  if (sides > 1 || faces != 1) return false;
  const Vec3 center = capsule.position + (end * capsule.size[1]) * capsule.axis();
  const Vec3 up = column(box.frame, face), outward = s.at(end, face) > 0 ? up : -up;
  const double height = std::abs(s.at(end, face)) - box.size[face] - capsule.size[0];
  FaceFeature f{.owner = 1,
                .outward = outward,
                .center = center,
                .radius = capsule.size[0],
                .distance = height};
  if (sides > 0) {
    f.slide = SegmentPoint{.axis = capsule.axis(),
                           .start = center,
                           .point = center,
                           .rule = SegmentPoint::kPlane,
                           .side = column(box.frame, side),
                           .share = 0.5};
  }
  g.feature = f;
  return true;
}

}  // namespace

bool identify_capsule_box(const ModelView& m, const DataView& d, const ContactView& contact,
                          ContactGeometry& g) {
  const Geom capsule = load_geom(m, d, contact.geom.v[0]), box = load_geom(m, d, contact.geom.v[1]);
  const double half = capsule.size[1];
  const Segment segment = in_box_frame(capsule, box);
  if (ends_over_edge(segment, box.size)) return identify_end(segment, capsule, box, g);
  const Nearest first = nearest(segment, box.size);
  const Step step = second(segment, box.size, first);

  // which of the two points this contact is
  Vec3 witness = g.position - (g.distance / 2 + capsule.size[0]) * g.normal;
  double t = dot(witness - capsule.position, capsule.axis()) / half;
  bool is_first = std::abs(t - first.t) <= std::abs(t - first.t - step.length);

  // the point of the segment
  SegmentPoint p;
  p.nearest = centers_at(first, capsule, box);
  p.nearest_start = first.inner;
  p.start = p.nearest.center[0];
  p.axis = capsule.axis();
  p.point = p.start;
  if (!is_first) {
    p.point = p.start + (step.length * half) * p.axis;
    p.rule = step.rule;
    p.to_end = step.to_end;
    if (step.axis >= 0) p.side = column(box.frame, step.axis);
  }
  // at an end of the segment
  bool fixed = is_first ? !first.inner : step.axis < 0;
  if (is_first && first.inner) g.region = half * (1 - std::abs(first.t));

  // the sphere around it
  Geom sphere = capsule;
  sphere.position =
      fixed && !is_first ? capsule.position + ((step.length > 0 ? half : -half) * p.axis) : p.point;
  find_sphere_on_box(sphere, box, g);
  if (fixed) return true;
  if (auto* face = std::get_if<FaceFeature>(&g.feature)) {
    face->slide = p;
  } else {
    CenterFeature& centers = std::get<CenterFeature>(g.feature);
    centers.pair.slide[0] = CenterPair::kSegment;
    centers.segment = p;
  }
  return true;
}

}  // namespace mujacobian
