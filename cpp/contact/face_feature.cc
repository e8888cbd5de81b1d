#include "contact/face_feature.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "contact/clipped_polygon.h"
#include "contact/kinematics.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

// Below this tilt MuJoCo takes a cylinder to stand flat.
constexpr double kFlat = kMinVal;

// A feature and the motions of its two geoms about the position of the contact.
template <class S>
struct FaceMotionT {
  const FaceFeatureT<S>& f;
  Vec3T<S> from;
  const MotionT<S>* motion;
  Vec3T<S> carried;  // velocity of the point if it is fixed to the other geom
  const MotionT<S>& owner() const { return motion[f.owner]; }
  const MotionT<S>& other() const { return motion[1 - f.owner]; }
  Vec3T<S> with_owner(Vec3T<S> p) const { return velocity(owner(), from, p); }
  Vec3T<S> with_other(Vec3T<S> p) const { return velocity(other(), from, p); }
};

// Velocity of the point p of a polygon that the sides of a face of geom `cutter` have clipped. It
// moves with the cutter, and relative to it by `relative_motion`. (CON-23)
template <class S>
Vec3T<S> clipped_velocity(const Vec3T<S> relative_motion[6], int cutter, Vec3T<S> p,
                          const FaceMotionT<S>& x) {
  const MotionT<S> apart = x.motion[1 - cutter] + -1.0 * x.motion[cutter];
  const S relative[6] = {apart.ang.x, apart.ang.y, apart.ang.z,
                         apart.lin.x, apart.lin.y, apart.lin.z};
  Vec3T<S> moved = velocity(x.motion[cutter], x.from, p);
  for (int k = 0; k < 6; k++) moved += relative[k] * relative_motion[k];
  return moved;
}

// Velocity of the owner's point whose projection is the foot.
template <class S>
Vec3T<S> above_velocity(const FootPointT<S>& foot, const FaceMotionT<S>& x) {
  Vec3T<S> above = x.with_owner(foot.above);
  const S slope = dot(foot.side, foot.along);
  if (value(slope) == 0) return above;
  return above + (dot(foot.side, x.with_other(foot.above) - above) / slope) * foot.along;
}

template <class S>
Vec3T<S> above_velocity(const ClippedFootT<S>& foot, const FaceMotionT<S>& x) {
  return clipped_velocity(foot.motion, 1 - x.f.owner, foot.above, x);
}

// Motion of the point that touches the face.
template <class S>
struct PointMotionT {
  Vec3T<S> velocity;
  S distance;  // change of its distance from the face
};

// The foot, on the other's face, of the owner's point. Its distance is measured from the plane
// through the owner's point, because faces of meshes are flat to 1e-7 only. (CON-13)
template <class Foot, class S>
PointMotionT<S> move_foot(const Foot& foot, const FaceMotionT<S>& x) {
  const Vec3T<S> above = above_velocity(foot, x), below = x.with_other(foot.above);
  const S height = dot(foot.base, foot.above - x.f.center);
  const Vec3T<S> moved =
      above - dot(foot.base, above - below) * foot.base - height * cross(x.other().ang, foot.base);
  return {moved, dot(x.f.outward, moved - above) +
                     dot(cross(x.owner().ang, x.f.outward), x.f.center - foot.above)};
}

// The functions below return the velocity of a point that slides.

// x = -S^2 n / |S n| in the frame of the ellipsoid
template <class S>
Vec3T<S> point_velocity(const EllipsoidPointT<S>& point, const FaceMotionT<S>& x) {
  const GeomT<S>& other = point.ellipsoid;
  Vec3T<S> turn = x.owner().ang - x.other().ang;
  Vec3T<S> n = transpose_mul(other.frame, x.f.outward);
  Vec3T<S> dn = transpose_mul(other.frame, cross(turn, x.f.outward));
  const double* s = other.size;
  Vec3T<S> sn = {s[0] * n.x, s[1] * n.y, s[2] * n.z}, sdn = {s[0] * dn.x, s[1] * dn.y, s[2] * dn.z};
  const S length = norm(sn);
  Vec3T<S> dx = (-1 / length) * (sdn - (dot(sn, sdn) / (length * length)) * sn);
  return x.carried + other.frame * Vec3T<S>{s[0] * dx.x, s[1] * dx.y, s[2] * dx.z};
}

// The direction e = -(n_x, n_y)/|.| turns about the axis of the cylinder.
template <class S>
Vec3T<S> point_velocity(const CylinderPointT<S>& point, const FaceMotionT<S>& x) {
  const GeomT<S>& other = point.cylinder;
  Vec3T<S> turn = x.owner().ang - x.other().ang;
  Vec3T<S> n = transpose_mul(other.frame, x.f.outward);
  Vec3T<S> dn = transpose_mul(other.frame, cross(turn, x.f.outward));
  const S flat = n.x * n.x + n.y * n.y;
  Vec3T<S> slide{0, 0, 0};
  // tie: rim of a cylinder
  if (!(value(flat) < kFlat * kFlat)) {
    const S rate = (n.x * dn.y - n.y * dn.x) / flat;
    slide = rate * cross(other.axis(), x.f.center - other.position);
  }
  return x.carried + slide;
}

// The point slides along the edge so that it stays in the plane of the side. (CON-10)
template <class S>
Vec3T<S> point_velocity(const EdgeCrossingT<S>& edge, const FaceMotionT<S>& x) {
  const S gap = dot(edge.side, x.with_owner(x.f.center) - x.carried);
  return x.carried + (gap / dot(edge.side, edge.along)) * edge.along;
}

// The point stays over the corner and in the other's face.                                (CON-11)
template <class S>
Vec3T<S> point_velocity(const CornerPointT<S>& at, const FaceMotionT<S>& x) {
  const Vec3T<S> outward = x.f.outward;
  const S height = dot(x.f.center - at.corner, outward);
  Vec3T<S> base = x.with_owner(at.corner) + height * cross(x.owner().ang, outward);
  return base + (dot(at.face, x.carried - base) / dot(at.face, outward)) * outward;
}

template <class S>
Vec3T<S> point_velocity(const ClippedPointT<S>& point, const FaceMotionT<S>& x) {
  return clipped_velocity(point.motion, x.f.owner, x.f.center, x);
}

template <class S>
Vec3T<S> point_velocity(const SegmentPointT<S>& point, const FaceMotionT<S>& x) {
  return segment_velocity(point, x.from, x.motion);
}

// The functions below set the velocity of the point and the change of its distance from the face.
// On entry the velocity is that of a point that is fixed to the other geom.

template <class Slide, class S>
void move_point(const Slide& slide, const FaceMotionT<S>& x, Vec3T<S>& moved, S& distance) {
  if constexpr (!std::is_same_v<Slide, FixedPoint>) moved = point_velocity(slide, x);
  distance = dot(x.f.outward, moved - x.with_owner(x.f.center));
}

template <class S>
void move_point(const FootPointT<S>& foot, const FaceMotionT<S>& x, Vec3T<S>& moved, S& distance) {
  const PointMotionT<S> p = move_foot(foot, x);
  moved = p.velocity, distance = p.distance;
}

template <class S>
void move_point(const ClippedFootT<S>& foot, const FaceMotionT<S>& x, Vec3T<S>& moved,
                S& distance) {
  const PointMotionT<S> p = move_foot(foot, x);
  moved = p.velocity, distance = p.distance;
}

template <class S>
PointMotionT<S> move_point(const FaceMotionT<S>& x) {
  PointMotionT<S> point{x.carried, 0};
  auto move = [&](const auto& slide) { move_point(slide, x, point.velocity, point.distance); };
  std::visit(move, x.f.slide);
  return point;
}

// The points as constants of type S.
template <class S>
FixedPoint constant(const FixedPoint&) {
  return {};
}
template <class S>
EllipsoidPointT<S> constant(const EllipsoidPoint& p) {
  return {constant<S>(p.ellipsoid)};
}
template <class S>
CylinderPointT<S> constant(const CylinderPoint& p) {
  return {constant<S>(p.cylinder)};
}
template <class S>
EdgeCrossingT<S> constant(const EdgeCrossing& p) {
  return {p.along, p.side};
}
template <class S>
CornerPointT<S> constant(const CornerPoint& p) {
  return {p.corner, p.face};
}
template <class S>
FootPointT<S> constant(const FootPoint& p) {
  return {p.above, p.base, p.along, p.side};
}
template <class S>
ClippedPointT<S> constant(const ClippedPoint& p) {
  ClippedPointT<S> result{.face = {p.face[0], p.face[1]}};
  std::copy(p.motion, p.motion + 6, result.motion);
  return result;
}
template <class S>
ClippedFootT<S> constant(const ClippedFoot& p) {
  ClippedFootT<S> result{.above = p.above, .base = p.base, .face = {p.face[0], p.face[1]}};
  std::copy(p.motion, p.motion + 6, result.motion);
  return result;
}
// The functions below return the point with its vectors after infinitesimal motions. `at` is the
// contact.

template <class S>
FixedPoint move_slide(const FixedPoint&, const FaceMotionT<S>&, const ContactPoint&,
                      const ContactSource&) {
  return {};
}

template <class S>
EllipsoidPointT<S> move_slide(const EllipsoidPoint& point, const FaceMotionT<S>& x,
                              const ContactPoint&, const ContactSource&) {
  return {moved(point.ellipsoid, x.from, x.other())};
}

template <class S>
CylinderPointT<S> move_slide(const CylinderPoint& point, const FaceMotionT<S>& x,
                             const ContactPoint&, const ContactSource&) {
  return {moved(point.cylinder, x.from, x.other())};
}

template <class S>
EdgeCrossingT<S> move_slide(const EdgeCrossing& edge, const FaceMotionT<S>& x, const ContactPoint&,
                            const ContactSource&) {
  return {turned(x.other(), edge.along), turned(x.owner(), edge.side)};
}

template <class S>
CornerPointT<S> move_slide(const CornerPoint& at, const FaceMotionT<S>& x, const ContactPoint&,
                           const ContactSource&) {
  return {moved_point(x.owner(), x.from, at.corner), turned(x.other(), at.face)};
}

template <class S>
FootPointT<S> move_slide(const FootPoint& foot, const FaceMotionT<S>& x, const ContactPoint&,
                         const ContactSource&) {
  return {foot.above + above_velocity(constant<S>(foot), x), turned(x.other(), foot.base),
          turned(x.owner(), foot.along), turned(x.other(), foot.side)};
}

// Position of the contact after the motions.
template <class S>
Vec3T<S> moved_position(const FaceMotionT<S>& x, const ContactPoint& at) {
  return at.position + vary(x.f, constant<S>(at), x.motion).position;
}

template <class S>
ClippedPointT<S> move_slide(const ClippedPoint& point, const FaceMotionT<S>& x,
                            const ContactPoint& at, const ContactSource& source) {
  ClippedPointT<S> result = constant<S>(point);
  const Vec3 vertex{value(x.f.center.x), value(x.f.center.y), value(x.f.center.z)};
  move_clipped(source, x.f.owner, point.face, vertex, at.position, x.motion, moved_position(x, at),
               result.motion);
  return result;
}

template <class S>
ClippedFootT<S> move_slide(const ClippedFoot& foot, const FaceMotionT<S>& x, const ContactPoint& at,
                           const ContactSource& source) {
  ClippedFootT<S> result = constant<S>(foot);
  result.above += above_velocity(constant<S>(foot), x);
  result.base = turned(x.other(), foot.base);
  move_clipped(source, 1 - x.f.owner, foot.face, foot.above, at.position, x.motion,
               moved_position(x, at), result.motion);
  return result;
}

template <class S>
SegmentPointT<S> move_slide(const SegmentPoint& point, const FaceMotionT<S>& x,
                            const ContactPoint& at, const ContactSource& source) {
  return moved(point, at.position, x.motion, source);
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

template <class S>
FaceFeatureT<S> constant(const FaceFeature& f) {
  // an empty variant that is filled later would be cleared, which takes longer than the rest
  auto constant_slide = [](const auto& slide) -> FaceSlideT<S> { return constant<S>(slide); };
  return {.owner = f.owner,
          .outward = f.outward,
          .center = f.center,
          .radius = f.radius,
          .distance = f.distance,
          .slide = std::visit(constant_slide, f.slide),
          .shift = f.shift,
          .shift_with_other = f.shift_with_other};
}

ContactPoint rederive(const FaceFeature& f, Vec3) {
  Vec3 normal = f.owner == 0 ? f.shift : -f.shift;
  return {f.distance, f.center - (f.radius + f.distance / 2) * f.shift, normal};
}

double slack(const FaceFeature&, Vec3) { return 0; }

double agreement(const FaceFeature&, double) { return kAgreement; }

template <class S>
ContactPointT<S> vary(const FaceFeatureT<S>& f, const ContactPointT<S>& at,
                      const MotionT<S> motion[2]) {
  const Vec3T<S> carried = velocity(motion[1 - f.owner], at.position, f.center);
  const FaceMotionT<S> x{f, at.position, motion, carried};
  const PointMotionT<S> point = move_point(x);
  const Vec3T<S> turned = cross(f.shift_with_other ? x.other().ang : x.owner().ang, f.shift);
  ContactPointT<S> v;
  v.distance = point.distance;
  v.position = point.velocity - (f.radius + at.distance / 2) * turned - (v.distance / 2) * f.shift;
  v.normal = f.owner == 0 ? turned : -turned;
  return v;
}

template <class S>
FaceFeatureT<S> moved(const FaceFeature& f, const ContactPoint& at, const MotionT<S> motion[2],
                      const ContactSource& source) {
  const FaceFeatureT<S> still = constant<S>(f);
  const Vec3T<S> from = at.position;
  const FaceMotionT<S> x{still, from, motion, velocity(motion[1 - f.owner], from, still.center)};
  const PointMotionT<S> point = move_point(x);
  FaceFeatureT<S> result{.owner = f.owner,
                         .outward = turned(x.owner(), f.outward),
                         .center = still.center + point.velocity,
                         .radius = f.radius,
                         .distance = still.distance + point.distance,
                         .shift = turned(f.shift_with_other ? x.other() : x.owner(), f.shift),
                         .shift_with_other = f.shift_with_other};
  std::visit([&](const auto& slide) { result.slide = move_slide(slide, x, at, source); }, f.slide);
  return result;
}

template FaceFeatureT<Packet> constant(const FaceFeature&);
template ContactPoint vary(const FaceFeature&, const ContactPoint&, const Motion[2]);
template ContactPointT<Packet> vary(const FaceFeatureT<Packet>&, const ContactPointT<Packet>&,
                                    const MotionT<Packet>[2]);
template ContactPointT<ContactDual> vary(const FaceFeatureT<ContactDual>&,
                                         const ContactPointT<ContactDual>&,
                                         const MotionT<ContactDual>[2]);
template FaceFeatureT<ContactDual> moved(const FaceFeature&, const ContactPoint&,
                                         const MotionT<ContactDual>[2], const ContactSource&);

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
