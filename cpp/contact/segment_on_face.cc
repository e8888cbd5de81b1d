#include "contact/segment_on_face.h"

#include <cmath>

#include "contact/convex_pair.h"
#include "contact/polytope.h"
#include "contact/segment_direction.h"
#include "layout/engine.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;  // m, within which a point is at an end of the segment

constexpr const char* kAnyLine =
    "the axis of a cylinder is along its normal, and rounding decides which line of the side "
    "MuJoCo takes";

// A point of the line of the surface of geom `owner` that faces a face of the other geom: an end of
// the line, or the point where a side of the face cuts it. (CON-16)
bool identify_line(const Geom& geom, const Polytope& other, int owner, double half_margin,
                   double tolerance, ContactGeometry& g) {
  Vec3 n = owner == 0 ? g.normal : -g.normal, a = geom.axis();  // n: to the other geom
  Vec3 x = g.position + (half_margin - g.distance / 2) * n;
  double along = dot(x - geom.position, a);
  Vec3 off = x - geom.position - along * a;
  // tie: segment as long as a face
  bool at_end = std::abs(std::abs(along) - geom.size[1]) < kOn;

  return other.find_face_with(-n, [&](int face) {
    SegmentPoint s{.owner = owner,
                   .axis = a,
                   .start = x,
                   .point = x,
                   .radius = geom.size[0] + half_margin,
                   .unit = geom.type == geom::kCylinder};
    if (!find_direction(geom, other, face, off, tolerance, s)) {
      if (s.unit && stands_on_cap(geom, other, face)) g.refusal = kAnyLine;
      return false;
    }
    // an end over a side of the face: whichever of the two is farther inside has the point (CON-27)
    const bool crosses = other.crossed_side(face, x, a, s.side);
    // tie: segment within a face
    if (!at_end && !crosses) return false;
    if (crosses) s.rule = SegmentPoint::kPlane, s.share = at_end ? 0.5 : 1;
    FaceFeature f = sphere_over_face(1 - owner, -n, other.clip_vertex(face, 0), x, -half_margin,
                                     other.flatness(), g.distance);
    f.slide = s;
    g.feature = f;
    return true;
  });
}

bool has_line(int type) { return type == geom::kCapsule || type == geom::kCylinder; }
bool has_faces(int type) {
  return type == geom::kCylinder || type == geom::kBox || type == geom::kMesh;
}

}  // namespace

bool identify_segment_on_face(const ModelView& m, const DataView& d, const ContactView& contact,
                              ContactGeometry& g) {
  const int id[2] = {contact.geom.v[0], contact.geom.v[1]};
  const int type[2] = {m.geom_type[id[0]], m.geom_type[id[1]]};
  if (m.opt.disableflags & disable::kMultiCCD) return false;

  // within margins MuJoCo does this since 3.17: half of the margin enlarges the radius of a
  // capsule, and it does not change other geoms
  double half_margin = (m.geom_margin[id[0]] + m.geom_margin[id[1]]) / 2;
  if (half_margin > 0 && engine().version < kMuJoCo317) return false;
  if (type[0] != geom::kCapsule) half_margin = 0;

  // a cap on a face
  if (has_faces(type[0]) && has_faces(type[1])) {
    const Polytope p[2] = {{m, d, id[0], &g.walked[0]}, {m, d, id[1], &g.walked[1]}};
    if (identify_aligned(p, g)) return true;
    if (type[1] != geom::kCylinder && identify_edge_on_face(p, 0, g)) return true;
  }

  // a line on a face
  for (int owner = 0; owner < 2; owner++) {
    if (!has_line(type[owner]) || !has_faces(type[1 - owner])) continue;
    const Polytope other(m, d, id[1 - owner], &g.walked[1 - owner]);
    const Geom geom = load_geom(m, d, id[owner]);
    const double tolerance = std::fmax(0, m.opt.ccd_tolerance);
    if (identify_line(geom, other, owner, half_margin, tolerance, g)) return true;
  }
  return false;
}

}  // namespace mujacobian
