#include "contact/polish.h"

#include <algorithm>
#include <cmath>

#include "contact/curved_pair.h"
#include "contact/geom.h"
#include "contact/pair_table.h"
#include "contact/support_feature.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr unsigned kEllipsoidBit = type_bit(geom::kEllipsoid);
constexpr unsigned kPolished = kSphereBit | kCapsuleBit | kEllipsoidBit | kBoxBit;

constexpr int kSteps = 12;           // of Newton's method, of which four or five usually suffice
constexpr double kRounding = 1e-13;  // m and rad, for coordinates up to 1 m
constexpr double kTurn = 0.1;        // rad, the largest error of a normal that is removed
constexpr double kTolerances = 10;   // the largest error of a depth, in units of the tolerance,
constexpr double kDepth = 1e-9;      // m, plus this, because rounding may stop the collider

// Radius of the largest ball that touches the surface of a geom anywhere from inside, or a smaller
// one.                                                                                    (CON-44)
double inner_ball(const Geom& geom) {
  switch (geom.type) {
    case geom::kSphere:
    case geom::kCapsule:
      return geom.size[0];
    case geom::kEllipsoid: {
      const auto [least, most] = std::minmax({geom.size[0], geom.size[1], geom.size[2]});
      return least * least / most;
    }
    default:
      return 0;
  }
}

double core_radius(const Geom& geom) {
  return geom.type == geom::kSphere || geom.type == geom::kCapsule ? geom.size[0] : 0;
}

// Moves the coordinate x of a support to the end of the interval from -half to half that the
// component n of the outward normal points to. Returns false if x is free instead.       (CON-43)
bool take_end(double half, double n, double& x) {
  const double reached = x + half * n;
  if (std::abs(reached) < half) return false;
  x = std::copysign(half, reached);
  return true;
}

// Returns the support with outward normal n of the part of a geom at `point`. It has three slides
// if `point` is not close to the surface.
SupportSide part_at(const Geom& geom, Vec3 n, Vec3 point) {
  if (geom.type == geom::kSphere) return {.point = geom.position, .radius = geom.size[0]};
  if (geom.type == geom::kEllipsoid) return ellipsoid_side(geom, n);

  // coordinates along the axis of a capsule, or along all axes of a box, are at an end or free
  const bool is_box = geom.type == geom::kBox;
  const Vec3 local = geom.to_local(point), outward = transpose_mul(geom.frame, n);
  double x[3] = {local.x, local.y, local.z};
  const double half[3] = {geom.size[0], geom.size[1], is_box ? geom.size[2] : geom.size[1]};
  const double along[3] = {outward.x, outward.y, outward.z};
  SupportSide side{.radius = core_radius(geom)};
  for (int k = 0; k < 3; k++) {
    if (!is_box && k < 2) {
      x[k] = 0;
    } else if (!take_end(half[k], along[k], x[k])) {
      if (side.slides < 2) side.slide[side.slides] = column(geom.frame, k);
      side.slides++;
    }
  }
  side.point = geom.to_world({x[0], x[1], x[2]});
  return side;
}

// A pair of geoms and the present approximation of their contact.
struct Iterate {
  Geom geom[2];
  Vec3 normal;    // from geom 0 to geom 1
  Vec3 point[2];  // of the geom, or of its core
  double distance;

  // Makes one step of Newton's method and returns the residual before it. The distance becomes NaN
  // if there is no step.
  double improve() {
    SupportFeature f;
    const Vec3 before = normal, still[2] = {};
    double reach = distance;
    for (int s = 0; s < 2; s++) {
      f.side[s] = part_at(geom[s], s ? -normal : normal, point[s]);
      reach += f.side[s].radius;
      if (f.side[s].slides > 2) return distance = NAN;
    }
    for (const SupportSide& side : f.side) {
      for (int k = 0; k < side.slides; k++) normal = across(normal, side.slide[k]);
    }
    normal = unit(normal);
    const Vec3 gap = f.side[1].point - f.side[0].point - reach * normal;
    const SupportChange change = support_change(f, normal, distance, still, still, gap);
    normal = unit(normal + change.normal);
    distance += change.distance;
    for (int s = 0; s < 2; s++) point[s] = f.side[s].point + change.point[s];
    return norm(gap) + norm(normal - before);
  }
};

}  // namespace

bool can_polish(const ModelView& m, const ContactView& contact) {
  const int* id = contact.geom.v;
  if (id[0] < 0 || id[1] < 0 || (m.opt.disableflags & disable::kNativeCCD)) return false;
  const unsigned first = type_bit(m.geom_type[id[0]]), second = type_bit(m.geom_type[id[1]]);
  return ((first | second) & kEllipsoidBit) && !((first | second) & ~kPolished);
}

bool polish(const ModelView& m, const DataView& d, const ContactView& contact, double tolerance,
            PreContact& out) {
  if (!can_polish(m, contact)) return false;
  Iterate at{{load_geom(m, d, contact.geom.v[0]), load_geom(m, d, contact.geom.v[1])},
             load3(contact.frame.v),
             {},
             contact.dist};

  // Newton's method from MuJoCo's points
  const Vec3 normal = at.normal, middle = load3(contact.pos.v);
  for (int s = 0; s < 2; s++) {
    const double back = contact.dist / 2 + core_radius(at.geom[s]);
    at.point[s] = middle + (s ? back : -back) * normal;
  }
  const double rounding = kRounding * std::fmax(1, norm(middle));
  int step = 0;
  while (step < kSteps && at.improve() > rounding) step++;
  if (step == kSteps || !std::isfinite(at.distance)) return false;

  // no other direction has so small a depth (CON-44), and MuJoCo is at this optimum
  if (!(inner_ball(at.geom[0]) + inner_ball(at.geom[1]) > -2 * at.distance)) return false;
  if (!(norm(at.normal - normal) < kTurn)) return false;
  if (!(std::abs(at.distance - contact.dist) < kTolerances * tolerance + kDepth)) return false;

  out = {};
  out.dist = at.distance;
  store3(out.normal, at.normal);
  const double shift = (core_radius(at.geom[0]) - core_radius(at.geom[1])) / 2;
  store3(out.pos, 0.5 * (at.point[0] + at.point[1]) + shift * at.normal);
  return true;
}

}  // namespace mujacobian
