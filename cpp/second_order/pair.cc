#include "second_order/pair.h"

#include <cstring>

#include "layout/topology.h"
#include "linear/combine.h"

namespace mujacobian {
namespace {

struct LaneVec3 {
  Lanes x, y, z;
};
struct LanePair6 {
  LaneVec3 ang, lin;
};
LaneVec3 load3(const double* p, int stride) {
  return {load_lanes(p), load_lanes(p + stride), load_lanes(p + 2 * stride)};
}
LanePair6 load6(const double* p, int stride) {
  return {load3(p, stride), load3(p + 3 * stride, stride)};
}
void store6(double* p, int stride, const LanePair6& v) {
  const Lanes x[6] = {v.ang.x, v.ang.y, v.ang.z, v.lin.x, v.lin.y, v.lin.z};
  for (int i = 0; i < 6; i++) store_lanes(p + i * stride, x[i]);
}
LaneVec3 operator+(const LaneVec3& a, const LaneVec3& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
LanePair6 operator+(const LanePair6& a, const LanePair6& b) {
  return {a.ang + b.ang, a.lin + b.lin};
}
LaneVec3 cross(const LaneVec3& a, Vec3 b) {
  const Lanes x = broadcast(b.x), y = broadcast(b.y), z = broadcast(b.z);
  return {a.y * z - a.z * y, a.z * x - a.x * z, a.x * y - a.y * x};
}
// The cross products of motions with a motion, and with a force.
LanePair6 cross(const LanePair6& a, Motion b) {
  return {cross(a.ang, b.ang), cross(a.ang, b.lin) + cross(a.lin, b.ang)};
}
LanePair6 cross(const LanePair6& a, Force b) {
  return {cross(a.ang, b.ang) + cross(a.lin, b.lin), cross(a.ang, b.lin)};
}
Lanes dot(const LaneVec3& a, Vec3 b) {
  return a.x * broadcast(b.x) + a.y * broadcast(b.y) + a.z * broadcast(b.z);
}

bool moves(const ContactDofs& c, int side) { return c.all_moves >> side & 1; }
const double* axes(const ContactDofs& c, int side) { return c.axes + 6 * side * c.stride; }

// Writes the forces N of all dofs, (6, n) by component, whose products with the axes of ancestors
// are second derivatives of the motions of the bodies.                                    (HES-29)
void carried_forces(const ContactDofs& c, const PairMotion* motions, int count,
                    const double gradient[kPairColumns], double* out) {
  for (int k = 0; k < c.stride; k += kLanes) {
    LanePair6 sum{};
    for (int n = 0; n < count; n++) {
      sum = sum + cross(load6(motions[n].moved + k, c.stride), motions[n].wrench);
    }
    for (int side = 0; side < 2; side++) {
      if (!moves(c, side)) continue;
      const double* g = gradient + 6 * side;
      const Force half{0.5 * Vec3{g[0], g[1], g[2]}, 0.5 * Vec3{g[3], g[4], g[5]}};
      sum = sum + cross(load6(axes(c, side) + k, c.stride), half);
    }
    store6(out + k, c.stride, sum);
  }
}

// Adds the products of these forces with the axes of the dofs and their ancestors.
void add_ancestors(const ModelView& m, const ContactDofs& c, const double* carried, double* out,
                   double* products) {
  for (int side = 0; side < 2; side++) {
    if (!moves(c, side)) continue;
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

}  // namespace

void move_pair(const ContactDofs& c, PairMotion& p) {
  for (int k = 0; k < c.stride; k += kLanes) {
    LanePair6 sum = load6(p.rate + k, c.stride);
    for (int side = 0; side < 2; side++) {
      if (!moves(c, side)) continue;
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
    if (!moves(c, side)) continue;
    std::memset(with, 0, 6 * c.stride * sizeof(double));
    for (int other = 0; other < 2; other++) {
      if (!moves(c, other)) continue;
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
    const LanePair6 moved = load6(p.moved + k, c.stride);
    const LaneVec3 shift = load3(position + k, c.stride), rotation = load3(turn + k, c.stride);
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
