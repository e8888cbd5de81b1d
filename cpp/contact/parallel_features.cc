#include "contact/parallel_features.h"

#include "contact/geom.h"
#include "contact/polytope.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kParallel = 1e-9;  // rad, angle below which features are parallel

// The directions in which the nearest point of a geom can slide without a change of distance.
struct Slide {
  int dimension;
  Vec3 along;  // the direction, if there is one
};

Slide slide_of(const ModelView& m, const DataView& d, int id, Vec3 outward) {
  const Geom geom = load_geom(m, d, id);
  if (geom.type == geom::kBox || geom.type == geom::kMesh) {
    const PolytopePart part = Polytope(m, d, id).facing(outward);
    return {part.size - 1, part.size == 2 ? part.along() : Vec3{0, 0, 0}};
  }
  const bool cylinder = geom.type == geom::kCylinder;
  if (!cylinder && geom.type != geom::kCapsule) return {0, {0, 0, 0}};
  if (std::abs(dot(geom.axis(), outward)) < kParallel) return {1, geom.axis()};
  return {cylinder && norm(cross(geom.axis(), outward)) < kParallel ? 2 : 0, {0, 0, 0}};
}

}  // namespace

Parallel parallel_features(const ModelView& m, const DataView& d, const ContactView& pair) {
  const int* id = pair.geom.v;
  if (m.geom_type[id[0]] == geom::kPlane) return Parallel::kNone;
  const Vec3 normal = load3(pair.frame.v);
  const Slide one = slide_of(m, d, id[0], normal), other = slide_of(m, d, id[1], -normal);
  // tie: parallel features
  if (one.dimension + other.dimension > 2) return Parallel::kFace;
  if (one.dimension != 1 || other.dimension != 1) return Parallel::kNone;
  return norm(cross(one.along, other.along)) < kParallel ? Parallel::kLines : Parallel::kNone;
}

}  // namespace mujacobian
