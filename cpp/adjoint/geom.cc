// Places, orientations and sizes of geoms as parameters.
#include <cmath>

#include "adjoint/column.h"
#include "constraint/shift.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// What the motion of a contact does to its rows, the bodies standing still.               (PAR-13)
void add_shifted(const ModelView& m, const DataView& d, const Block& b, const BlockMotion& motion,
                 const ContactVariation& variation, double* column) {
  const ContactChange change = shift_contact(m, d, b, motion, variation);
  const ContactDofs& c = *b.chain;
  const Force turned = moved_wrench(change.wrench, variation);
  for (int k = 0; k < b.n; k++) {
    double sum = 0;
    for (int r = 0; r < b.count; r++) {
      double df = b.force[r] * change.dlogD;
      for (int t = 0; t < b.count; t++) df -= b.hessian[r * b.count + t] * change.rho[t];
      sum += b.J[r * b.stride + k] * df;
    }
    column[c.dofs[k]] += sum + c.sign(k) * dot(c.axis[k], turned);
  }
}

// A number is a size but for rounding.
bool reaches(double x, double size) { return std::abs(std::abs(x) - size) <= 1e-9 * (1 + size); }

double sign(double x) { return x < 0 ? -1 : 1; }

// Where a point of a geom's surface, given in its frame, goes with a unit of a size: out, if it is
// on an end or side that this size sets. (PAR-15)
Vec3 grown(const Geom& geom, Vec3 p, int component) {
  const double x[3] = {p.x, p.y, p.z};
  if (geom.type == geom::kBox) {
    const bool moves = reaches(x[component], geom.size[component]);
    return moves ? sign(x[component]) * unit3(component) : Vec3{0, 0, 0};
  }
  if (component == 1) return reaches(p.z, geom.size[1]) ? sign(p.z) * unit3(2) : Vec3{0, 0, 0};
  const Vec3 across{p.x, p.y, 0};
  return reaches(norm(across), geom.size[0]) ? (1 / norm(across)) * across : Vec3{0, 0, 0};
}

// The same for the point or face of geom `side` that makes the contact.
Vec3 grown_feature(const ModelView& m, const Block& b, const Geom& geom, int side, int component) {
  const ContactGeometry& g = *b.geometry;
  const FaceContact& face = g.face;
  const CenterContact& centers = g.centers;
  if (!g.first && g.kind == ContactGeometry::kFace &&
      (face.slide == FaceContact::kFixed || face.slide == FaceContact::kCylinder)) {
    if (face.owner != side) return grown(geom, geom.to_local(face.center), component);
    // a face is at the end of one axis
    const Vec3 outward = transpose_mul(geom.frame, face.outward);
    const int axis = geom.type == geom::kBox ? component : component == 1 ? 2 : -1;
    const double along[3] = {outward.x, outward.y, outward.z};
    return axis >= 0 && reaches(along[axis], 1) ? sign(along[axis]) * unit3(axis) : Vec3{0, 0, 0};
  }
  if (!g.first && g.kind == ContactGeometry::kCenters &&
      centers.slide[side] != CenterContact::kSegment &&
      centers.slide[1 - side] != CenterContact::kSegment) {
    return grown(geom, geom.to_local(centers.center[side]), component);
  }
  if (!g.first && g.kind == ContactGeometry::kEdges) {
    return grown(geom, geom.to_local(g.edges.point[side]), component);
  }
  throw Unsupported(contact_name(m, b.contact), "sizes of its geoms as parameters");
}

// How geom `side` of the contact moves it with a unit of the parameter.
ContactVariation geom_variation(const ModelView& m, const DataView& d, const Parameter& p,
                                const Block& b, int side) {
  const ContactGeometry& g = *b.geometry;
  const Vec3 e = unit3(p.component);
  Motion moved[2] = {};
  if (p.kind == Parameter::kGeomSize) {
    const Geom geom = load_geom(m, d, p.id);
    // of a cylinder the side is round, too
    const bool round = geom.type == geom::kSphere || geom.type == geom::kCapsule ||
                       (g.kind == ContactGeometry::kCenters && g.centers.radius[side] > 0);
    // the surface comes nearer by one, the contact half of that
    if (round && p.component == 0) {
      return {-1, 0.5 * (side ? -g.between() : g.between()), {0, 0, 0}};
    }
    moved[side].lin = geom.frame * grown_feature(m, b, geom, side, p.component);
    return vary(g, moved);
  }
  if (p.kind == Parameter::kGeomPosition) {
    moved[side].lin = load9(d.xmat + 9 * m.geom_bodyid[p.id]) * e;
  } else {
    const Vec3 axis = load9(d.geom_xmat + 9 * p.id) * e;
    moved[side] = {axis, cross(axis, g.position - load3(d.geom_xpos + 3 * p.id))};
  }
  return vary(g, moved);
}

}  // namespace

void add_geom(const ModelView& m, const DataView& d, const StepDifferential& s, const Parameter& p,
              const Column& column, Arena& arena) {
  const Blocks& blocks = s.forward.blocks;
  const BlockMotion motion = block_motion(m, d, blocks, s.forward.solved, arena);
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (!b.geometry || !b.active) continue;
    for (int side = 0; side < 2; side++) {
      if (b.contact.geom.v[side] != p.id) continue;
      if (b.idle) {
        throw Unsupported(contact_name(m, b.contact),
                          "geoms as parameters of a contact that cannot push its bodies");
      }
      add_shifted(m, d, b, motion, geom_variation(m, d, p, b, side), column.early);
    }
  }
}

}  // namespace mujacobian
