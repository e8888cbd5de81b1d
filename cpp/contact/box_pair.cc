// Pairs of boxes: a face of one box over clipped points of the other, or two crossing edges.
#include <algorithm>
#include <cmath>

#include "contact/center_pair.h"
#include "contact/clipped_polygon.h"
#include "contact/pair_table.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;  // distance within which a point is on a face

// Sets `at` to the sides that a local point is on, -1, 0 or 1 per axis. Returns their number.
int sides(const Geom& box, Vec3 p, int at[3]) {
  const double x[3] = {p.x, p.y, p.z};
  int count = 0;
  for (int k = 0; k < 3; k++) {
    at[k] = std::abs(std::abs(x[k]) - box.size[k]) < kOn ? (x[k] > 0 ? 1 : -1) : 0;
    count += at[k] != 0;
  }
  return count;
}

// Returns the axis of the face whose normal is nearest to n, and sets `error` to their distance.
int nearest_face(const Geom& box, Vec3 n, double& error) {
  const Vec3 along = transpose_mul(box.frame, n);
  const double cosine[3] = {std::abs(along.x), std::abs(along.y), std::abs(along.z)};
  const int best = static_cast<int>(std::max_element(cosine, cosine + 3) - cosine);
  const Vec3 axis = column(box.frame, best);
  error = norm(n - (dot(n, axis) > 0 ? axis : -axis));
  return best;
}

// Normals of faces that are parallel up to rounding.
constexpr double kParallel = 1e-14;

// Number of the face of a Polytope that faces a direction: -x, +x, -y, +y, -z, +z.
int face_along(const Geom& box, Vec3 direction) {
  double error;
  const int axis = nearest_face(box, direction, error);
  return 2 * axis + (dot(column(box.frame, axis), direction) > 0);
}

// A vertex of the incident face that the sides of the reference face have clipped, if features of
// both faces meet there. Repeating MuJoCo's clipping finds the one that it belongs to.     (CON-25)
bool find_clipped_point(const ModelView& m, const DataView& d, const ContactGeometry& g,
                        FaceFeature& f) {
  const int owner = f.owner;
  const Polytope p[2] = {{m, d, g.geom[owner]}, {m, d, g.geom[1 - owner]}};
  ClippedVertex v;
  const int reference = face_along(p[0].geom(), f.outward),
            incident = face_along(p[1].geom(), -f.outward);
  if (!find_clipped(p, reference, incident, f.center, {0, 0, 0}, g.position, v)) return false;
  ClippedPoint point{.face = {reference, incident}};
  std::copy(v.motion, v.motion + 6, point.motion);
  f.slide = point;
  return true;
}

// A point of the incident box over the face `axis` of the reference box. Sets the refusal of g if
// the point is where nearly parallel edges cross.
bool find_face(const ModelView& m, const DataView& d, const Geom box[2], int owner, int axis,
               ContactGeometry& g, FaceFeature& f) {
  const Geom &ref = box[owner], &other = box[1 - owner];
  Vec3 normal = column(ref.frame, axis);
  Vec3 towards = owner == 0 ? g.normal : -g.normal;
  Vec3 outward = dot(normal, towards) > 0 ? normal : -normal;
  Vec3 point = g.position + (g.distance / 2) * outward;
  double height = dot(outward, point - ref.position) - ref.size[axis];
  f = {.owner = owner, .outward = outward, .center = point, .distance = height};

  // on which sides of the incident box the point is, and over which sides of the reference face
  int on[3], over[3];
  int incident = sides(other, other.to_local(point), on);
  sides(ref, ref.to_local(point), over);
  over[axis] = 0;
  int bounds = (over[0] != 0) + (over[1] != 0) + (over[2] != 0);
  if (incident + bounds > 3 && find_clipped_point(m, d, g, f)) return true;
  if (incident == 3) return true;
  if (incident == 2 && bounds >= 1) {
    // an incident edge crossing the side of the reference face that it is less parallel to
    int free_axis = on[0] == 0 ? 0 : on[1] == 0 ? 1 : 2;
    EdgeCrossing edge{.along = column(other.frame, free_axis)};
    double best = 0;
    for (int k = 0; k < 3; k++) {
      double slope = std::abs(dot(column(ref.frame, k), edge.along));
      if (over[k] != 0 && slope > best) best = slope, edge.side = column(ref.frame, k);
    }
    // for an edge in the plane of a side, as between the pads of a gripper, rounding alone decides
    // where on the edge the point is, and the edge carries it; for an edge nearly in the plane, the
    // velocity of the point is inversely proportional to an angle that is not known
    // tie: edge along a side
    if (best > kParallel) f.slide = edge;
    if (best > kOn || best <= kParallel) return true;
    g.refusal = "its edges cross at less than 1e-9 rad, and rounding decides where the contact is";
    return false;
  }
  if (incident == 1 && bounds == 2) {
    int face_axis = on[0] != 0 ? 0 : on[1] != 0 ? 1 : 2;
    const CornerPoint at{.corner = point - height * outward,
                         .face = column(other.frame, face_axis)};
    f.slide = at;
    return std::abs(dot(at.face, outward)) > kOn;
  }
  return false;
}

// Two edges that cross.
bool identify_edges(const Geom box[2], ContactGeometry& g) {
  EdgeFeature e;
  for (int s = 0; s < 2; s++) {
    e.point[s] = g.position + ((s ? 0.5 : -0.5) * g.distance) * g.normal;
    int on[3];
    if (sides(box[s], box[s].to_local(e.point[s]), on) != 2) return false;
    int free_axis = on[0] == 0 ? 0 : on[1] == 0 ? 1 : 2;
    e.axis[s] = column(box[s].frame, free_axis);
    if (std::abs(dot(e.axis[s], g.normal)) > kOn) return false;
  }
  Vec3 product = cross(e.axis[0], e.axis[1]);
  e.sign = dot(product, g.normal) > 0 ? 1 : -1;
  g.feature = e;
  return norm(product) > kOn;
}

// The edge of a box along one of its axes that is farthest along a direction.
void supporting_edge(const Geom& box, int axis, Vec3 direction, Vec3 ends[2]) {
  Vec3 middle = box.position;
  for (int k = 0; k < 3; k++) {
    const Vec3 to_face = box.size[k] * column(box.frame, k);
    if (k != axis) middle += std::copysign(1, dot(direction, to_face)) * to_face;
  }
  const Vec3 half = box.size[axis] * column(box.frame, axis);
  ends[0] = middle - half, ends[1] = middle + half;
}

// Two edges whose nearest points are ends of edges. The normal is perpendicular to both edges, but
// not along the vector between the two points.                                            (CON-32)
bool identify_edge_ends(const Geom box[2], ContactGeometry& g) {
  for (int pair = 0; pair < 9; pair++) {
    const int axis[2] = {pair / 3, pair % 3};
    EdgeFeature e;
    Vec3 ends[2][2];
    for (int s = 0; s < 2; s++) {
      e.axis[s] = column(box[s].frame, axis[s]);
      supporting_edge(box[s], axis[s], s ? -g.normal : g.normal, ends[s]);
    }
    const Vec3 product = cross(e.axis[0], e.axis[1]);
    if (norm(product) < kOn || norm(cross(product, g.normal)) > kOn) continue;
    e.sign = dot(product, g.normal) > 0 ? 1 : -1;
    double place[2];
    nearest_points(ends[0][0], ends[0][1], ends[1][0], ends[1][1], place[0], place[1]);
    for (int s = 0; s < 2; s++) {
      e.point[s] = ends[s][0] + place[s] * (ends[s][1] - ends[s][0]);
      e.at_end[s] = place[s] == 0 || place[s] == 1;
    }
    if (mismatch(rederive(e, g.normal), g) > kOn) continue;
    g.feature = e;
    return true;
  }
  return false;
}

}  // namespace

bool identify_boxes(const ModelView& m, const DataView& d, const ContactView& contact,
                    ContactGeometry& g) {
  const Geom box[2] = {load_geom(m, d, contact.geom.v[0]), load_geom(m, d, contact.geom.v[1])};

  // MuJoCo prefers the face of the first box if both serve
  double error[2];
  int axis[2] = {nearest_face(box[0], g.normal, error[0]),
                 nearest_face(box[1], g.normal, error[1])};
  int owner = error[1] < error[0] && error[0] > 1e-14 ? 1 : 0;
  FaceFeature face;
  if (error[owner] < kOn && find_face(m, d, box, owner, axis[owner], g, face)) {
    g.feature = face;
    // the parallel face of the other box serves as well
    FaceFeature other;
    if (error[1 - owner] < kParallel &&
        find_face(m, d, box, 1 - owner, axis[1 - owner], g, other)) {
      g.twin = Twin{.face = other, .box = {box[0], box[1]}};
    }
    return true;
  }
  return identify_edges(box, g) || identify_edge_ends(box, g);
}

}  // namespace mujacobian
