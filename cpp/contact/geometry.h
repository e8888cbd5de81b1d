// How a contact moves with its two geoms. `identify` finds the features (face, corner, end of a
// capsule, ...) that made MuJoCo's contact, re-derives the contact from them and refuses it where
// that does not reproduce MuJoCo's numbers; `vary` gives the motion of the contact under a motion
// of the two bodies. docs/derivations/contacts.md.
#pragma once

#include <functional>

#include "layout/views.h"
#include "spatial/vector.h"

namespace mujacobian {

struct Prism;

// A geom as the colliders see it.
struct Geom {
  int type;
  Vec3 position;
  Mat3 frame;
  const double* size;
  Vec3 axis() const { return column(frame, 2); }
  Vec3 to_local(Vec3 p) const { return transpose_mul(frame, p - position); }
  Vec3 to_world(Vec3 p) const { return position + frame * p; }
};
// A sphere around a point of one body against a face of the other.                     (CON-1)
struct FaceContact {
  // the point is fixed to its body, is the lowest point of an ellipsoid, turns around the axis of a
  // cylinder with the direction of steepest descent, is where an edge of its body crosses a side of
  // the face, where a face of its body lies over a corner of the face, is the foot, on a face of
  // its body, of a point of the owner, is a point of a capsule that lies along the face, or is a
  // point of a polygon that sides of the face have clipped, or its foot
  enum Slide {
    kFixed,
    kEllipsoid,
    kCylinder,
    kEdge,
    kCorner,
    kFoot,
    kSegment,
    kClipped,
    kClippedFoot
  };
  int owner;     // which geom of the contact has the face, 0 or 1
  Vec3 outward;  // unit normal of the face, away from its owner
  Vec3 center;
  double radius;
  double distance;
  Slide slide;
  Geom other;   // the geom on which the point slides
  Vec3 along;   // kEdge, kFoot: direction of the edge; zero if the foot's point is a vertex
  Vec3 side;    // kEdge, kFoot: normal of the side plane; kCorner: normal of the other's face
  Vec3 corner;  // kCorner
  Vec3 above;   // kFoot: the point of the owner
  Vec3 base;    // kFoot: normal of the other's face

  // direction from the point to the contact's position: the face's normal, or for the points of
  // manifolds of convex geoms the normal of the other's face
  Vec3 shift;
  bool shift_with_other;
};

// Two edges that cross: the normal is perpendicular to both, the witness points are the nearest
// points of their lines.                                                                (CON-9)
struct EdgeContact {
  Vec3 point[2], axis[2];
  double sign;  // normal = sign (axis[0] x axis[1]) / |.|
};

// Two spheres whose centers are fixed to their bodies or slide along features of them so that they
// stay nearest to each other, or move as a point of a capsule's segment does.           (CON-2)
struct CenterContact {
  enum Slide { kFixed, kLine, kCircle, kSegment };
  Vec3 center[2];
  double radius[2];
  Slide slide[2];
  Vec3 axis[2];    // unit direction of the line, or axis of the circle
  Vec3 middle[2];  // of the circle
};

// One side of the nearest or deepest points of two convex geoms: a point whose position follows the
// common normal, and slides along the straight directions of its feature.               (CON-14)
struct SupportSide {
  Vec3 point;  // on the geom, or on its core where it is a core with a radius
  double radius;
  Mat3 follow;  // d(point)/d(outward normal): zero for vertices, edges, faces and cores
  Vec3 slide[2];
  int slides;
};
struct SupportContact {
  SupportSide side[2];
};

// A point of a capsule or cylinder that lies along a face of the other geom: on its segment, or on
// the line of its surface that faces the other geom.                            (CON-15, CON-16)
struct SegmentPoint {
  // the point goes with its start, stays in a plane fixed to the other geom, or keeps its distance
  // from the start along an axis of the other geom
  enum Rule { kStart, kPlane, kStep };
  Rule rule;
  int owner;          // which geom of the contact has the segment, 0 or 1
  Vec3 start, point;  // apart along the segment
  Vec3 axis;          // of the segment
  Vec3 side;          // kPlane, kStep: normal of the plane, or the axis; fixed to the other geom
  bool to_end;        // kStep: the distance is that of the nearest point from the end of its edge
  double share = 1;   // kPlane: 1/2 if the end of the segment is in the plane           (CON-27)

  // the start is fixed to the owner, or is where the segment is nearest to the other geom, center 0
  bool nearest_start;
  CenterContact nearest;

  // a point of the surface is off the segment by radius times the part of `direction` across it,
  // made a unit vector for cylinders; the direction is fixed to the other geom (its face), goes
  // with `nearest`, or is the normal between the rim of a cylinder and an edge
  enum Look { kFace, kNearest, kRim };
  double radius;
  bool unit;
  Vec3 direction;
  Look look;
  SupportContact rim;
};

// One to three pairs of vertices whose differences w_k = b_k - a_k span a point, a line or a plane;
// the contact is where that comes nearest to the origin.                                (CON-20)
struct SimplexContact {
  int size;
  Vec3 point[2][3];  // vertices of geom 0, of geom 1
  double weight[3];  // of the pairs at the contact, summing to one
  double radius;     // around the vertices of geom 1
  double agreement;  // how well it must reproduce MuJoCo's contact
};

struct ContactGeometry {
  enum Kind { kFace, kCenters, kEdges, kSupports, kSimplex } kind;
  FaceContact face;
  CenterContact centers;
  EdgeContact edges;
  SupportContact supports;
  SimplexContact simplex;
  SegmentPoint segment;  // kFace or kCenters with a point of a capsule's segment
  Vec3 clipped[6];       // kFace with kClipped or kClippedFoot: the motions of a ClippedVertex

  // parallel faces of two boxes, each of which serves as the reference: the same contact with the
  // face of the other box. The motion decides which one MuJoCo takes.                   (CON-26)
  bool has_twin;
  FaceContact twin;
  Vec3 twin_clipped[6];

  Vec3 position, normal, tangent[2];
  double distance;
  bool flipped;        // MuJoCo's normal points from geom 1 to geom 0
  double region;       // distance to where other features take over, infinite if none is near
  int hint_owner;      // geom whose z axis directs the first tangent, -1: the world's y or z axis
  Vec3 hint;           // the vector that directs the first tangent
  double hint_length;  // of its part across the normal

  // a contact that was found after its geoms were turned, geom 0 by `turned` and geom 1 back, about
  // the first contact of the pair, whose distance it has; `first` is null for others
  const ContactGeometry* first;
  Mat3 turned;

  // where on the hulls of its geoms the search for features ended
  int geom[2], walked[2];

  Vec3 between() const { return flipped ? -normal : normal; }  // from geom 0 to geom 1
};

// Position, normal and distance from the features.
struct Rederived {
  Vec3 position, normal;
  double distance;
};

// Motion of a contact; the frame turns by `turn`.
struct ContactVariation {
  double distance;
  Vec3 position, turn;
};

// Throws Unsupported with the names of both geoms for a pair that is not covered or a contact that
// the features do not reproduce.
// A search for features begins where that of the contact before it ended: points of a manifold come
// one after the other.
ContactGeometry identify(const ModelView& m, const DataView& d, const ContactView& contact,
                         const ContactGeometry* before = nullptr);

// The same for the nearest or deepest points of two geoms as mj_geomDistance finds them, geoms in
// the order of their types; `pair` has no tangents. False where no feature reproduces them.
bool identify_nearest(const ModelView& m, const DataView& d, const ContactView& pair,
                      ContactGeometry& geometry);

// Whether the nearest features of two geoms are parallel: faces, edges and axes along which both
// nearest points can slide. MuJoCo reports one pair of points of many, which jumps when they tilt.
enum class Parallel { kNone, kLines, kFace };
Parallel parallel_features(const ModelView& m, const DataView& d, const ContactView& pair);

// (CON-14) and its right-hand side solved: changes of normal, distance and points for given
// motions.
struct SupportChange {
  Vec3 normal, point[2];
  double distance;
};
SupportChange support_change(const SupportContact& c, Vec3 normal, double distance,
                             const Vec3 moved[2], const Vec3 turn[2], Vec3 gap);

// Motion of the centers about `from`: fixed ones go with their bodies, sliding ones so that the
// span stays perpendicular to their feature. A center that is a point of a segment has moved
// already.
void vary_centers(const CenterContact& c, Vec3 from, const Motion motion[2], Vec3 moved[2]);

Vec3 segment_velocity(const SegmentPoint& p, Vec3 from, const Motion motion[2]);

// The contact with the face of the other box, and whether MuJoCo takes that one when its geoms move
// by motion[0] and motion[1].                                                            (CON-26)
ContactGeometry twin_of(const ContactGeometry& contact);
bool takes_twin(const ContactGeometry& contact, const Motion motion[2]);

// Motion of the contact when its geoms move by motion[0] and motion[1], both about its position.
ContactVariation vary(const ContactGeometry& contact, const Motion motion[2]);

// The same as a linear map: for given features a contact moves linearly with its geoms. Columns are
// the six unit motions of geom 0, turns first, then those of geom 1; zero for a geom that cannot
// move (bit s of `moves` is not set). A twin is left out: visit_maps chooses.
struct ContactMap {
  static constexpr int kColumns = 12;
  double distance[kColumns], position[3][kColumns], turn[3][kColumns];
};
ContactMap vary_units(const ContactGeometry& contact, int moves);

// The pairs, by the type of the first geom. They fill `kind` and its features; false: no feature of
// the pair explains the contact.
bool identify_plane(const ModelView& m, const DataView& d, const ContactView& contact,
                    ContactGeometry& geometry);
bool identify_sphere(const ModelView& m, const DataView& d, const ContactView& contact,
                     ContactGeometry& geometry);
bool identify_capsule(const ModelView& m, const DataView& d, const ContactView& contact,
                      ContactGeometry& geometry);
bool identify_height_field(const ModelView& m, const DataView& d, const ContactView& contact,
                           ContactGeometry& geometry);
bool identify_capsule_box(const Geom& capsule, const Geom& box, ContactGeometry& geometry);
bool identify_curved(const ModelView& m, const DataView& d, const ContactView& contact,
                     ContactGeometry& geometry);
// `prism`: the piece of the height field that geom 0 is, null if it is none
bool identify_optimum(const ModelView& m, const DataView& d, const ContactView& contact,
                      ContactGeometry& geometry, const Prism* prism);
bool identify_convex(const ModelView& m, const DataView& d, const ContactView& contact,
                     ContactGeometry& geometry);
bool identify_mesh_round(const ModelView& m, const DataView& d, const ContactView& contact,
                         ContactGeometry& geometry);
// The same pairs without manifolds: a single pair of nearest or deepest points.
bool identify_nearest_round(const ModelView& m, const DataView& d, const ContactView& contact,
                            ContactGeometry& geometry);
bool identify_nearest_convex(const ModelView& m, const DataView& d, const ContactView& contact,
                             ContactGeometry& geometry);
// A capsule or cylinder along a face of a box, of a mesh or of a cylinder, or a cap on such a face.
bool identify_along(const ModelView& m, const DataView& d, const ContactView& contact,
                    ContactGeometry& geometry);
bool identify_box(const ModelView& m, const DataView& d, const ContactView& contact,
                  ContactGeometry& geometry);

// A contact of geoms that were turned about the first contact of the pair. `find` identifies it
// among geoms at given poses that are that far apart.
using FindFeatures = std::function<bool(const DataView&, double, ContactGeometry&)>;
bool identify_turned(const ModelView& m, const DataView& d, const ContactView& contact,
                     const ContactGeometry* first, const FindFeatures& find, ContactGeometry& g);

// Motion of the first contact, and those of the turned geoms about the position of this one.
ContactVariation vary_first(const ContactGeometry& g, const Motion motion[2], Motion turned[2]);

// A sphere against a box, whether the contact's first geom is a sphere or a capsule.
void identify_sphere_box(const Geom& sphere, const Geom& box, ContactGeometry& geometry);

// The contact is found by MuJoCo's convex collider and depends on opt.ccd_tolerance: not so between
// boxes, meshes and height fields without margin, where the collider stops at the optimum.
bool is_iterative(const ModelView& m, const ContactView& contact);

// How far the normal of MuJoCo's collider may be off where geoms are curved or rounded by a margin.
double normal_error(const ModelView& m);
// How well features must reproduce such contacts.
inline double curved_agreement(const ModelView& m) { return 30 * normal_error(m); }

Geom load_geom(const ModelView& m, const DataView& d, int id);

}  // namespace mujacobian
