#include "second_order/pair.h"

#include <cstring>

#include "layout/topology.h"
#include "linear/combine.h"
#include "spatial/lane_vector.h"

namespace mujacobian {
namespace {

// Four motions or forces side by side.
struct LaneVec6 {
  LaneVec3 ang, lin;
};
LaneVec6 load6(const double* p, int stride) {
  return {load_vectors(p, stride), load_vectors(p + 3 * stride, stride)};
}
void store6(double* p, int stride, const LaneVec6& v) {
  store_vectors(p, stride, v.ang), store_vectors(p + 3 * stride, stride, v.lin);
}
LaneVec6 operator+(const LaneVec6& a, const LaneVec6& b) { return {a.ang + b.ang, a.lin + b.lin}; }
// The cross products of motions with a motion, and with a force.
LaneVec6 cross(const LaneVec6& a, Motion b) {
  return {cross(a.ang, b.ang), cross(a.ang, b.lin) + cross(a.lin, b.ang)};
}
LaneVec6 cross(const LaneVec6& a, Force b) {
  return {cross(a.ang, b.ang) + cross(a.lin, b.lin), cross(a.ang, b.lin)};
}

bool moves_side(const ContactDofs& c, int side) { return c.all_moves >> side & 1; }
const double* axes(const ContactDofs& c, int side) { return c.axes + 6 * side * c.stride; }

// Writes the forces N of all dofs, (6, n) by component, whose products with the axes of ancestors
// are second derivatives of the motions of the bodies.                                    (HES-29)
void carried_forces(const ContactDofs& c, const PairMotion* motions, int count,
                    const double gradient[kPairColumns], double* out) {
  for (int k = 0; k < c.stride; k += kLanes) {
    LaneVec6 sum{};
    for (int n = 0; n < count; n++) {
      sum = sum + cross(load6(motions[n].moved + k, c.stride), motions[n].wrench);
    }
    for (int side = 0; side < 2; side++) {
      if (!moves_side(c, side)) continue;
      const double* g = gradient + 6 * side;
      const Force half = 0.5 * Force{load3(g), load3(g + 3)};
      sum = sum + cross(load6(axes(c, side) + k, c.stride), half);
    }
    store6(out + k, c.stride, sum);
  }
}

// Adds the products of these forces with the axes of the dofs and their ancestors.
void add_ancestors(const ModelView& m, const ContactDofs& c, const double* carried, double* out,
                   double* products) {
  for (int side = 0; side < 2; side++) {
    if (!moves_side(c, side)) continue;
    combine_rows<false>(products, c.n, {carried, 1, c.stride}, axes(c, side), 6, c.stride);
    for (int k = 0; k < c.n; k++) {
      // a dof that moves both bodies is counted once
      if (!(c.moves[k] >> side & 1) || (side == 1 && c.moves[k] == 3)) continue;
      const double* product = products + k * c.stride;
      double* row = out + k * c.stride;
      // rotations of one joint: the mean of both orders                                   (HES-13)
      int first = k, last = k + 1;
      while (first > 0 && moves_axis(m, c.dofs[k], c.dofs[first - 1])) first--;
      while (last < c.n && moves_axis(m, c.dofs[last], c.dofs[k])) last++;
      for (int l = 0; l < first; l++) row[l] += product[l];
      for (int l = first; l < last; l++) row[l] += 0.5 * product[l];
    }
  }
}

// Column k of a map, as the motion of the contact.
ContactVariation column(const ContactMap& map, int k) {
  return {map.distance[k],
          {map.position[0][k], map.position[1][k], map.position[2][k]},
          {map.turn[0][k], map.turn[1][k], map.turn[2][k]}};
}

// a b^T - (a . b) 1, the matrix of (x -> (x x a) x b).
Mat3 turn_twice(Vec3 a, Vec3 b) { return outer(a, b) + (-dot(a, b)) * identity3(); }

}  // namespace

void ContactFunction::add_turned(Vec3 x, Vec3 y) {
  slope.turn += cross(x, y);
  turns = turns + 0.5 * turn_twice(x, y);
}

void fix_wrench(const ContactMap& map, int moves, Force wrench, PairMotion& p) {
  p.wrench = wrench;
  const MovedColumns columns(moves);
  for (int k = columns.first; k < columns.last; k++) {
    const Force moved = moved_wrench(wrench, column(map, k));
    double x[6];
    store3(x, moved.ang), store3(x + 3, moved.lin);
    for (int i = 0; i < 6; i++) p.change[i][k] = x[i];
  }
}

void set_rate(const ContactDofs& c, int k, Motion rate, PairMotion& p) {
  if (c.moves[k] == 3) return;
  double x[6];
  store_motion(x, c.sign(k) * about(rate, c.offset[c.moves[k] >> 1]));
  for (int i = 0; i < 6; i++) p.rate[i * c.stride + k] = x[i];
}

const char* curvature_refusal(const ContactGeometry& geometry) {
  if (geometry.twin) {
    return "second derivatives of boxes with parallel faces are not supported: the motion chooses "
           "the reference face";
  }
  return norm(geometry.line) > 0
             ? "second derivatives of geoms that touch along a line are not supported"
             : nullptr;
}

PoseCurvature power_curvature(const ModelView& m, const DataView& d,
                              const ContactGeometry& geometry, const ContactMap& map, int moves,
                              const PairMotion* motions, int count, const ContactFunction& f) {
  // cotangents of the contact, and the curvature of the wrenches with its position and frame
  ContactCotangent bar = f.slope;
  Mat3 turns = f.turns, shifts{};
  for (int n = 0; n < count; n++) {
    const Motion y = motions[n].relative();
    const Force p = motions[n].wrench;
    bar.position += cross(p.lin, y.ang);
    bar.turn += cross(p.ang, y.ang) + cross(p.lin, y.lin);
    turns = turns + 0.5 * (turn_twice(p.ang, y.ang) + turn_twice(p.lin, y.lin));
    shifts = shifts + turn_twice(p.lin, y.ang);
  }

  PoseCurvature pose;
  const MovedColumns columns(moves);
  const ContactCurvature curvature = second_order(m, d, geometry, bar, moves);
  for (int k = columns.first; k < columns.last; k++) {
    const ContactVariation v = column(map, k);
    pose.gradient[k] =
        bar.distance * v.distance + dot(bar.position, v.position) + dot(bar.turn, v.turn);
    // the motion of the contact, and half of its curvature
    const Vec3 turn = turns * v.turn + v.distance * f.across, shift = shifts * v.turn;
    const double nearer = 0.5 * f.distances * v.distance;
    double* row = pose.half[k];
    for (int j = columns.first; j < columns.last; j++) {
      const ContactVariation u = column(map, j);
      row[j] = 0.5 * curvature.m[k][j] + nearer * u.distance + dot(u.turn, turn) +
               dot(u.position, shift);
    }
    // the bodies carry their motions along
    for (int side = 0; side < 2; side++) {
      if (!columns.has(side)) continue;
      Force sum{};
      for (int n = 0; n < count; n++) {
        const PairMotion& p = motions[n];
        const double(*x)[kPairColumns] = p.change;
        sum += cross((side ? 1 : -1) * p.y[side],
                     Force{{x[0][k], x[1][k], x[2][k]}, {x[3][k], x[4][k], x[5][k]}});
      }
      const double carried[6] = {sum.ang.x, sum.ang.y, sum.ang.z, sum.lin.x, sum.lin.y, sum.lin.z};
      for (int i = 0; i < 6; i++) row[6 * side + i] += carried[i];
    }
  }
  return pose;
}

void move_pair(const ContactDofs& c, PairMotion& p) {
  for (int k = 0; k < c.stride; k += kLanes) {
    LaneVec6 sum = load6(p.rate + k, c.stride);
    for (int side = 0; side < 2; side++) {
      if (!moves_side(c, side)) continue;
      sum = sum + cross(load6(axes(c, side) + k, c.stride), (side ? 1 : -1) * p.y[side]);
    }
    store6(p.moved + k, c.stride, sum);
  }
}

void add_pair_hessian(const ModelView& m, const ContactDofs& c, const PairMotion* motions,
                      int count, const PoseCurvature& pose, double* out, Arena& arena) {
  const Arena::Mark mark = arena.mark();
  // numbers of each dof that multiply the motions of a body
  double* with = arena.take<double>(6 * c.stride);
  for (int side = 0; side < 2; side++) {
    if (!moves_side(c, side)) continue;
    std::memset(with, 0, 6 * c.stride * sizeof(double));
    for (int other = 0; other < 2; other++) {
      if (!moves_side(c, other)) continue;
      combine_rows<true>(with, 6, {pose.half[6 * other] + 6 * side, 1, kPairColumns},
                         axes(c, other), 6, c.stride);
    }
    for (int n = 0; n < count; n++) {
      combine_rows<true>(with, 6, {motions[n].change[0] + 6 * side, 1, kPairColumns},
                         motions[n].rate, 6, c.stride);
    }
    combine_rows<true>(out, c.n, {with, 1, c.stride}, axes(c, side), 6, c.stride);
  }

  // the forces that multiply the axes of ancestors
  carried_forces(c, motions, count, pose.gradient, with);
  add_ancestors(m, c, with, out, arena.take<double>(c.n * c.stride));
  arena.rewind(mark);
}

void add_pair_rows(const ContactDofs& c, const PairMotion& p, const double* position,
                   const double* turn, const Vec3* along, int count, int linear, double scale,
                   double* out) {
  const Motion y = -1.0 * p.relative();
  for (int k = 0; k < c.stride; k += kLanes) {
    const LaneVec6 moved = load6(p.moved + k, c.stride);
    const LaneVec3 shift = load_vectors(position + k, c.stride);
    const LaneVec3 rotation = load_vectors(turn + k, c.stride);
    const LaneVec3 lin = moved.lin + cross(shift, y.ang) + cross(rotation, y.lin);
    const LaneVec3 ang = moved.ang + cross(rotation, y.ang);
    for (int r = 0; r < count; r++) {
      double* at = out + r * c.stride + k;
      const Lanes change = dot(r < linear ? lin : ang, along[r]);
      store_lanes(at, load_lanes(at) + broadcast(scale) * change);
    }
  }
}

}  // namespace mujacobian
