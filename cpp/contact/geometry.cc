#include "contact/geometry.h"

#include <cmath>
#include <limits>
#include <string>

#include "contact/polytope.h"
#include "contact/simplex.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// How well the features must reproduce MuJoCo's contact.
constexpr double kAgreement = 1e-9;

// Below this tilt MuJoCo takes a cylinder to stand flat (mjMINVAL), and its frame to be undefined.
constexpr double kFlat = 1e-15, kUpright = 1e-12;

Vec3 across(Vec3 v, Vec3 n) { return v - dot(v, n) * n; }

Vec3 velocity(const Motion& motion, Vec3 from, Vec3 p) { return at_point(motion, p - from); }

Rederived rederive(const ContactGeometry& g) {
  if (g.kind == ContactGeometry::kFace) {
    const FaceContact& f = g.face;
    Vec3 normal = f.owner == 0 ? f.shift : -f.shift;
    return {f.center - (f.radius + f.distance / 2) * f.shift, normal, f.distance};
  }
  if (g.kind == ContactGeometry::kSupports) {
    const SupportSide* side = g.supports.side;
    double distance =
        dot(g.normal, side[1].point - side[0].point) - side[0].radius - side[1].radius;
    return {side[0].point + (side[0].radius + distance / 2) * g.normal, g.normal, distance};
  }
  if (g.kind == ContactGeometry::kSimplex) return rederive(g.simplex, g.normal);
  if (g.kind == ContactGeometry::kEdges) {
    const EdgeContact& e = g.edges;
    Vec3 normal = cross(e.axis[0], e.axis[1]);
    normal = (e.sign / norm(normal)) * normal;
    return {0.5 * (e.point[0] + e.point[1]), normal, dot(normal, e.point[1] - e.point[0])};
  }
  const CenterContact& c = g.centers;
  Vec3 span = c.center[1] - c.center[0];
  double length = norm(span);
  Vec3 normal = (1 / length) * span;
  double distance = length - c.radius[0] - c.radius[1];
  return {c.center[0] + (c.radius[0] + distance / 2) * normal, normal, distance};
}

// How far sliding centers are from being nearest to one another.
double slack(const CenterContact& c) {
  Vec3 span = c.center[1] - c.center[0];
  double sum = 0;
  for (int s = 0; s < 2; s++) {
    if (c.slide[s] == CenterContact::kLine) sum += std::abs(dot(c.axis[s], span));
  }
  return sum;
}

// How far supporting points are from lying on a common normal.
double slack(const SupportContact& c, Vec3 normal) {
  return norm(across(c.side[1].point - c.side[0].point, normal));
}

// The first tangent is directed by a hint: the axis of a capsule on a plane, else the world's y
// axis, or z where the normal is close to y.
Vec3 frame_hint(const ContactGeometry& g, const Geom& owner) {
  if (g.hint_owner >= 0) return owner.axis();
  // tie: hint of a frame
  if (g.normal.y < 0.5 && g.normal.y > -0.5) return {0, 1, 0};
  return {0, 0, 1};
}

// Motion of a point along its geom that follows the direction of the face, when the face's owner
// turns by `turn` relative to the geom
Vec3 slide_velocity(const FaceContact& f, Vec3 turn) {
  const Geom& other = f.other;
  Vec3 n = transpose_mul(other.frame, f.outward);
  Vec3 dn = transpose_mul(other.frame, cross(turn, f.outward));
  if (f.slide == FaceContact::kEllipsoid) {
    // x = -S^2 n / |S n|                                                                (CON-7)
    const double* s = other.size;
    Vec3 sn = {s[0] * n.x, s[1] * n.y, s[2] * n.z}, sdn = {s[0] * dn.x, s[1] * dn.y, s[2] * dn.z};
    double length = norm(sn);
    Vec3 x = (-1 / length) * (sdn - (dot(sn, sdn) / (length * length)) * sn);
    return other.frame * Vec3{s[0] * x.x, s[1] * x.y, s[2] * x.z};
  }
  // the direction e = -(n_x, n_y)/|.| turns about the cylinder's axis                     (CON-8)
  double flat = n.x * n.x + n.y * n.y;
  // tie: rim of a cylinder
  if (flat < kFlat * kFlat) return {0, 0, 0};
  double rate = (n.x * dn.y - n.y * dn.x) / flat;
  return rate * cross(other.axis(), f.center - other.position);
}

// Motion of a point p of a polygon that sides of a face of geom `cutter` have clipped.    (CON-23)
Vec3 clipped_velocity(const ContactGeometry& g, int cutter, Vec3 p, const Motion motion[2]) {
  double relative[6];
  store_motion(relative, motion[1 - cutter] + -1.0 * motion[cutter]);
  Vec3 moved = velocity(motion[cutter], g.position, p);
  for (int k = 0; k < 6; k++) moved += relative[k] * g.clipped[k];
  return moved;
}

// Motion of the owner's point above a foot: a vertex, or where its edge crosses a side of the
// other's face
Vec3 above_velocity(const ContactGeometry& g, const Motion motion[2]) {
  const FaceContact& f = g.face;
  if (f.slide == FaceContact::kClippedFoot)
    return clipped_velocity(g, 1 - f.owner, f.above, motion);
  const Motion &owner = motion[f.owner], &other = motion[1 - f.owner];
  const Vec3 from = g.position;
  Vec3 above = velocity(owner, from, f.above);
  double slope = dot(f.side, f.along);
  if (slope == 0) return above;
  return above + (dot(f.side, velocity(other, from, f.above) - above) / slope) * f.along;
}

// Motion of the point that touches the face
Vec3 center_velocity(const ContactGeometry& g, const Motion motion[2]) {
  const FaceContact& f = g.face;
  const Motion &owner = motion[f.owner], &other = motion[1 - f.owner];
  Vec3 from = g.position;
  Vec3 carried = velocity(other, from, f.center);
  switch (f.slide) {
    case FaceContact::kFixed:
      return carried;
    case FaceContact::kEllipsoid:
    case FaceContact::kCylinder:
      return carried + slide_velocity(f, owner.ang - other.ang);
    case FaceContact::kEdge: {
      // along the edge, so that it stays in the side plane                               (CON-10)
      double gap = dot(f.side, velocity(owner, from, f.center) - carried);
      return carried + (gap / dot(f.side, f.along)) * f.along;
    }
    case FaceContact::kCorner: {
      // over the corner at height s, so that it stays in the other's face                (CON-11)
      double height = dot(f.center - f.corner, f.outward);
      Vec3 base = velocity(owner, from, f.corner) + height * cross(owner.ang, f.outward);
      return base + (dot(f.side, carried - base) / dot(f.side, f.outward)) * f.outward;
    }
    case FaceContact::kFoot:
    case FaceContact::kClippedFoot: {
      // the foot, on the other's face, of the owner's point                              (CON-13)
      Vec3 above = above_velocity(g, motion), below = velocity(other, from, f.above);
      double height = dot(f.base, f.above - f.center);
      return above - dot(f.base, above - below) * f.base - height * cross(other.ang, f.base);
    }
    case FaceContact::kClipped:
      return clipped_velocity(g, f.owner, f.center, motion);
    case FaceContact::kSegment:
      return segment_velocity(g.segment, from, motion);
  }
  return carried;
}

ContactVariation vary_face(const ContactGeometry& g, const Motion motion[2]) {
  const FaceContact& f = g.face;
  const Motion &owner = motion[f.owner], &other = motion[1 - f.owner];
  Vec3 center = center_velocity(g, motion);
  Vec3 turned = cross(f.shift_with_other ? other.ang : owner.ang, f.shift);
  ContactVariation v;
  v.distance = dot(f.outward, center - velocity(owner, g.position, f.center));
  if (f.slide == FaceContact::kFoot || f.slide == FaceContact::kClippedFoot) {
    // measured from the plane through the point itself: faces of meshes are flat to 1e-7 only
    Vec3 above = above_velocity(g, motion);
    v.distance =
        dot(f.outward, center - above) + dot(cross(owner.ang, f.outward), f.center - f.above);
  }
  v.position = center - (f.radius + g.distance / 2) * turned - (v.distance / 2) * f.shift;
  v.turn = f.owner == 0 ? turned : -turned;  // of the normal, completed by the caller
  return v;
}

ContactVariation vary_spheres(const ContactGeometry& g, const Motion motion[2]) {
  const CenterContact& c = g.centers;
  Vec3 n = g.between(), moved[2];
  if (c.slide[0] == CenterContact::kSegment) {
    moved[0] = segment_velocity(g.segment, g.position, motion);
  }
  vary_centers(c, g.position, motion, moved);
  double length = norm(c.center[1] - c.center[0]);
  Vec3 u = moved[1] - moved[0];
  ContactVariation v;
  v.distance = dot(n, u);
  v.turn = (1 / length) * across(u, n);  // of the normal, completed by the caller
  v.position = moved[0] + (c.radius[0] + g.distance / 2) * v.turn + (v.distance / 2) * n;
  return v;
}

// Crossing edges: the normal turns with both, the witness points slide along them.
ContactVariation vary_edges(const ContactGeometry& g, const Motion motion[2]) {
  const EdgeContact& e = g.edges;
  CenterContact lines{};
  for (int s = 0; s < 2; s++) {
    lines.center[s] = e.point[s];
    lines.axis[s] = e.axis[s];
    lines.slide[s] = CenterContact::kLine;
  }
  Vec3 moved[2];
  vary_centers(lines, g.position, motion, moved);
  Vec3 product = cross(e.axis[0], e.axis[1]);
  Vec3 change = cross(cross(motion[0].ang, e.axis[0]), e.axis[1]) +
                cross(e.axis[0], cross(motion[1].ang, e.axis[1]));
  ContactVariation v;
  v.distance = dot(g.between(), moved[1] - moved[0]);
  v.position = 0.5 * (moved[0] + moved[1]);
  v.turn = (e.sign / norm(product)) * across(change, g.normal);  // completed by the caller
  return v;
}

double support_distance(const SupportContact& c, Vec3 n) {
  return dot(n, c.side[1].point - c.side[0].point) - c.side[0].radius - c.side[1].radius;
}

SupportChange vary_supports(const SupportContact& c, Vec3 n, Vec3 from, const Motion motion[2]) {
  Vec3 moved[2], turn[2];
  for (int s = 0; s < 2; s++) {
    moved[s] = velocity(motion[s], from, c.side[s].point);
    turn[s] = motion[s].ang;
  }
  return support_change(c, n, support_distance(c, n), moved, turn, {0, 0, 0});
}

ContactVariation vary_supports(const ContactGeometry& g, const Motion motion[2]) {
  Vec3 n = g.between();
  SupportChange c = vary_supports(g.supports, n, g.position, motion);
  ContactVariation v;
  v.distance = c.distance;
  v.turn = c.normal;  // completed by the caller
  v.position =
      c.point[0] + (g.supports.side[0].radius + g.distance / 2) * c.normal + (c.distance / 2) * n;
  return v;
}

}  // namespace

void vary_centers(const CenterContact& c, Vec3 from, const Motion motion[2], Vec3 moved[2]) {
  Vec3 span = c.center[1] - c.center[0];
  for (int s = 0; s < 2; s++) {
    if (c.slide[s] != CenterContact::kSegment) moved[s] = velocity(motion[s], from, c.center[s]);
  }

  if (c.slide[0] == CenterContact::kLine && c.slide[1] == CenterContact::kLine) {
    // a_s . span = 0 for both, with moved_s += a_s t_s                                  (CON-4)
    Vec3 u = moved[1] - moved[0];
    double b = dot(c.axis[0], c.axis[1]);
    double r0 = dot(cross(motion[0].ang, c.axis[0]), span) + dot(c.axis[0], u);
    double r1 = dot(cross(motion[1].ang, c.axis[1]), span) + dot(c.axis[1], u);
    double det = 1 - b * b;
    moved[0] += ((r0 - b * r1) / det) * c.axis[0];
    moved[1] += ((b * r0 - r1) / det) * c.axis[1];
    return;
  }
  for (int s = 0; s < 2; s++) {
    if (c.slide[s] == CenterContact::kFixed || c.slide[s] == CenterContact::kSegment) continue;
    // direction in which the center slides, and the condition that the other's nearest point obeys
    Vec3 other = moved[1 - s], to_other = c.center[1 - s] - c.center[s];
    Vec3 a = c.axis[s];
    if (c.slide[s] == CenterContact::kLine) {
      // a . (other - center) = 0                                                        (CON-3)
      double t = dot(a, other - moved[s]) + dot(cross(motion[s].ang, a), to_other);
      moved[s] += t * a;
    } else {
      // on the circle, the tangent t = a x e is perpendicular to other - middle          (CON-5)
      Vec3 arm = c.center[s] - c.middle[s];
      double radius = norm(arm);
      Vec3 t = cross(a, (1 / radius) * arm);
      Vec3 middle = velocity(motion[s], from, c.middle[s]);
      Vec3 reach = c.center[1 - s] - c.middle[s];
      double lateral = dot(t, other - middle) + dot(cross(motion[s].ang, t), reach);
      double planar = dot((1 / radius) * arm, reach);
      moved[s] += (radius * lateral / planar) * t;
    }
  }
}

namespace {

// Change of the vector from a segment to the line of its surface
Vec3 off_velocity(const SegmentPoint& p, Vec3 from, const Motion motion[2], const Vec3 nearest[2]) {
  Vec3 a = p.axis, da = cross(motion[0].ang, a);
  Vec3 n = p.direction, dn = cross(motion[1].ang, n);
  if (p.look == SegmentPoint::kNearest) {
    Vec3 span = p.nearest.center[1] - p.nearest.center[0];
    dn = (1 / dot(span, n)) * across(nearest[1] - nearest[0], n);
  } else if (p.look == SegmentPoint::kRim) {
    dn = vary_supports(p.rim, n, from, motion).normal;
  }
  Vec3 off = across(n, a), change = dn - (dot(dn, a) + dot(n, da)) * a - dot(n, a) * da;
  if (p.unit) {
    double length = norm(off);
    change = (1 / length) * across(change, (1 / length) * off);
  }
  return p.radius * change;
}

}  // namespace

Vec3 segment_velocity(const SegmentPoint& p, Vec3 from, const Motion both[2]) {
  const Motion motion[2] = {both[p.owner], both[1 - p.owner]};
  Vec3 nearest[2], a = p.axis;
  if (p.nearest_start || p.to_end || p.look == SegmentPoint::kNearest) {
    vary_centers(p.nearest, from, motion, nearest);
  }
  Vec3 start = p.nearest_start ? nearest[0] : velocity(motion[0], from, p.start);
  Vec3 moved = start + dot(p.point - p.start, a) * cross(motion[0].ang, a);
  if (p.radius > 0) {
    Vec3 off = across(p.direction, a);
    off = (p.unit ? p.radius / norm(off) : p.radius) * off;
    moved = velocity(motion[0], from, p.point - off) + off_velocity(p, from, motion, nearest);
  }
  if (p.rule == SegmentPoint::kStart) return moved;
  // how far the point must go, as the other geom sees it                                 (CON-15)
  auto seen = [&](Vec3 v, Vec3 at) { return dot(p.side, v - velocity(motion[1], from, at)); };
  double advance = -seen(moved, p.point);
  if (p.rule == SegmentPoint::kStep) advance += seen(start, p.start);
  if (p.to_end) advance -= seen(nearest[1], p.nearest.center[1]);
  return moved + (p.share * advance / dot(p.side, a)) * a;
}

// The collider stops within a tolerance of the distance; the normal is off by the square root.
double normal_error(const ModelView& m) {
  return 1e-7 + std::sqrt(std::fmax(0, m.opt.ccd_tolerance));
}

Geom load_geom(const ModelView& m, const DataView& d, int id) {
  return {m.geom_type[id], load3(d.geom_xpos + 3 * id), load9(d.geom_xmat + 9 * id),
          m.geom_size + 3 * id};
}

namespace {

bool is_curved(int type) { return type == geom::kEllipsoid || type == geom::kCylinder; }

// The pair goes through the convex collider: height fields, curved geoms, except planes and spheres
// on cylinders, and meshes, except on planes.
bool uses_collider(const ModelView& m, const ContactView& contact) {
  int first = m.geom_type[contact.geom.v[0]], second = m.geom_type[contact.geom.v[1]];
  if (first == geom::kPlane || (first == geom::kSphere && second == geom::kCylinder)) return false;
  return first == geom::kHField || is_curved(first) || is_curved(second) || second == geom::kMesh;
}

// The center of a sphere or the segment of a capsule is in a mesh. There the collider sees the
// surface of the round geom, and comes as close to it as to that of other curved geoms.
bool is_deep(const ModelView& m, const ContactView& contact) {
  const int first = contact.geom.v[0], type = m.geom_type[first];
  if (type != geom::kSphere && type != geom::kCapsule) return false;
  return m.geom_type[contact.geom.v[1]] == geom::kMesh && contact.dist < -m.geom_size[3 * first];
}

bool has_mesh(const ModelView& m, const ContactView& contact) {
  return m.geom_type[contact.geom.v[0]] == geom::kMesh ||
         m.geom_type[contact.geom.v[1]] == geom::kMesh;
}

bool identify_pair(const ModelView& m, const DataView& d, const ContactView& contact,
                   ContactGeometry& g) {
  int first = m.geom_type[contact.geom.v[0]], second = m.geom_type[contact.geom.v[1]];
  if (first == geom::kPlane) return identify_plane(m, d, contact, g);
  if (first == geom::kHField) return identify_height_field(m, d, contact, g);
  if (uses_collider(m, contact) && (is_curved(first) || is_curved(second))) {
    return identify_curved(m, d, contact, g);
  }
  switch (first) {
    case geom::kSphere:
      return identify_sphere(m, d, contact, g);
    case geom::kCapsule:
      return identify_capsule(m, d, contact, g);
    case geom::kBox:
      return identify_box(m, d, contact, g);
    case geom::kMesh:
      return second == geom::kMesh && identify_convex(m, d, contact, g);
    default:
      return false;
  }
}

bool identify_surfaces(const ModelView& m, const DataView& d, const ContactView& contact,
                       ContactGeometry& g) {
  return identify_optimum(m, d, contact, g, nullptr);
}

ContactGeometry load_contact(const ContactView& contact, const ContactGeometry* before) {
  ContactGeometry g;
  g.position = load3(contact.pos.v);
  g.normal = load3(contact.frame.v);
  g.tangent[0] = load3(contact.frame.v + 3);
  g.tangent[1] = load3(contact.frame.v + 6);
  g.distance = contact.dist;
  g.flipped = false;
  g.hint_owner = -1;
  g.has_twin = false;
  g.first = nullptr;
  g.region = std::numeric_limits<double>::infinity();
  for (int s = 0; s < 2; s++) {
    g.geom[s] = contact.geom.v[s];
    g.walked[s] = before && before->geom[s] == g.geom[s] ? before->walked[s] : Polytope::kAnywhere;
  }
  return g;
}

double agreement(const ModelView& m, const ContactGeometry& g) {
  if (g.kind == ContactGeometry::kSupports) return curved_agreement(m);
  return g.kind == ContactGeometry::kSimplex ? g.simplex.agreement : kAgreement;
}

using Identify = bool (*)(const ModelView&, const DataView&, const ContactView&, ContactGeometry&);

// Finds the features and returns how far they are from giving MuJoCo's contact. The colliders'
// files know one normal, that from geom 0 to geom 1.
double identify_features(const ModelView& m, const DataView& d, const ContactView& contact,
                         Identify identify_kind, ContactGeometry& g, bool& touches) {
  Vec3 normal = g.normal;
  g.normal = g.between();
  double error = std::numeric_limits<double>::infinity();
  g.kind = ContactGeometry::kFace;
  if (identify_kind(m, d, contact, g)) {
    touches = true;
    Rederived r = rederive(g);
    error = norm(r.position - g.position) + norm(r.normal - g.normal) +
            std::abs(r.distance - g.distance);
    if (g.kind == ContactGeometry::kCenters) error += slack(g.centers);
    if (g.kind == ContactGeometry::kSupports) error += slack(g.supports, g.normal);
  }
  g.normal = normal;
  return error;
}

}  // namespace

bool is_iterative(const ModelView& m, const ContactView& contact) {
  const int* id = contact.geom.v;
  if (id[0] < 0 || id[1] < 0 || !uses_collider(m, contact)) return false;
  auto is_sharp = [&](int geom) {
    const int type = m.geom_type[geom];
    return type == geom::kBox || type == geom::kMesh || type == geom::kHField;
  };
  const bool margin =
      contact.includemargin != 0 || m.geom_margin[id[0]] != 0 || m.geom_margin[id[1]] != 0;
  return margin || !is_sharp(id[0]) || !is_sharp(id[1]);
}

ContactGeometry identify(const ModelView& m, const DataView& d, const ContactView& contact,
                         const ContactGeometry* before) {
  auto refuse = [&](const char* reason) { throw Unsupported(contact_name(m, contact), reason); };
  if (contact.geom.v[0] < 0 || contact.geom.v[1] < 0) {
    throw Unsupported("a flex contact", "flexible bodies");
  }
  if (uses_collider(m, contact) && (m.opt.disableflags & disable::kNativeCCD)) {
    refuse("the legacy collider");
  }
  ContactGeometry g;
  bool touches = false, found = false;
  const bool collider = uses_collider(m, contact);
  auto attempt = [&](Identify way, bool everywhere) {
    // some colliders of MuJoCo 3.15 now and then turn the normal round, but not the rest
    for (bool flipped : {false, true}) {
      if (found || (flipped && !collider)) return;
      g = load_contact(contact, before);
      g.flipped = flipped;
      if (everywhere) g.walked[0] = g.walked[1] = Polytope::kEverywhere;
      // tie: features of a contact
      found = identify_features(m, d, contact, way, g, touches) < agreement(m, g);
    }
  };
  attempt(identify_pair, false);
  if (is_deep(m, contact)) attempt(identify_surfaces, false);
  // hulls are convex to single precision only, so that now and then a walk ends too early
  if (has_mesh(m, contact)) attempt(identify_pair, true);
  if (!found && collider) {
    const ContactGeometry* first = before && before->first ? before->first : before;
    auto find = [&](const DataView& turned, double separation, ContactGeometry& at) {
      at = load_contact(contact, nullptr);
      at.distance = separation;
      return identify_features(m, turned, contact, identify_pair, at, touches) < agreement(m, at);
    };
    found = identify_turned(m, d, contact, first, find, g);
  }
  if (!touches) refuse("the way in which these geoms touch");
  if (!found) refuse("its features were not recognised");
  g.hint = frame_hint(g, load_geom(m, d, contact.geom.v[g.hint_owner < 0 ? 0 : g.hint_owner]));
  Vec3 tangent = across(g.hint, g.normal);
  g.hint_length = norm(tangent);
  if (!(norm(tangent - g.hint_length * g.tangent[0]) < kAgreement)) {
    refuse("its frame was not recognised");
  }
  return g;
}

namespace {

// The turn of the frame from those of the normal and the hint: t_1 stays in their plane.   (CON-6)
Vec3 frame_turn(const ContactGeometry& g, Vec3 dn, Vec3 dhint) {
  double spin = dot(dhint, g.tangent[1]) - dot(g.normal, g.hint) * dot(dn, g.tangent[1]);
  // a capsule standing on end has no direction along the plane: any spin describes the same contact
  // unless its friction depends on the direction, where there is no derivative
  // tie: upright capsule
  spin = g.hint_length < kUpright ? 0 : spin / g.hint_length;
  return cross(g.normal, dn) + spin * g.normal;
}

}  // namespace

bool identify_nearest(const ModelView& m, const DataView& d, const ContactView& pair,
                      ContactGeometry& g) {
  const int first = m.geom_type[pair.geom.v[0]], second = m.geom_type[pair.geom.v[1]];
  const bool legacy = m.opt.disableflags & disable::kNativeCCD;
  if (first == geom::kHField || (legacy && uses_collider(m, pair))) return false;

  Identify ways[2] = {identify_pair, nullptr};
  if (uses_collider(m, pair) || (first == geom::kBox && second == geom::kBox && !legacy)) {
    const bool sharp = first == geom::kBox || first == geom::kMesh;
    const bool curved = is_curved(first) || is_curved(second);
    ways[0] = curved ? identify_surfaces : sharp ? identify_nearest_convex : identify_nearest_round;
    if (!curved && !sharp) ways[1] = identify_surfaces;  // it may be deep
  }
  for (Identify way : ways) {
    if (!way) break;
    g = load_contact(pair, nullptr);
    g.hint = {0, 0, 0}, g.hint_length = 0;
    bool touches = false;
    if (identify_features(m, d, pair, way, g, touches) < agreement(m, g)) return true;
  }
  return false;
}

ContactVariation vary(const ContactGeometry& g, const Motion given[2]) {
  if (g.has_twin && takes_twin(g, given)) return vary(twin_of(g), given);
  const Motion* motion = given;
  Motion turned[2];
  ContactVariation first;
  if (g.first) first = vary_first(g, given, turned), motion = turned;
  ContactVariation v = g.kind == ContactGeometry::kFace      ? vary_face(g, motion)
                       : g.kind == ContactGeometry::kCenters ? vary_spheres(g, motion)
                       : g.kind == ContactGeometry::kEdges   ? vary_edges(g, motion)
                       : g.kind == ContactGeometry::kSimplex ? vary_simplex(g, motion)
                                                             : vary_supports(g, motion);
  Vec3 dhint = g.hint_owner >= 0 ? cross(motion[g.hint_owner].ang, g.hint) : Vec3{0, 0, 0};
  v.turn = frame_turn(g, g.flipped ? -v.turn : v.turn, dhint);
  if (g.first) v.distance = first.distance;
  return v;
}

ContactMap vary_units(const ContactGeometry& g, int moves) {
  if (g.has_twin) {
    ContactGeometry alone = g;
    alone.has_twin = false;
    return vary_units(alone, moves);
  }
  ContactMap map{};
  auto put = [&](int column, const ContactVariation& v) {
    const double position[3] = {v.position.x, v.position.y, v.position.z};
    const double turn[3] = {v.turn.x, v.turn.y, v.turn.z};
    map.distance[column] = v.distance;
    for (int c = 0; c < 3; c++)
      map.position[c][column] = position[c], map.turn[c][column] = turn[c];
  };
  const Vec3 none{0, 0, 0}, axis[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  for (int k = 0; k < 6; k++) {
    const Motion unit = k < 3 ? Motion{axis[k], none} : Motion{none, axis[k - 3]};
    const Motion motion[2] = {{none, none}, unit};
    const ContactVariation second = vary(g, motion);
    if (moves & 2) put(6 + k, second);
    if (!(moves & 1)) continue;
    if (g.kind == ContactGeometry::kSupports || g.first) {
      // these agree with MuJoCo's normal within the collider's tolerance only, or turn with the
      // frame of another contact
      const Motion first[2] = {unit, {none, none}};
      put(k, vary(g, first));
      continue;
    }
    // both geoms together carry the contact along, but not a frame that is tied to the world's axes
    const Vec3 dhint = g.hint_owner >= 0 ? cross(unit.ang, g.hint) : none;
    const Vec3 turn = frame_turn(g, cross(unit.ang, g.normal), dhint);
    put(k, {-second.distance, unit.lin - second.position, turn - second.turn});
  }
  return map;
}

}  // namespace mujacobian
