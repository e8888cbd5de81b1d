#include "contact/wrench.h"

#include <algorithm>

#include "spatial/lane_vector.h"

namespace mujacobian {
namespace {

// Computes the change of `wrench` for rotations `turn` and shifts `shift`, all by component, over
// `columns` in whole lanes.
void move_wrench(Force wrench, const double* turn, const double* shift, int columns, double* out) {
  for (int k = 0; k < columns; k += kLanes) {
    const LaneVec3 t = load_vectors(turn + k, columns), s = load_vectors(shift + k, columns);
    store_vectors(out + k, columns, cross(t, wrench.ang) + cross(s, wrench.lin));
    store_vectors(out + 3 * columns + k, columns, cross(t, wrench.lin));
  }
}

// Adds columns k .. k+3 of some rows of add_rows, for the bodies that one of these dofs moves.
template <int rows>
void add_tile(const ContactDofs& c, const double (*coefficients)[ContactMap::kColumns], int k,
              double* out) {
  int moves = 0;
  for (int i = k; i < k + kLanes && i < c.n; i++) moves |= c.moves[i];
  Lanes sum[rows];
  for (int r = 0; r < rows; r++) sum[r] = load_lanes(out + r * c.stride + k);
  for (int side = 0; side < 2; side++) {
    if (!(moves >> side & 1)) continue;
    for (int i = 6 * side; i < 6 * side + 6; i++) {
      const Lanes axis = load_lanes(c.axes + i * c.stride + k);
      for (int r = 0; r < rows; r++) sum[r] += broadcast(coefficients[r][i]) * axis;
    }
  }
  for (int r = 0; r < rows; r++) store_lanes(out + r * c.stride + k, sum[r]);
}

// Returns the products of a motion with four wrenches, which are stored by component.
Lanes project(Motion axis, const double* wrenches, int stride) {
  double a[6];
  store_motion(a, axis);
  Lanes sum{};
  for (int c = 0; c < 6; c++) sum += broadcast(a[c]) * load_lanes(wrenches + c * stride);
  return sum;
}

// Returns the dofs that move one or both bodies, without their axes.
ContactDofs merge_dofs(const ModelView& m, int body0, int body1, Arena& arena) {
  ContactDofs c{};
  c.body[0] = body0, c.body[1] = body1;
  int* dofs = arena.take<int>(m.nv);
  unsigned char* moves = arena.take<unsigned char>(m.nv);
  c.n = merge_chains(m, body0, body1, dofs, moves);
  c.stride = round_to_lanes(c.n);
  for (int k = 0; k < c.n; k++) c.all_moves |= moves[k];
  c.dofs = dofs, c.moves = moves;
  return c;
}

// Returns ones for the first `count` of four numbers, zeros for the others.
Lanes first_lanes(int count) {
  static constexpr double kOnes[2 * kLanes] = {1, 1, 1, 1, 0, 0, 0, 0};
  return load_lanes(kOnes + kLanes - std::clamp(count, 0, kLanes));
}

}  // namespace

ContactDofs contact_dofs(const ModelView& m, const DataView& d, const ContactView& contact,
                         Arena& arena, const ContactDofs* before) {
  const int *geom = contact.geom.v, *body = m.geom_bodyid;
  return pair_dofs(m, d, body[geom[0]], body[geom[1]], load3(contact.pos.v), arena, before);
}

ContactDofs pair_dofs(const ModelView& m, const DataView& d, int body0, int body1, Vec3 p,
                      Arena& arena, const ContactDofs* before) {
  // the dofs
  ContactDofs c;
  if (before && before->body[0] == body0 && before->body[1] == body1) {
    c = *before;
  } else {
    c = merge_dofs(m, body0, body1, arena);
  }

  // their axes
  for (int side = 0; side < 2; side++) {
    c.offset[side] = p - load3(d.subtree_com + 3 * m.body_rootid[c.body[side]]);
  }
  Motion* axis = arena.take<Motion>(c.n);
  double* axes = arena.zeros<double>(12 * c.stride);
  for (int k = 0; k < c.n; k++) {
    // bodies moved by one dof are in one tree and have one reference point
    axis[k] = about(load_motion(d.cdof + 6 * c.dofs[k]), c.offset[c.moves[k] >> 1]);
    double component[6];
    store_motion(component, axis[k]);
    for (int side = 0; side < 2; side++) {
      if (!(c.moves[k] >> side & 1)) continue;
      for (int i = 0; i < 6; i++) axes[(6 * side + i) * c.stride + k] = component[i];
    }
  }
  c.axis = axis, c.axes = axes;
  return c;
}

namespace {

// The motions of the two bodies with dof k.
struct BodyMotions {
  Motion of[2];
};
BodyMotions body_motions(const ContactDofs& c, int k) {
  BodyMotions moved{};
  for (int side = 0; side < 2; side++) {
    if (c.moves[k] >> side & 1) moved.of[side] = c.axis[k];
  }
  return moved;
}

}  // namespace

ContactVariation vary(const ContactGeometry& geometry, const ContactDofs& c, int k) {
  return vary(geometry, body_motions(c, k).of);
}

ContactDofs select_dofs(const ContactGeometry& geometry, const ContactDofs& c, bool twin,
                        Arena& arena) {
  ContactDofs selected = c;
  double* axes = arena.zeros<double>(12 * c.stride);
  for (int k = 0; k < c.n; k++) {
    if (takes_twin(geometry, body_motions(c, k).of) != twin) continue;
    for (int i = 0; i < 12; i++) axes[i * c.stride + k] = c.axes[i * c.stride + k];
  }
  selected.axes = axes;
  return selected;
}

void add_rows(const ContactDofs& c, const double (*coefficients)[ContactMap::kColumns], int rows,
              double* out) {
  for (int k = 0; k < c.stride; k += kLanes) {
    int r = 0;
    for (; r + 3 <= rows; r += 3) add_tile<3>(c, coefficients + r, k, out + r * c.stride);
    for (; r < rows; r++) add_tile<1>(c, coefficients + r, k, out + r * c.stride);
  }
}

void turn_wrench(const ModelView& m, const ContactDofs& c, const ContactMap& map, Force wrench,
                 double* out, Arena& arena) {
  // by component, (6, n): the change of the wrench, and that of a wrench carried by each body
  const int size = 6 * c.stride;
  const Arena::Mark mark = arena.mark();
  double change[6][ContactMap::kColumns];
  move_wrench(wrench, map.turn[0], map.position[0], ContactMap::kColumns, change[0]);
  double* turned = arena.zeros<double>(size);
  add_rows(c, change, 6, turned);
  double* carried = arena.take<double>(2 * size);
  for (int side = 0; side < 2; side++) {
    if (!(c.all_moves >> side & 1)) continue;
    const double* axes = c.axes + side * size;
    move_wrench(wrench, axes, axes + size / 2, c.stride, carried + side * size);
  }

  // rows of dofs that move one body; where a column carries that body and the row's axis, only what
  // the wrench changes beyond being carried along counts
  for (int j = 0; j < c.n; j++) {
    if (c.moves[j] == 3) continue;
    int carrying = j + 1;  // columns that move the row's axis come first
    while (carrying < c.n && moves_axis(m, c.dofs[carrying], c.dofs[j])) carrying++;
    const Motion axis = c.sign(j) * c.axis[j];
    const double* with = carried + (c.moves[j] >> 1) * size;
    double* row = out + j * c.stride;
    for (int k = 0; k < c.stride; k += kLanes) {
      Lanes sum = load_lanes(row + k) + project(axis, turned + k, c.stride);
      if (k < carrying) sum -= first_lanes(carrying - k) * project(axis, with + k, c.stride);
      store_lanes(row + k, sum);
    }
  }
  arena.rewind(mark);
}

}  // namespace mujacobian
