#include "contact/curvature.h"

#include <optional>
#include <variant>

#include "contact/frame.h"
#include "contact/kinematics.h"
#include "contact/perturbed_manifold.h"

namespace mujacobian {
namespace {

using DualVec3 = Vec3T<ContactDual>;
using DualMotion = MotionT<ContactDual>;
using DualGeometry = ContactGeometryT<ContactDual>;

constexpr int kUnits = 6;  // unit motions of a geom
constexpr int kColumns = ContactMap::kColumns;

Motion unit_motion(int k) {
  return k < 3 ? Motion{unit3(k), {0, 0, 0}} : Motion{{0, 0, 0}, unit3(k - 3)};
}

// A number or vector with the derivatives dx[k].
ContactDual dual(double x, const double dx[kUnits]) {
  ContactDual result(x);
  for (int k = 0; k < kUnits; k++) result.d[k] = dx[k];
  return result;
}
DualVec3 dual(Vec3 x, const Vec3 dx[kUnits]) {
  DualVec3 result = x;
  for (int k = 0; k < kUnits; k++) {
    result.x.d[k] = dx[k].x, result.y.d[k] = dx[k].y, result.z.d[k] = dx[k].z;
  }
  return result;
}

// Derivative number k of a vector.
Vec3 derivative(const DualVec3& a, int k) { return {a.x.d[k], a.y.d[k], a.z.d[k]}; }

// The motions of both geoms and the changes of the contact point, for each unit motion of a geom.
struct UnitRates {
  Motion motion[2][kUnits];
  ContactPoint rate[kUnits];
};

// Motions without a value, whose derivatives are the given motions.
void seed(const UnitRates& units, DualMotion motion[2]) {
  for (int s = 0; s < 2; s++) {
    Vec3 ang[kUnits], lin[kUnits];
    for (int k = 0; k < kUnits; k++) {
      ang[k] = units.motion[s][k].ang, lin[k] = units.motion[s][k].lin;
    }
    motion[s] = {dual(Vec3{0, 0, 0}, ang), dual(Vec3{0, 0, 0}, lin)};
  }
}

ContactPoint contact_point(const ContactGeometry& g) {
  return {g.distance, g.position, g.between()};
}

void set_rates(const ContactGeometry& g, UnitRates& units) {
  const ContactPoint at = contact_point(g);
  for (int k = 0; k < kUnits; k++) {
    const Motion motion[2] = {units.motion[0][k], units.motion[1][k]};
    units.rate[k] = std::visit([&](const auto& f) { return vary(f, at, motion); }, g.feature);
  }
}

// The contact point after the motions.
ContactPointT<ContactDual> move_point(const ContactGeometry& g, const UnitRates& units) {
  const ContactPoint at = contact_point(g);
  double distance[kUnits];
  Vec3 position[kUnits], normal[kUnits];
  for (int k = 0; k < kUnits; k++) {
    distance[k] = units.rate[k].distance;
    position[k] = units.rate[k].position, normal[k] = units.rate[k].normal;
  }
  return {dual(at.distance, distance), dual(at.position, position), dual(at.normal, normal)};
}

// Replaces a matrix by its symmetric part.                                                (CON-40)
void symmetrize(MovedColumns moved, ContactCurvature& curvature) {
  for (int i = moved.first; i < moved.last; i++) {
    for (int j = moved.first; j < i; j++) {
      double &lower = curvature.m[i][j], &upper = curvature.m[j][i];
      lower = upper = 0.5 * (lower + upper);
    }
  }
}

// Changes of the normal and of the hint, and the rotation of the frame, for each column.
struct FrameRates {
  Vec3 dn[kColumns], dhint[kColumns], turn[kColumns];
};

// A contact of which both geoms together carry along all but a hint that is fixed to the world.
FrameRates frame_rates(const ContactGeometry& g, const UnitRates& units, MovedColumns moved) {
  FrameRates r;
  for (int column = moved.first; column < moved.last; column++) {
    const int side = column / kUnits, k = column % kUnits;
    const Vec3 dn = g.flipped ? -units.rate[k].normal : units.rate[k].normal;
    const Vec3 ang = unit_motion(k).ang;
    r.dn[column] = side ? dn : cross(ang, g.normal) - dn;
    r.dhint[column] = side == g.hint_owner ? cross(ang, g.hint) : Vec3{0, 0, 0};
    r.turn[column] = frame_turn(g, r.dn[column], r.dhint[column]);
  }
  return r;
}

// Adds the terms of the frame beyond those of the second derivative of its normal.        (CON-42)
void add_frame(const ContactGeometry& g, const FrameRates& r, Vec3 bar, MovedColumns moved,
               ContactCurvature& curvature) {
  const FrameCotangent at = frame_cotangent(g, bar);
  for (int i = moved.first; i < moved.last; i++) {
    const FrameCotangent change = vary_frame_cotangent(g, bar, r.turn[i], r.dhint[i]);
    for (int j = moved.first; j < moved.last; j++) {
      curvature.m[i][j] += dot(change.normal, r.dn[j]);
    }
    if (!moved.has(g.hint_owner)) continue;
    // the hint turns with its geom
    const Vec3 bent = cross(r.dhint[i], at.hint);
    for (int k = 0; k < 3; k++) {
      const int j = kUnits * g.hint_owner + k;
      curvature.m[i][j] += dot(change.hint, r.dhint[j]) + dot(unit3(k), bent);
    }
  }
}

// Second derivatives of a point of geom 1 over a face of geom 0 with respect to the motion of geom
// 1, which is the contact of most feet with the ground. Only the point moves: its velocity along
// motion k changes along motion j.
void curve_point_over_face(const FaceFeature& f, Vec3 from, const ContactPoint& bar,
                           double out[kUnits][kUnits]) {
  const Vec3 pull = bar.position + (bar.distance - 0.5 * dot(bar.position, f.shift)) * f.outward;
  for (int j = 0; j < kUnits; j++) {
    const Vec3 turned = cross(velocity(unit_motion(j), from, f.center), pull);
    store3(out[j], turned);
    for (int k = 3; k < kUnits; k++) out[j][k] = 0;
  }
}

// Second derivatives of the contact point with respect to the motion of geom 1, contracted with the
// cotangents: row j is the derivative of the first derivatives along motion j.            (CON-40)
void curve_point(const ContactGeometry& g, const ContactSource& source, const UnitRates& units,
                 const ContactPoint& bar, double out[kUnits][kUnits]) {
  const FaceFeature* face = std::get_if<FaceFeature>(&g.feature);
  if (face && face->owner == 0 && !face->shift_with_other &&
      std::holds_alternative<FixedPoint>(face->slide)) {
    return curve_point_over_face(*face, g.position, bar, out);
  }
  const ContactPointT<ContactDual> at = move_point(g, units);
  const DualVec3 shift = at.position - DualVec3(g.position);
  DualMotion motion[2];
  seed(units, motion);
  auto curve_feature = [&](const auto& feature) {
    const auto f = moved(feature, contact_point(g), motion, source);
    motion[0] = {};
    for (int k = 0; k < kUnits; k++) {
      motion[1] = about(DualMotion(unit_motion(k)), shift);
      const ContactPointT<ContactDual> v = vary(f, at, motion);
      for (int j = 0; j < kUnits; j++) {
        out[j][k] = bar.distance * v.distance.d[j] + dot(bar.position, derivative(v.position, j)) +
                    dot(bar.normal, derivative(v.normal, j));
      }
    }
  };
  std::visit(curve_feature, g.feature);
}

// Writes the rows and columns of geom 0.                                                 (CON-41)
void add_first_geom(const ContactGeometry& g, const UnitRates& units, const ContactPoint& point_bar,
                    const double own[kUnits][kUnits], ContactCurvature& result) {
  // along[k]: the contracted first derivative; w . twist[k]: its change when all turns by w
  double along[kUnits];
  Vec3 twist[kUnits];
  for (int k = 0; k < kUnits; k++) {
    const ContactPoint& r = units.rate[k];
    along[k] = point_bar.distance * r.distance + dot(point_bar.position, r.position) +
               dot(point_bar.normal, r.normal);
    twist[k] = cross(r.position, point_bar.position) + cross(r.normal, point_bar.normal);
  }

  // up to antisymmetric terms
  auto turning = [](int k, Vec3 v) { return dot(unit_motion(k).ang, v); };
  for (int j = 0; j < kUnits; j++) {
    const Motion unit = unit_motion(j);
    const Vec3 carried =
        cross(unit.lin, point_bar.position) + cross(cross(unit.ang, g.between()), point_bar.normal);
    for (int k = 0; k < kUnits; k++) {
      double bracket[kUnits], transported = 0;
      store_motion(bracket, cross(unit, unit_motion(k)));
      for (int i = 0; i < kUnits; i++) transported += along[i] * bracket[i];
      result.m[j][k] = own[j][k] + turning(k, carried - 2.0 * twist[j]);
      result.m[j][kUnits + k] = -own[j][k] + turning(j, twist[k]) - transported;
      result.m[kUnits + j][k] = -own[j][k] + turning(k, twist[j]);
    }
  }
}

// Second derivatives of a contact that both geoms together carry along. Those with respect to the
// motion of geom 1 determine all others.                                                  (CON-41)
ContactCurvature curve_relative(const ContactGeometry& g, const ContactSource& source,
                                const ContactCotangent& bar, MovedColumns columns) {
  UnitRates units{};
  for (int k = 0; k < kUnits; k++) units.motion[1][k] = unit_motion(k);
  set_rates(g, units);
  const Vec3 frame = frame_cotangent(g, bar.turn).normal;
  const ContactPoint point_bar{bar.distance, bar.position, g.flipped ? -frame : frame};
  double own[kUnits][kUnits];
  curve_point(g, source, units, point_bar, own);

  // geom 1 alone
  ContactCurvature result;
  for (int j = 0; j < kUnits; j++)
    for (int k = 0; k < kUnits; k++) result.m[kUnits + j][kUnits + k] = own[j][k];
  if (columns.has(0)) add_first_geom(g, units, point_bar, own, result);
  add_frame(g, frame_rates(g, units, columns), bar.turn, columns, result);
  return result;
}

// The contact after the motions, with which its frame turns by `turn`. Its first contact is not
// set.
DualGeometry move_contact(const ContactGeometry& g, const ContactSource& source,
                          const UnitRates& units, const Vec3 turn[kUnits]) {
  const ContactPointT<ContactDual> at = move_point(g, units);
  DualMotion motion[2];
  seed(units, motion);
  Vec3 dn[kUnits], dt[kUnits], dhint[kUnits];
  for (int k = 0; k < kUnits; k++) {
    dn[k] = cross(turn[k], g.normal), dt[k] = cross(turn[k], g.tangent[1]);
    const bool fixed = g.hint_owner == -1;
    dhint[k] = fixed ? Vec3{0, 0, 0} : cross(units.motion[g.hint_owner][k].ang, g.hint);
  }
  DualGeometry result;
  auto move = [&](const auto& f) { result.feature = moved(f, contact_point(g), motion, source); };
  std::visit(move, g.feature);
  result.position = at.position;
  result.distance = at.distance;
  result.normal = dual(g.normal, dn);
  result.tangent[1] = dual(g.tangent[1], dt);
  result.flipped = g.flipped;
  result.hint_owner = g.hint_owner;
  result.hint = dual(g.hint, dhint);
  result.hint_length = norm(across(result.hint, result.normal));
  return result;
}

// Motions of both geoms if geom `side` makes unit motion k about a point, as motions about another
// point at offset r from it.
struct UnitMotions {
  Motion of[2];
};
UnitMotions unit_motions(int side, int k, Vec3 r) {
  UnitMotions result{};
  result.of[side] = about(unit_motion(k), r);
  return result;
}

// Second derivatives of a contact of perturbed geoms, which turn with the frame of the first
// contact of the pair.                                                                    (CON-24)
ContactCurvature curve_perturbed(const ModelView& m, const DataView& d, const ContactGeometry& g,
                                 const ContactCotangent& bar) {
  const ContactGeometry& first = *g.first;
  PerturbedPoses poses(d, g.geom);
  const DataView perturbed = poses.turn(g.geom, first.position, g.perturbation);
  const ContactSource source{m, perturbed, {g.geom[0], g.geom[1]}};
  const ContactSource first_source{m, d, {g.geom[0], g.geom[1]}};
  ContactCurvature result;
  for (int side = 0; side < 2; side++) {
    // the two contacts after the motions of one geom
    UnitRates units, first_units;
    Vec3 turn[kUnits], first_turn[kUnits];
    for (int k = 0; k < kUnits; k++) {
      const UnitMotions here = unit_motions(side, k, {0, 0, 0});
      const UnitMotions there = unit_motions(side, k, first.position - g.position);
      Motion moved[2];
      first_turn[k] = vary_first(g, here.of, moved).turn;
      turn[k] = vary(g, here.of).turn;
      for (int s = 0; s < 2; s++) {
        units.motion[s][k] = moved[s], first_units.motion[s][k] = there.of[s];
      }
    }
    set_rates(g, units);
    set_rates(first, first_units);
    const DualGeometry moved_first = move_contact(first, first_source, first_units, first_turn);
    DualGeometry moved = move_contact(g, source, units, turn);
    const DualMotion turning{dual(Vec3{0, 0, 0}, first_turn), {}};
    moved.perturbation = turned_map(turning, g.perturbation);
    moved.first = &moved_first;

    // their first derivatives
    const DualVec3 shift = moved.position - DualVec3(g.position);
    for (int column = 0; column < kColumns; column++) {
      DualMotion motion[2] = {};
      motion[column / kUnits] = about(DualMotion(unit_motion(column % kUnits)), shift);
      const ContactVariationT<ContactDual> v = vary(moved, motion);
      for (int j = 0; j < kUnits; j++) {
        result.m[kUnits * side + j][column] = bar.distance * v.distance.d[j] +
                                              dot(bar.position, derivative(v.position, j)) +
                                              dot(bar.turn, derivative(v.turn, j));
      }
    }
  }
  return result;
}

}  // namespace

ContactCurvature second_order(const ModelView& m, const DataView& d, const ContactGeometry& g,
                              const ContactCotangent& bar, int moves) {
  const ContactSource source{m, d, {g.geom[0], g.geom[1]}};
  const MovedColumns columns(moves);
  ContactCurvature result =
      g.first ? curve_perturbed(m, d, g, bar) : curve_relative(g, source, bar, columns);
  symmetrize(columns, result);
  return result;
}

}  // namespace mujacobian
