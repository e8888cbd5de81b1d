#include "contact/face_feature.h"

#include <cmath>
#include <type_traits>

#include "contact/kinematics.h"

namespace mujacobian {
namespace {

// Below this tilt MuJoCo takes a cylinder to stand flat (mjMINVAL).
constexpr double kFlat = 1e-15;

// A feature and the motions of its two geoms about the position of the contact.
struct FaceMotion {
  const FaceFeature& f;
  Vec3 from;
  const Motion* motion;
  Vec3 carried;  // velocity of the point if it is fixed to the other geom
  const Motion& owner() const { return motion[f.owner]; }
  const Motion& other() const { return motion[1 - f.owner]; }
  Vec3 with_owner(Vec3 p) const { return velocity(owner(), from, p); }
  Vec3 with_other(Vec3 p) const { return velocity(other(), from, p); }
};

// Velocity of the point p of a polygon that the sides of a face of geom `cutter` have clipped. It
// moves with the cutter, and relative to it by `relative_motion`. (CON-23)
Vec3 clipped_velocity(const Vec3 relative_motion[6], int cutter, Vec3 p, FaceMotion x) {
  double relative[6];
  store_motion(relative, x.motion[1 - cutter] + -1.0 * x.motion[cutter]);
  Vec3 moved = velocity(x.motion[cutter], x.from, p);
  for (int k = 0; k < 6; k++) moved += relative[k] * relative_motion[k];
  return moved;
}

// Velocity of the owner's point whose projection is the foot.
Vec3 above_velocity(const FootPoint& foot, FaceMotion x) {
  Vec3 above = x.with_owner(foot.above);
  double slope = dot(foot.side, foot.along);
  if (slope == 0) return above;
  return above + (dot(foot.side, x.with_other(foot.above) - above) / slope) * foot.along;
}

Vec3 above_velocity(const ClippedFoot& foot, FaceMotion x) {
  return clipped_velocity(foot.motion, 1 - x.f.owner, foot.above, x);
}

// Motion of the point that touches the face.
struct PointMotion {
  Vec3 velocity;
  double distance;  // change of its distance from the face
};

// The foot, on the other's face, of the owner's point. Its distance is measured from the plane
// through the owner's point, because faces of meshes are flat to 1e-7 only. (CON-13)
template <class Foot>
PointMotion move_foot(const Foot& foot, FaceMotion x) {
  const Vec3 above = above_velocity(foot, x), below = x.with_other(foot.above);
  const double height = dot(foot.base, foot.above - x.f.center);
  const Vec3 moved =
      above - dot(foot.base, above - below) * foot.base - height * cross(x.other().ang, foot.base);
  return {moved, dot(x.f.outward, moved - above) +
                     dot(cross(x.owner().ang, x.f.outward), x.f.center - foot.above)};
}

// The functions below return the velocity of a point that slides.

// x = -S^2 n / |S n| in the frame of the ellipsoid
Vec3 point_velocity(const EllipsoidPoint& point, FaceMotion x) {
  const Geom& other = point.ellipsoid;
  Vec3 turn = x.owner().ang - x.other().ang;
  Vec3 n = transpose_mul(other.frame, x.f.outward);
  Vec3 dn = transpose_mul(other.frame, cross(turn, x.f.outward));
  const double* s = other.size;
  Vec3 sn = {s[0] * n.x, s[1] * n.y, s[2] * n.z}, sdn = {s[0] * dn.x, s[1] * dn.y, s[2] * dn.z};
  double length = norm(sn);
  Vec3 dx = (-1 / length) * (sdn - (dot(sn, sdn) / (length * length)) * sn);
  return x.carried + other.frame * Vec3{s[0] * dx.x, s[1] * dx.y, s[2] * dx.z};
}

// The direction e = -(n_x, n_y)/|.| turns about the axis of the cylinder.
Vec3 point_velocity(const CylinderPoint& point, FaceMotion x) {
  const Geom& other = point.cylinder;
  Vec3 turn = x.owner().ang - x.other().ang;
  Vec3 n = transpose_mul(other.frame, x.f.outward);
  Vec3 dn = transpose_mul(other.frame, cross(turn, x.f.outward));
  double flat = n.x * n.x + n.y * n.y;
  Vec3 slide{0, 0, 0};
  // tie: rim of a cylinder
  if (!(flat < kFlat * kFlat)) {
    double rate = (n.x * dn.y - n.y * dn.x) / flat;
    slide = rate * cross(other.axis(), x.f.center - other.position);
  }
  return x.carried + slide;
}

// The point slides along the edge so that it stays in the plane of the side. (CON-10)
Vec3 point_velocity(const EdgeCrossing& edge, FaceMotion x) {
  double gap = dot(edge.side, x.with_owner(x.f.center) - x.carried);
  return x.carried + (gap / dot(edge.side, edge.along)) * edge.along;
}

// The point stays over the corner and in the other's face.                                (CON-11)
Vec3 point_velocity(const CornerPoint& at, FaceMotion x) {
  const Vec3 outward = x.f.outward;
  double height = dot(x.f.center - at.corner, outward);
  Vec3 base = x.with_owner(at.corner) + height * cross(x.owner().ang, outward);
  return base + (dot(at.face, x.carried - base) / dot(at.face, outward)) * outward;
}

Vec3 point_velocity(const ClippedPoint& point, FaceMotion x) {
  return clipped_velocity(point.motion, x.f.owner, x.f.center, x);
}

Vec3 point_velocity(const SegmentPoint& point, FaceMotion x) {
  return segment_velocity(point, x.from, x.motion);
}

// The functions below set the velocity of the point and the change of its distance from the face.
// On entry the velocity is that of a point that is fixed to the other geom.

template <class Slide>
void move_point(const Slide& slide, FaceMotion x, Vec3& moved, double& distance) {
  if constexpr (!std::is_same_v<Slide, FixedPoint>) moved = point_velocity(slide, x);
  distance = dot(x.f.outward, moved - x.with_owner(x.f.center));
}

void move_point(const FootPoint& foot, FaceMotion x, Vec3& moved, double& distance) {
  const PointMotion p = move_foot(foot, x);
  moved = p.velocity, distance = p.distance;
}

void move_point(const ClippedFoot& foot, FaceMotion x, Vec3& moved, double& distance) {
  const PointMotion p = move_foot(foot, x);
  moved = p.velocity, distance = p.distance;
}

// Names of the points.
std::string point_name(const FixedPoint&, double radius) {
  return radius > 0 ? "sphere" : "vertex";
}
std::string point_name(const EllipsoidPoint&, double) { return "ellipsoid"; }
std::string point_name(const CylinderPoint&, double) { return "cylinder"; }
std::string point_name(const EdgeCrossing&, double) { return "edge cut by side"; }
std::string point_name(const CornerPoint&, double) { return "corner"; }
std::string point_name(const FootPoint& foot, double) {
  return dot(foot.along, foot.along) > 0 ? "projected edge cut by side" : "projected vertex";
}
std::string point_name(const ClippedPoint&, double) { return "clipped polygon"; }
std::string point_name(const ClippedFoot&, double) { return "projected clipped polygon"; }
std::string point_name(const SegmentPoint& point, double) { return rule_name(point); }

}  // namespace

FaceFeature sphere_over_face(int owner, Vec3 outward, Vec3 on_face, Vec3 center, double radius,
                             double flatness, double found) {
  double distance = dot(outward, center - on_face) - radius;
  if (std::abs(distance - found) < flatness) distance = found;
  return {
      .owner = owner, .outward = outward, .center = center, .radius = radius, .distance = distance};
}

ContactPoint rederive(const FaceFeature& f, Vec3) {
  Vec3 normal = f.owner == 0 ? f.shift : -f.shift;
  return {f.distance, f.center - (f.radius + f.distance / 2) * f.shift, normal};
}

double slack(const FaceFeature&, Vec3) { return 0; }

double agreement(const FaceFeature&, double) { return kAgreement; }

ContactPoint vary(const FaceFeature& f, const ContactPoint& at, const Motion motion[2]) {
  const Vec3 carried = velocity(motion[1 - f.owner], at.position, f.center);
  const FaceMotion x{f, at.position, motion, carried};
  PointMotion point{carried, 0};
  auto move = [&](const auto& slide) { move_point(slide, x, point.velocity, point.distance); };
  std::visit(move, f.slide);
  const Vec3 turned = cross(f.shift_with_other ? x.other().ang : x.owner().ang, f.shift);
  ContactPoint v;
  v.distance = point.distance;
  v.position = point.velocity - (f.radius + at.distance / 2) * turned - (v.distance / 2) * f.shift;
  v.normal = f.owner == 0 ? turned : -turned;
  return v;
}

Growth grow(const FaceFeature& f, const Geom& geom, int side, int component) {
  if (!std::holds_alternative<FixedPoint>(f.slide) &&
      !std::holds_alternative<CylinderPoint>(f.slide)) {
    return {};
  }
  if (f.owner != side) {
    return {Growth::kShift, surface_growth(geom, geom.to_local(f.center), component)};
  }
  return {Growth::kShift, face_growth(geom, transpose_mul(geom.frame, f.outward), component)};
}

std::string describe(const FaceFeature& f) {
  auto name_point = [&](const auto& s) { return point_name(s, f.radius); };
  std::string name = std::visit(name_point, f.slide) + " on face";
  const auto* segment = std::get_if<SegmentPoint>(&f.slide);
  if (segment && segment->radius > 0) {
    name += std::string(", direction: ") + direction_name(*segment);
  }
  return name;
}

}  // namespace mujacobian
