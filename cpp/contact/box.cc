// Boxes against boxes: a face of one over clipped points of the other, or two crossing edges.
#include <algorithm>
#include <cmath>

#include "contact/clip.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;  // a coordinate is on a face

// Which sides of the box a local point is on: -1, 0 or 1 per axis; returns their number.
int sides(const Geom& box, Vec3 p, int at[3]) {
  const double x[3] = {p.x, p.y, p.z};
  int count = 0;
  for (int k = 0; k < 3; k++) {
    at[k] = std::abs(std::abs(x[k]) - box.size[k]) < kOn ? (x[k] > 0 ? 1 : -1) : 0;
    count += at[k] != 0;
  }
  return count;
}

// The face normal of the box nearest to +-n: its axis, and the distance from n.
int nearest_face(const Geom& box, Vec3 n, double& error) {
  int best = 0;
  error = 2;
  for (int k = 0; k < 3; k++) {
    Vec3 axis = column(box.frame, k);
    double e = norm(n - (dot(n, axis) > 0 ? axis : -axis));
    if (e < error) error = e, best = k;
  }
  return best;
}

// Normals of faces that are parallel up to rounding.
constexpr double kParallel = 1e-14;

// Half the extent of a box along a direction m in the plane of its face.
double reach(const Geom& box, Vec3 m) {
  double sum = 0;
  for (int k = 0; k < 3; k++) sum += box.size[k] * std::abs(dot(column(box.frame, k), m));
  return sum;
}

// A face of a box among those of the polytope, which come in pairs of axes: - and +.
int face_along(const Geom& box, Vec3 direction) {
  double error;
  const int axis = nearest_face(box, direction, error);
  return 2 * axis + (dot(column(box.frame, axis), direction) > 0);
}

// A vertex of the incident face clipped by the sides of the reference face where features of both
// meet: which of them it belongs to is decided by clipping, as MuJoCo does.              (CON-25)
bool identify_clipped(const ModelView& m, const DataView& d, int owner, Vec3 outward,
                      ContactGeometry& g) {
  const Polytope p[2] = {{m, d, g.geom[owner]}, {m, d, g.geom[1 - owner]}};
  ClippedVertex v;
  const int reference = face_along(p[0].geom(), outward),
            incident = face_along(p[1].geom(), -outward);
  if (!find_clipped(p, reference, incident, g.face.center, {0, 0, 0}, g.position, v)) return false;
  g.face.slide = FaceContact::kClipped;
  std::copy(v.motion, v.motion + 6, g.clipped);
  return true;
}

// A point of the incident box over the face `axis` of the reference box.
bool identify_face(const ModelView& m, const DataView& d, const Geom box[2], int owner, int axis,
                   ContactGeometry& g) {
  const Geom &ref = box[owner], &other = box[1 - owner];
  Vec3 normal = column(ref.frame, axis);
  Vec3 towards = owner == 0 ? g.normal : -g.normal;
  Vec3 outward = dot(normal, towards) > 0 ? normal : -normal;
  Vec3 point = g.position + (g.distance / 2) * outward;
  double height = dot(outward, point - ref.position) - ref.size[axis];

  g.kind = ContactGeometry::kFace;
  g.face = {owner, outward, point, 0,       height, FaceContact::kFixed, other, {}, {},
            {},    {},      {},    outward, false};
  int on[3], over[3];
  int incident = sides(other, other.to_local(point), on);
  sides(ref, ref.to_local(point), over);
  over[axis] = 0;
  int bounds = (over[0] != 0) + (over[1] != 0) + (over[2] != 0);
  if (incident + bounds > 3 && identify_clipped(m, d, owner, outward, g)) return true;
  if (incident == 3) return true;
  if (incident == 2 && bounds >= 1) {
    // an incident edge crossing the side of the reference face that it is less parallel to
    int free_axis = on[0] == 0 ? 0 : on[1] == 0 ? 1 : 2;
    g.face.along = column(other.frame, free_axis);
    double best = 0;
    for (int k = 0; k < 3; k++) {
      double slope = std::abs(dot(column(ref.frame, k), g.face.along));
      if (over[k] != 0 && slope > best) best = slope, g.face.side = column(ref.frame, k);
    }
    // an edge in the plane of a side, as between the pads of a gripper: rounding alone decides
    // where on the edge the point is, and the edge carries it; nearly in the plane, the point moves
    // by the motion over the angle, which is not known
    // tie: edge along a side
    g.face.slide = best > kParallel ? FaceContact::kEdge : FaceContact::kFixed;
    return best > kOn || best <= kParallel;
  }
  if (incident == 1 && bounds == 2) {
    int face_axis = on[0] != 0 ? 0 : on[1] != 0 ? 1 : 2;
    g.face.slide = FaceContact::kCorner;
    g.face.side = column(other.frame, face_axis);
    g.face.corner = point - height * outward;
    return std::abs(dot(g.face.side, outward)) > kOn;
  }
  return false;
}

bool identify_edges(const Geom box[2], ContactGeometry& g) {
  g.kind = ContactGeometry::kEdges;
  EdgeContact& e = g.edges;
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
  return norm(product) > kOn;
}

// The face of the other box serves as well.
void add_twin(const ModelView& m, const DataView& d, const Geom box[2], int owner, int axis,
              ContactGeometry& g) {
  ContactGeometry other = g;
  if (!identify_face(m, d, box, owner, axis, other)) return;
  g.has_twin = true;
  g.twin = other.face;
  std::copy(other.clipped, other.clipped + 6, g.twin_clipped);
}

}  // namespace

ContactGeometry twin_of(const ContactGeometry& g) {
  ContactGeometry other = g;
  other.has_twin = false;
  other.face = g.twin;
  std::copy(g.twin_clipped, g.twin_clipped + 6, other.clipped);
  return other;
}

// MuJoCo takes the face along whose normal the boxes are farther apart. How that of box 1 gains on
// that of box 0 when the boxes turn relative to one another:                             (CON-26)
bool takes_twin(const ContactGeometry& g, const Motion motion[2]) {
  const Geom& first = g.face.owner == 0 ? g.twin.other : g.face.other;
  const Geom& second = g.face.owner == 0 ? g.face.other : g.twin.other;
  const Vec3 n = g.normal, tilt = cross(motion[1].ang - motion[0].ang, n);
  const Vec3 centers = second.position - first.position;
  const double leaning = dot(centers - dot(centers, n) * n, tilt);
  const double wider = reach(second, tilt) - reach(first, tilt);
  const double rounding = kParallel * norm(tilt);
  int owner = 0;
  if (std::abs(leaning) <= rounding && std::abs(wider) <= rounding) {
    // to second order, by how the boxes slide where their centers' line meets the contact's plane
    const Vec3 meeting = first.position + dot(g.position - first.position, n) * n - g.position;
    // tie: reference face by motion
    owner = dot(at_point(motion[1], meeting) - at_point(motion[0], meeting), tilt) > 0;
  } else {
    // tie: reference face by width
    owner = wider > std::abs(leaning);
  }
  return owner != g.face.owner;
}

bool identify_box(const ModelView& m, const DataView& d, const ContactView& contact,
                  ContactGeometry& g) {
  const Geom box[2] = {load_geom(m, d, contact.geom.v[0]), load_geom(m, d, contact.geom.v[1])};
  if (box[1].type == geom::kMesh) return identify_convex(m, d, contact, g);
  if (box[1].type != geom::kBox) return false;

  // MuJoCo prefers faces of the first box where both serve
  double error[2];
  int axis[2] = {nearest_face(box[0], g.normal, error[0]),
                 nearest_face(box[1], g.normal, error[1])};
  int owner = error[1] < error[0] && error[0] > 1e-14 ? 1 : 0;
  if (error[owner] < kOn && identify_face(m, d, box, owner, axis[owner], g)) {
    if (error[1 - owner] < kParallel) add_twin(m, d, box, 1 - owner, axis[1 - owner], g);
    return true;
  }
  return identify_edges(box, g);
}

}  // namespace mujacobian
