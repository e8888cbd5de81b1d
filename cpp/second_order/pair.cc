#include "second_order/pair.h"

#include "contact/curvature.h"
#include "layout/topology.h"
#include "linear/combine.h"

namespace mujacobian {
namespace {

bool moves(const ContactDofs& c, int k, int side) { return c.moves[k] >> side & 1; }

// Adds scale times a row with a column per motion z.
void add_row(double scale, const double row[kPairColumns], MovedColumns columns,
             double sum[kPairColumns]) {
  for (int i = columns.first; i < columns.last; i++) sum[i] += scale * row[i];
}

// Returns the force N of dof k, whose product with the axis of an ancestor is the second derivative
// of the motions of the bodies.                                                           (HES-29)
Force carried_force(const ContactDofs& c, int k, const PairMotion* motions, int count,
                    const double gradient[kPairColumns]) {
  Force sum{};
  for (int side = 0; side < 2; side++) {
    if (!moves(c, k, side)) continue;
    for (int i = 0; i < count; i++) {
      const PairMotion& p = motions[i];
      sum += cross(cross(c.axis[k], p.y[side]) + p.rate[k], p.wrench[side]);
    }
    const double* g = gradient + 6 * side;
    sum += 0.5 * cross(c.axis[k], Force{load3(g), load3(g + 3)});
  }
  return sum;
}

}  // namespace

void add_pair_hessian(const ModelView& m, const ContactDofs& c, const PairMotion* motions,
                      int count, const PoseCurvature& pose, double* out, Arena& arena) {
  const Arena::Mark mark = arena.mark();
  const MovedColumns columns(c.all_moves);
  double* ancestors = arena.take<double>(c.stride);
  for (int k = 0; k < c.n; k++) {
    // what multiplies the motions of the bodies with the other dofs
    double with[kPairColumns] = {};
    for (int side = 0; side < 2; side++) {
      if (!moves(c, k, side)) continue;
      double axis[6], rate[6];
      store_motion(axis, c.axis[k]);
      for (int i = 0; i < 6; i++) add_row(axis[i], pose.half[6 * side + i], columns, with);
      for (int n = 0; n < count; n++) {
        store_motion(rate, motions[n].rate[k]);
        for (int i = 0; i < 6; i++) add_row(rate[i], motions[n].change[side][i], columns, with);
      }
    }
    double* row = out + k * c.stride;
    for (int side = 0; side < 2; side++) {
      if (!(c.all_moves >> side & 1)) continue;
      combine_rows<true>(row, 1, {with + 6 * side, 0, 1}, c.axes + 6 * side * c.stride, 6,
                         c.stride);
    }

    // dof k and its ancestors; rotations of one joint: the mean of both orders            (HES-13)
    double carried[6];
    const Force force = carried_force(c, k, motions, count, pose.gradient);
    store3(carried, force.ang), store3(carried + 3, force.lin);
    const int side = moves(c, k, 0) ? 0 : 1;
    combine_rows<false>(ancestors, 1, {carried, 0, 1}, c.axes + 6 * side * c.stride, 6, c.stride);
    for (int l = 0; l < k; l++) {
      row[l] += (moves_axis(m, c.dofs[k], c.dofs[l]) ? 0.5 : 1) * ancestors[l];
    }
    row[k] += 0.5 * ancestors[k];
    for (int l = k + 1; l < c.n && moves_axis(m, c.dofs[l], c.dofs[k]); l++) {
      row[l] += 0.5 * ancestors[l];
    }
  }
  arena.rewind(mark);
}

}  // namespace mujacobian
