#include "second_order/contact.h"

#include <algorithm>

#include "constraint/block_sum.h"
#include "constraint/contact.h"
#include "constraint/force_derivative.h"
#include "forces/passive.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "linear/dense.h"
#include "second_order/cone.h"
#include "second_order/impedance.h"
#include "second_order/pair.h"

namespace mujacobian {
namespace {

constexpr int kMaxMotions = 4;  // two kinds of rows, the virtual velocity, moving surfaces

// A contact with the numbers that do not depend on dofs.
struct ContactState {
  const Block& b;
  const BlockMotion& acc;
  const VirtualRows& virt;  // J mu
  ContactMotion moving;
  RowImpedance impedance;
  const RowShift* shift;    // null: none
  double rows[kMaxRows];    // J mu, with the weights of the shift
  double pulled[kMaxRows];  // H J mu, with that of the shift
  ContactMap map;

  // Returns the weight of a row x = J a - aref.
  double weight(int r) const { return pulled[r] + (shift ? shift->extra[r] : 0); }
};

// Throws Unsupported if the contact has no second derivative.
void require_curvature(const ModelView& m, const Block& b) {
  if (const char* reason = curvature_refusal(*b.geometry)) {
    throw Unsupported(row_name(m, b), reason);
  }
}

ContactState contact_state(const ModelView& m, const DataView& d, const Block& b,
                           const BlockMotion& acc, const VirtualRows& virt, const RowShift* shift) {
  require_curvature(m, b);
  const double gap = d.efc_pos[b.row] - d.efc_margin[b.row];
  ContactState s{b,
                 acc,
                 virt,
                 contact_motion(m, d, b, acc),
                 row_impedance(m, d, b, b.contact.solimp.v, gap),
                 shift,
                 {},
                 {},
                 vary_units(*b.geometry, b.chain->all_moves)};
  for (int r = 0; r < b.count; r++) {
    s.rows[r] = virt.rows[r] + (shift ? shift->along[r] : 0);
    s.pulled[r] = shift ? shift->pulled[r] : 0;
    for (int c = 0; c < b.count; c++) s.pulled[r] += b.hessian[r * b.count + c] * virt.rows[c];
  }
  return s;
}

// Returns the sum of -f times the weights of the forces f.
double shifted_power(const ContactState& s) {
  const Block& b = s.b;
  double power = s.shift ? s.shift->power : 0;
  for (int r = 0; r < b.count; r++) power -= s.virt.rows[r] * b.force[r];
  return power;
}

// Returns the wrench of the numbers x in rows first .. last-1 of a contact.
Force row_wrench(const Block& b, const double* x, int first, int last) {
  Force sum{};
  for (int r = first; r < last && r < b.count; r++) {
    (r < 3 ? sum.lin : sum.ang) += x[r] * contact_axis(*b.geometry, r);
  }
  return sum;
}

// Sets the wrench of a motion, which is fixed to the frame of the contact, and takes its arrays.
void set_wrench(const Block& b, const ContactMap& map, Force wrench, PairMotion& p, Arena& arena) {
  fix_wrench(map, b.chain->all_moves, wrench, p);
  p.rate = arena.zeros<double>(6 * b.stride), p.moved = arena.take<double>(6 * b.stride);
}

// Sets the rates of the axes of the dofs: `rate`, and `damping` times cdof_dot.
void set_rates(const DataView& d, const Block& b, const Motion* rate, double damping,
               PairMotion& p) {
  for (int k = 0; k < b.n; k++) {
    Motion sum = rate[b.dofs[k]];
    if (damping != 0) sum = sum + damping * load_motion(d.cdof_dot + 6 * b.dofs[k]);
    set_rate(*b.chain, k, sum, p);
  }
}

// Sets a motion of both bodies with a wrench, as a fixed joint motion causes it.
void set_virtual(const DataView& d, const Block& b, const ContactMap& map,
                 const VirtualMotion& motion, Force wrench, PairMotion& p, Arena& arena) {
  const ContactDofs& c = *b.chain;
  for (int side = 0; side < 2; side++) {
    p.y[side] = about(motion.moved[c.body[side]], c.offset[side]);
  }
  set_wrench(b, map, wrench, p, arena);
  set_rates(d, b, motion.rate, 0, p);
}

// The motions whose powers are differentiated: those of each kind of row, the virtual velocity, and
// moving surfaces.
struct ContactMotions {
  PairMotion motion[kMaxMotions];
  int count;
  int virt;     // index of the virtual velocity, after the kinds of rows, or -1
  int surface;  // index of the surfaces, or -1
};

ContactMotions contact_motions(const ModelView& m, const DataView& d, const ContactState& s,
                               Arena& arena) {
  const Block& b = s.b;
  const ContactDofs& c = *b.chain;
  ContactMotions all;
  all.count = 0, all.virt = all.surface = -1;

  // y = a + B v with the wrench H J mu
  const int kinds = s.moving.kinds;
  double weight[kMaxRows];
  for (int r = 0; r < b.count; r++) weight[r] = s.weight(r);
  for (int kind = 0; kind < kinds; kind++) {
    PairMotion& p = all.motion[all.count++];
    for (int side = 0; side < 2; side++) p.y[side] = s.moving.y[kind][side];
    set_wrench(b, s.map, row_wrench(b, weight, kind, kind == kinds - 1 ? b.count : 1), p, arena);
    set_rates(d, b, s.acc.moved_rate, s.moving.damping[kind], p);
  }

  // the virtual velocity with the opposite of the force
  if (const VirtualMotion* virt = s.virt.motion) {
    all.virt = all.count;
    set_virtual(d, b, s.map, *virt, -1.0 * s.moving.wrench, all.motion[all.count++], arena);
  }

  // surfaces are bodies that turn with their geoms; they act in the rows of t_1, t_2 and spin
  const SurfaceVelocity surface = surface_velocity(m, d, b);
  if (surface.any && b.count > 1) {
    all.surface = all.count;
    PairMotion& q = all.motion[all.count++];
    for (int side = 0; side < 2; side++) {
      const Motion motion{surface.ang[side], surface.lin[side]};
      q.y[side] = about(motion, surface.arm[side]);
    }
    set_wrench(b, s.map, s.moving.damping[1] * row_wrench(b, weight, 1, 4), q, arena);
  }
  for (int n = 0; n < all.count; n++) move_pair(c, all.motion[n]);
  return all;
}

// Returns the second derivative with respect to the poses of both geoms.                  (HES-32)
PoseCurvature pose_curvature(const ModelView& m, const DataView& d, const ContactState& s,
                             const ContactMotions& motions) {
  // the distance acts through the spring, the adhesion and D
  const Block& b = s.b;
  const double power = shifted_power(s);
  const double *spring = s.impedance.spring, *scale = s.impedance.scale;
  const double adhesive = adhesive_reference(d, b);
  ContactFunction f{};
  f.slope.distance = s.pulled[0] * (spring[1] + adhesive * scale[1]) + power * scale[1];
  f.distances = s.pulled[0] * (spring[2] + adhesive * (scale[2] - 2 * scale[1] * scale[1])) +
                power * scale[2];
  if (!s.virt.motion) f.add_turned(-s.moving.wrench.lin, s.virt.fixed);
  return power_curvature(m, d, *b.geometry, s.map, b.chain->all_moves, motions.motion,
                         motions.count, f);
}

// Derivatives of the rows of a contact with respect to q, by dof: (count, n) and (n).
struct RowSlopes {
  double *x, *virt;  // of J a - aref and J mu
  double* distance;
};

RowSlopes row_slopes(const ContactState& s, const ContactMotions& motions, Arena& arena) {
  const Block& b = s.b;
  const ContactDofs& c = *b.chain;
  const int size = b.count * b.stride;
  RowSlopes r{arena.zeros<double>(size), arena.zeros<double>(size), nullptr};
  // the motion of the contact with each dof: distance, position, turn
  double* moved = arena.zeros<double>(7 * b.stride);
  add_rows(c, &s.map.distance, 1, moved);
  add_rows(c, s.map.position, 3, moved + b.stride);
  add_rows(c, s.map.turn, 3, moved + 4 * b.stride);
  r.distance = moved;
  // the rows of the motions in the frame of the contact
  Vec3 axes[kMaxRows];
  for (int row = 0; row < b.count; row++) axes[row] = contact_axis(*b.geometry, row);
  auto add = [&](const PairMotion& p, double scale, int first, int last, double* rows) {
    add_pair_rows(c, p, moved + b.stride, moved + 4 * b.stride, axes + first, last - first,
                  3 - first, scale, rows + first * b.stride);
  };
  const int kinds = s.moving.kinds;
  for (int kind = 0; kind < kinds; kind++) {
    add(motions.motion[kind], 1, kind, kind == kinds - 1 ? b.count : 1, r.x);
  }
  if (motions.virt >= 0) {
    add(motions.motion[motions.virt], 1, 0, b.count, r.virt);
  } else {
    // the changes of the axes, times the fixed velocity
    for (int row = 0; row < std::min(b.count, 3); row++) {
      double along[3];
      store3(along, cross(axes[row], s.virt.fixed));
      combine_rows<true>(r.virt + row * b.stride, 1, {along, 0, 1}, moved + 4 * b.stride, 3,
                         b.stride);
    }
  }
  if (motions.surface >= 0) {
    add(motions.motion[motions.surface], s.moving.damping[1], 1, std::min(b.count, 4), r.x);
  }
  combine_rows<true>(r.x, b.count, {s.moving.slope, 1, 0}, r.distance, 1, b.stride);
  return r;
}

// The sums of matrices (n, n) over contacts with the same dofs.
struct ContactSums {
  double *q, *v, *acc;  // half of the derivatives with respect to q twice; to v and q; to a and q
};
constexpr int kSums = 3;

ContactSums sums_at(const Block& b, double* sum) {
  const std::size_t size = matrix_size(b);
  return {sum, sum + size, sum + 2 * size};
}

// Adds the terms of first derivatives of the rows, and those of velocities and accelerations, which
// multiply the rows themselves.                                                           (HES-33)
void add_rows_hessian(const ModelView& m, const ContactState& s, const ContactMotions& motions,
                      const RowSlopes& slopes, const ContactSums& sums, Arena& arena) {
  const Block& b = s.b;
  const int size = b.count * b.stride;
  const double slope = s.impedance.scale[1];
  double minus_force[kMaxRows];
  for (int r = 0; r < b.count; r++) minus_force[r] = -b.force[r];

  // change of H J mu D and of the power, at fixed x
  double* pulled = arena.take<double>(size);
  double* power = arena.take<double>(b.stride);
  multiply_hessian(b, 1, slopes.virt, pulled);
  combine_rows<true>(pulled, b.count, {s.pulled, 1, 0, slope}, slopes.distance, 1, b.stride);
  combine_rows<false>(power, 1, {minus_force, 0, 1, slope}, slopes.virt, b.count, b.stride);
  combine_rows<true>(sums.q, b.n, {pulled, 1, b.stride}, slopes.x, b.count, b.stride);
  combine_rows<true>(sums.q, b.n, {power, 1, 0}, slopes.distance, 1, b.stride);

  // d(J^T H J mu)/dq, for each kind of row
  const int kinds = s.moving.kinds;
  double* turned = arena.take<double>(matrix_size(b));
  for (int kind = 0; kind < kinds; kind++) {
    std::memset(turned, 0, matrix_size(b) * sizeof(double));
    const int count = kind == kinds - 1 ? b.count - kind : 1;
    combine_rows<true>(turned, b.n, {b.J + kind * b.stride, 1, b.stride}, pulled + kind * b.stride,
                       count, b.stride);
    turn_wrench(m, *b.chain, s.map, motions.motion[kind].wrench, turned, arena);
    for (std::size_t i = 0; i < matrix_size(b); i++) {
      sums.acc[i] += turned[i], sums.v[i] += s.moving.damping[kind] * turned[i];
    }
  }
}

// Puts a contact that slides on its elliptic cone in front of the list.
void push_sliding(const DataView& d, const ContactState& s, const RowSlopes& slopes,
                  const SlidingRows*& rows, Arena& arena) {
  const Block& b = s.b;
  if (b.type != constraint::kContactElliptic) return;
  double x[kMaxRows];
  for (int r = 0; r < b.count; r++) {
    x[r] = -d.efc_aref[b.row + r];
    for (int k = 0; k < b.n; k++) x[r] += b.J[r * b.stride + k] * s.acc.acc[b.dofs[k]];
  }
  const ConePoint p = cone_point(d, b, x);
  if (p.zone != ConePoint::kSliding) return;
  SlidingRows& sliding = *arena.take<SlidingRows>(1);
  double* v = arena.take<double>(b.count * b.stride);
  for (int r = 0; r < b.count; r++) {
    for (int k = 0; k < b.stride; k++) {
      v[r * b.stride + k] = s.moving.damping[r > 0] * b.J[r * b.stride + k];
    }
  }
  sliding.block = &b, sliding.q = slopes.x, sliding.v = v;
  cone_third_derivative(b, p, s.rows, sliding.T);
  sliding.next = rows;
  rows = &sliding;
}

bool has_contacts(const Blocks& blocks) {
  for (int k = 0; k < blocks.count; k++) {
    if (blocks.block[k].geometry && blocks.block[k].active) return true;
  }
  return false;
}

// Adds the sums of contacts with the dofs of b to the form.
void scatter(const Block& b, const ContactSums& sums, const QuadraticForm& form) {
  for (int i = 0; i < b.n; i++) {
    double *q = form.q(b.dofs[i]), *v = form.v(b.dofs[i]), *acc = form.mixed[b.dofs[i]];
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(i) * b.stride;
    for (int k = 0; k < b.n; k++) {
      const int column = form.q_column(b.dofs[k]);
      q[column] += sums.q[row + k];
      v[column] += sums.v[row + k];
      acc[column] += sums.acc[row + k];
    }
  }
}

// Adds the second derivatives of one contact to the sums.
void add_contact(const ModelView& m, const DataView& d, const Block& b, const BlockMotion& acc,
                 const VirtualRows& virt, const RowShift* shift, const ContactSums& sums,
                 const SlidingRows*& sliding, Arena& arena) {
  const ContactState s = contact_state(m, d, b, acc, virt, shift);
  const ContactMotions motions = contact_motions(m, d, s, arena);
  const RowSlopes slopes = row_slopes(s, motions, arena);
  add_pair_hessian(m, *b.chain, motions.motion, motions.count, pose_curvature(m, d, s, motions),
                   sums.q, arena);
  add_rows_hessian(m, s, motions, slopes, sums, arena);
  push_sliding(d, s, slopes, sliding, arena);
}

}  // namespace

VirtualMotion virtual_motion(const ModelView& m, const DataView& d, const Blocks& blocks,
                             const double* y, Arena& arena) {
  const BlockMotion motion = block_motion(m, d, blocks, y, arena);
  return {motion.moved, motion.moved_rate};
}

void add_contact_hessians(const ModelView& m, const DataView& d, const Blocks& blocks,
                          const double* acc, const double* mu, const RowShift* shift,
                          const QuadraticForm& form, const SlidingRows*& sliding, Arena& arena) {
  if (!has_contacts(blocks)) return;
  const BlockMotion moving = block_motion(m, d, blocks, acc, arena);
  const VirtualMotion motion = virtual_motion(m, d, blocks, mu, arena);
  auto add = [&](const Block& b, double* sum) {
    if (!b.geometry) return;
    double rows[kMaxRows] = {};
    for (int r = 0; r < b.count; r++) {
      for (int k = 0; k < b.n; k++) rows[r] += b.J[r * b.stride + k] * mu[b.dofs[k]];
    }
    add_contact(m, d, b, moving, {rows, &motion}, shift ? shift + (&b - blocks.block) : nullptr,
                sums_at(b, sum), sliding, arena);
  };
  auto finish = [&](const Block& b, const double* sum) {
    if (b.geometry) scatter(b, sums_at(b, const_cast<double*>(sum)), form);
  };
  sum_by_dofs(blocks, kSums, arena.take<double>(kSums * largest_matrix(blocks)), add, finish);
}

void add_contact_hessian(const ModelView& m, const DataView& d, const Block& b,
                         const BlockMotion& acc, const VirtualRows& virt, const QuadraticForm& form,
                         const SlidingRows*& sliding, Arena& arena) {
  if (b.n == 0) return;
  const ContactSums sums = sums_at(b, arena.zeros<double>(kSums * matrix_size(b)));
  add_contact(m, d, b, acc, virt, nullptr, sums, sliding, arena);
  scatter(b, sums, form);
}

void add_contact_power(const ModelView& m, const DataView& d, const Blocks& blocks, const Block& b,
                       const double* weights, const double* y, const QuadraticForm& form,
                       Arena& arena) {
  require_curvature(m, b);
  const ContactDofs& c = *b.chain;
  const ContactMap map = vary_units(*b.geometry, c.all_moves);
  PairMotion p;
  set_virtual(d, b, map, virtual_motion(m, d, blocks, y, arena), row_wrench(b, weights, 0, b.count),
              p, arena);
  move_pair(c, p);
  double* half = arena.zeros<double>(matrix_size(b));
  add_pair_hessian(m, c, &p, 1, power_curvature(m, d, *b.geometry, map, c.all_moves, &p, 1, {}),
                   half, arena);
  for (int i = 0; i < b.n; i++)
    for (int k = 0; k < b.n; k++) {
      form.q(b.dofs[i])[form.q_column(b.dofs[k])] += half[i * b.stride + k];
    }
}

void add_sliding_rows(const SlidingRows* rows, const DofRows& acceleration, int c, double* H,
                      Arena& arena) {
  // the total derivatives X, and T X
  const Component& part = acceleration.components[c];
  int count = 0;
  for (const SlidingRows* contact = rows; contact; contact = contact->next) {
    const Block& b = *contact->block;
    if (acceleration.component[b.dofs[0]] == c) count += b.count;
  }
  if (count == 0) return;
  const std::size_t size = static_cast<std::size_t>(count) * part.stride;
  double *X = arena.zeros<double>(size), *TX = arena.take<double>(size);
  int first = 0;
  for (const SlidingRows* contact = rows; contact; contact = contact->next) {
    const Block& b = *contact->block;
    if (acceleration.component[b.dofs[0]] != c) continue;
    double* x = X + static_cast<std::ptrdiff_t>(first) * part.stride;
    for (int k = 0; k < b.n; k++) {
      const double* row = acceleration.row[b.dofs[k]];
      combine_rows<true>(x, b.count, {b.J + k, b.stride, 0}, row, 1, part.stride);
      const int column = acceleration.column[b.dofs[k]];
      for (int r = 0; r < b.count; r++) {
        x[r * part.stride + column] += contact->q[r * b.stride + k];
        x[r * part.stride + column + part.nv] += contact->v[r * b.stride + k];
      }
    }
    combine_rows<false>(TX + static_cast<std::ptrdiff_t>(first) * part.stride, b.count,
                        {contact->T, b.count, 1}, x, b.count, part.stride);
    first += b.count;
  }
  add_symmetric_product(H, part.stride, X, part.stride, TX, part.stride, part.end_column(), count);
}

void add_sliding_product(const SlidingRows* rows, int c, const double* x, const DofRows& change,
                         double* columns, const DofRows& cotangent) {
  const Component& part = change.components[c];
  for (const SlidingRows* contact = rows; contact; contact = contact->next) {
    const Block& b = *contact->block;
    if (change.component[b.dofs[0]] != c) continue;
    double moved[kMaxRows] = {}, force[kMaxRows] = {};
    for (int r = 0; r < b.count; r++) {
      for (int k = 0; k < b.n; k++) {
        const int at = r * b.stride + k, column = change.column[b.dofs[k]];
        moved[r] += b.J[at] * change.row[b.dofs[k]][0] + contact->q[at] * x[column] +
                    contact->v[at] * x[column + part.nv];
      }
    }
    for (int r = 0; r < b.count; r++)
      for (int k = 0; k < b.count; k++) force[r] += contact->T[r * b.count + k] * moved[k];
    for (int r = 0; r < b.count; r++)
      for (int k = 0; k < b.n; k++) {
        const int at = r * b.stride + k, column = change.column[b.dofs[k]];
        columns[column] += contact->q[at] * force[r];
        columns[column + part.nv] += contact->v[at] * force[r];
        cotangent.row[b.dofs[k]][0] += b.J[at] * force[r];
      }
  }
}

}  // namespace mujacobian
