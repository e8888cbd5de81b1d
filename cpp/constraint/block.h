// Constraint rows that belong together: one contact, one equality constraint, one limit, one dry
// friction. A block keeps its Jacobian over the dofs it involves, in contact coordinates (normal,
// tangents, spins) where MuJoCo uses pyramid edges. docs/derivations/constraints.md.
#pragma once

#include "contact/wrench.h"
#include "layout/topology.h"
#include "tree/motion.h"
#include "tree/path.h"

namespace mujacobian {

inline constexpr int kMaxRows = 6;

// The type of a block that is no row of MuJoCo's but a term weight J^T J of the discrete
// integrator's metric.
inline constexpr int kMetricTerm = -1;

struct Block {
  int row, count;   // first row of MuJoCo's efc arrays, number of rows here
  int edges;        // number of MuJoCo's rows: count, or 2 (count - 1) for a pyramid
  int type, id;     // efc_type, efc_id
  int n;            // dofs
  int stride;       // n in whole lanes: all matrices over the dofs have zero-padded rows
  const int* dofs;  // increasing
  double* J;        // (count, n)

  bool idle;      // it pushes nothing: constraint/idle.h
  double weight;  // of a term of the metric: its Hessian                               (DIS-3)

  ContactView contact;
  const ContactGeometry* geometry;  // of a contact
  const ContactDofs* chain;         // of a contact
  Path path[2];                     // of tendons

  // at the current acceleration
  double force[kMaxRows];
  double hessian[kMaxRows * kMaxRows];  // -d force / d (J a - aref)
  bool active;                          // the Hessian or the force is not zero
};

// df/dq and df/dv of the forces of a block at fixed acceleration, (count, n) with its stride.
struct ForceSlopes {
  double *q, *v;
};

// All blocks of a state.
struct Blocks {
  Block* block;
  int count;
  ForceSlopes* slopes;  // per block; null until the residual has been filled
};

// Everything the derivative of J needs at one acceleration a: joint motion y = a + B v gives bodies
// the motion Y = moved + B V.
struct BlockMotion {
  const double* acc;
  const Motion* moved;       // sum_j S_j a_j of each body
  const Motion* moved_rate;  // of each dof: moved_pre x S                               (ROW-3)
  MotionSweep velocity;      // accelerations at a = 0 without gravity, for Jdot v
};

// `acc` may be any joint motion in the place of a.
BlockMotion block_motion(const ModelView& m, const DataView& d, const Blocks& blocks,
                         const double* acc, Arena& arena);

// What a block adds to the residual, besides the common -J^T H rho:                      (ROW-2)
struct BlockChange {
  double* rho_q;  // (count, n), as all matrices here with the block's stride: dJ (a + B v) +
                  // d(reference) with respect to q
  double* rho_v;  // (count, n): the same with respect to v
  double* dlogD;  // (n): relative change of the block's D with q
  double* geometric_stiffness;  // (n, n): d(J^T f)/dq at fixed f
};

BlockChange make_change(const Block& block, Arena& arena);

// Find the blocks and their Jacobians, with room for others behind them. The geometry of contacts
// is that of `known`, blocks of the same rows; null: it is identified. Throws Unsupported for rows
// that are not covered.
Blocks make_blocks(const ModelView& m, const DataView& d, Arena& arena, int room = 0,
                   const Blocks* known = nullptr);

// A residual whose components are the trees that the blocks and the actuators couple.
DofRows make_dof_rows(const ModelView& m, const Blocks& blocks, const Coupling* actuators,
                      bool forces, Arena& arena);

// The derivative of one block; `change` is zero on entry, but for `turned` to which it is added.
void differentiate(const ModelView& m, const DataView& d, const Block& block,
                   const BlockMotion& motion, BlockChange& change, Arena& arena);

// d(J y)/dq for a fixed joint motion y, (count, n).
const double* jacobian_change(const ModelView& m, const DataView& d, const Blocks& blocks,
                              const Block& block, const double* y, Arena& arena);

// Set the block's number of dofs and take its Jacobian, zero.
void take_jacobian(Block& block, int n, const int* dofs, Arena& arena);

// By kind of row, used by the two functions above.
void make_contact(const ModelView& m, const DataView& d, Block& block,
                  const ContactGeometry* before, const ContactGeometry* known, Arena& arena);
void differentiate_contact(const ModelView& m, const DataView& d, const Block& block,
                           const BlockMotion& motion, BlockChange& change, Arena& arena);
void make_equality(const ModelView& m, const DataView& d, Block& block, Arena& arena);
void differentiate_equality(const ModelView& m, const DataView& d, const Block& block,
                            const BlockMotion& motion, BlockChange& change, Arena& arena);
void make_point_equality(const ModelView& m, const DataView& d, Block& block, Arena& arena);
void differentiate_point_equality(const ModelView& m, const DataView& d, const Block& block,
                                  const BlockMotion& motion, BlockChange& change);
void make_scalar(const ModelView& m, const DataView& d, Block& block, Arena& arena);
// Throws Unsupported where a limit acts on both sides of the state but not in it, so that MuJoCo's
// rows do not show it, and where the limit of a ball joint has no axis.                  (ROW-14)
void require_limits(const ModelView& m, const DataView& d, Arena& arena);
void differentiate_scalar(const ModelView& m, const DataView& d, const Block& block,
                          const BlockMotion& motion, BlockChange& change);

// MuJoCo's reference acceleration of an efc row:
//   aref = -damping (J v) - stiffness (pos - margin) - bias (Jdot v)
// The coefficients depend on the impedance, and so on the position that it sees.
struct ReferenceAcceleration {
  double damping, stiffness, bias;
  double dlogD;  // d log D / d(that position)

  // changes with that position, of the stiffness and damping before they are divided by `factor`
  double stiffness_slope, damping_slope, factor, factor_slope;
  double ahead;  // time at which the spring is evaluated: the timestep of the discrete integrator

  // -d aref / d(that position) at fixed gap (pos - margin) and velocity                   (DIS-7)
  double through(double gap, double velocity, double aref) const {
    double spring = stiffness_slope * (gap + ahead * velocity) + damping_slope * velocity;
    return (spring + factor_slope * aref) / factor;
  }
};
ReferenceAcceleration reference_acceleration(const ModelView& m, const DataView& d, int row);

// A polynomial coupling y - y0 = P(x - x0) of two joints or tendons at the current state.
struct Polynomial {
  double slope, curvature;  // P', P''
};
Polynomial polynomial(const ModelView& m, const DataView& d, int equality);

}  // namespace mujacobian
