#include "constraint/block.h"

#include <cmath>

#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "linear/lanes.h"
#include "tree/velocity.h"

namespace mujacobian {
namespace {

// relative difference of numbers that are equal up to rounding
constexpr double kSame = 1e-12;

bool is_contact(int type) { return type >= constraint::kContactFrictionless; }

// Computes the motions of bodies at joint velocity y and, for each dof, the cross product of the
// motion before the dof with its axis.                                                   (ROW-3)
void sweep_joints(const ModelView& m, const DataView& d, const double* y, Motion* moved,
                  Motion* rate) {
  moved[0] = {};
  for (int b = 1; b < m.nbody; b++) {
    Motion sum = moved[m.body_parentid[b]];
    for (int j = m.body_jntadr[b], last = j + m.body_jntnum[b]; j < last; j++) {
      int dof = m.jnt_dofadr[j], type = m.jnt_type[j];
      if (type == joint::kFree) {
        for (int k = 0; k < 3; k++, dof++) {
          rate[dof] = {};
          sum = sum + y[dof] * load_motion(d.cdof + 6 * dof);
        }
      }
      int num = type == joint::kSlide || type == joint::kHinge ? 1 : 3;
      Motion before = sum;
      for (int k = dof; k < dof + num; k++) {
        Motion axis = load_motion(d.cdof + 6 * k);
        rate[k] = cross(before, axis);
        sum = sum + y[k] * axis;
      }
    }
    moved[b] = sum;
  }
}

// Returns whether the discrete integrator has replaced the spring of a contact or limit by the
// stiffest one that the timestep resolves: k imp h^2 = 1.                                (DIS-6)
bool is_resolved(const ModelView& m, const DataView& d, int row) {
  const double h = m.opt.timestep, *kbip = d.efc_KBIP + 4 * row;
  if ((m.opt.disableflags & disable::kRefSafe) || d.efc_type[row] < constraint::kLimitJoint) {
    return false;
  }
  // tie: stiffest resolved spring
  return std::abs(h * h * kbip[0] * kbip[2] - 1) < kSame;
}

// Returns d(damping)/d(impedance) of such a spring. It keeps its damping ratio, b = c / sqrt(imp),
// up to a bound that follows from the largest impedance.
double resolved_damping_slope(double b, double imp, double h) {
  const double ceiling = kMaxImp / (1 - kMaxImp);
  const double most = (ceiling * (1 - imp) / imp - 2) / h;
  // tie: greatest damping of a resolved spring
  if (b < most * (1 - kSame)) return -b / (2 * imp);
  return most > 0 ? -ceiling / (imp * imp * h) : 0;
}

}  // namespace

std::string row_name(const ModelView& m, const Block& b) {
  switch (b.type) {
    case constraint::kEquality:
      return element_name(m, object::kEquality, b.id);
    case constraint::kFrictionDof:
      return element_name(m, object::kJoint, m.dof_jntid[b.id]) + " friction";
    case constraint::kFrictionTendon:
      return element_name(m, object::kTendon, b.id) + " friction";
    case constraint::kLimitJoint:
      return element_name(m, object::kJoint, b.id) + " limit";
    case constraint::kLimitTendon:
      return element_name(m, object::kTendon, b.id) + " limit";
    default:
      return contact_name(m, b.contact);
  }
}

bool has_least_softness(const DataView& d, const Block& b, int index) {
  const bool pyramidal = b.type == constraint::kContactPyramidal;
  const bool elliptic = b.type == constraint::kContactElliptic;
  const double scale = pyramidal ? 2 * b.contact.mu * b.contact.mu : 1;
  return d.efc_R[pyramidal || elliptic ? b.row : b.row + index] <= scale * kMinVal;
}

ReferenceAcceleration reference_acceleration(const ModelView& m, const DataView& d,
                                             const Block& block, int index) {
  const int row = block.row + index;
  const double* kbip = d.efc_KBIP + 4 * row;
  const double k = kbip[0], b = kbip[1], imp = kbip[2], slope = kbip[3];
  const bool regular = !has_least_softness(d, block, index);
  ReferenceAcceleration r{b, k * imp, 1, 0, k * slope, 0, 1, 0, 0};
  // tie: impedance
  if (regular) r.dlogD = slope / (imp * (1 - imp));
  if (m.opt.integrator != integrator::kDiscrete) return r;

  // in the discrete integrator the spring and damper act at the end of the step         (DIS-5)
  const double h = r.ahead = m.opt.timestep;
  if (is_resolved(m, d, row)) {
    r.stiffness_slope = 0;
    r.damping_slope = slope * resolved_damping_slope(b, imp, h);
  }
  r.factor = 1 + h * b + h * h * k * imp;
  r.factor_slope = h * r.damping_slope + h * h * r.stiffness_slope;
  r.damping = (b + h * k * imp) / r.factor;
  r.stiffness /= r.factor;
  r.bias /= r.factor;
  // tie: cap of the discrete diagonal
  const bool capped = (1 - imp) / (imp * r.factor) <= (1 - kMaxImp) / kMaxImp;
  r.dlogD = regular && !capped ? r.dlogD + r.factor_slope / r.factor : 0;
  return r;
}

void take_jacobian(Block& b, int n, const int* dofs, Arena& arena) {
  b.n = n;
  b.stride = round_to_lanes(n);
  b.dofs = dofs;
  b.J = arena.zeros<double>(b.count * b.stride);
}

BlockChange make_change(const Block& b, Arena& arena) {
  const int size = b.count * b.stride;
  double* all = arena.zeros<double>(2 * size + b.stride + b.n * b.stride);
  return {all, all + size, all + 2 * size, all + 2 * size + b.stride};
}

Blocks make_blocks(const ModelView& m, const DataView& d, Arena& arena, int room,
                   const Blocks* known) {
  require_limits(m, d, arena);
  const int most = d.nefc + room;
  Blocks blocks{arena.take<Block>(most), 0, arena.zeros<ForceSlopes>(most)};
  const Block* before = nullptr;  // the contact before this one
  // tie: row of MuJoCo
  for (int row = 0; row < d.nefc;) {
    Block& b = blocks.block[blocks.count++];
    b.row = row;
    b.type = d.efc_type[row];
    b.id = d.efc_id[row];
    b.geometry = nullptr;
    b.idle = false;
    b.unknown = 0;
    if (is_contact(b.type)) {
      const int k = blocks.count - 1;
      make_contact(m, d, b, before, known ? known->block[k].geometry : nullptr, arena);
      before = &b;
    } else if (b.type == constraint::kEquality) {
      make_equality(m, d, b, arena);
    } else {
      make_scalar(m, d, b, arena);
    }
    row += b.edges;
  }
  return blocks;
}

DofRows make_dof_rows(const ModelView& m, const Blocks& blocks, const Coupling* actuators,
                      bool forces, Arena& arena) {
  Coupling* couplings = arena.take<Coupling>(blocks.count);
  for (int k = 0; k < blocks.count; k++) {
    couplings[k] = {blocks.block[k].dofs, blocks.block[k].n};
  }
  return make_dof_rows(m, couplings, blocks.count, actuators, forces, arena);
}

BlockMotion block_motion(const ModelView& m, const DataView& d, const Blocks& blocks,
                         const double* acc, Arena& arena) {
  Motion* moved = arena.take<Motion>(m.nbody);
  Motion* rate = arena.take<Motion>(m.nv);
  sweep_joints(m, d, acc, moved, rate);
  BlockMotion motion{acc, moved, rate, {nullptr, nullptr}};
  // equalities are the first rows, and the only ones with a Jdot v term
  if (blocks.count && blocks.block[0].type == constraint::kEquality) {
    motion.velocity = sweep_motion(m, d, nullptr, {0, 0, 0}, arena);
  }
  return motion;
}

void differentiate(const ModelView& m, const DataView& d, const Block& block,
                   const BlockMotion& motion, BlockChange& change, Arena& arena) {
  if (is_contact(block.type)) {
    differentiate_contact(m, d, block, motion, change, arena);
  } else if (block.type == constraint::kEquality) {
    differentiate_equality(m, d, block, motion, change, arena);
  } else {
    differentiate_scalar(m, d, block, motion, change);
  }
}

const double* jacobian_change(const ModelView& m, const DataView& d, const Blocks& blocks,
                              const Block& b, const double* y, Arena& arena) {
  // at rest and with a reference acceleration of zero, rho is d(J y)/dq
  DataView resting = at_rest(m, d, arena);
  double* kbip = arena.zeros<double>(4 * d.nefc);
  for (int k = 0; k < d.nefc; k++) kbip[4 * k + 2] = 0.5;
  resting.efc_KBIP = kbip;
  BlockChange change = make_change(b, arena);
  differentiate(m, resting, b, block_motion(m, resting, blocks, y, arena), change, arena);
  return change.rho_q;
}

}  // namespace mujacobian
