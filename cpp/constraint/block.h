// A block contains the constraint rows of one contact, equality constraint, limit or dry friction.
// Its Jacobian is over the dofs that move it. The rows of a contact are in contact coordinates
// (normal, tangents, spin, rolls), even if MuJoCo uses pyramid edges.
// docs/derivations/constraints.md.
#pragma once

#include <string>

#include "contact/wrench.h"
#include "layout/topology.h"
#include "tree/motion.h"
#include "tree/path.h"

namespace mujacobian {

inline constexpr int kMaxRows = 6;

// The type of a block that does not belong to MuJoCo's rows, but is a term weight J^T J of the
// metric of the discrete integrator.
inline constexpr int kMetricTerm = -1;

struct Block {
  int row, count;   // first row in MuJoCo's efc arrays, number of rows of the block
  int edges;        // number of MuJoCo's rows: count, or 2 (count - 1) for a pyramid
  int type, id;     // efc_type, efc_id
  int n;            // number of dofs
  int stride;       // n rounded up to whole lanes: rows over the dofs are padded with zeros
  const int* dofs;  // increasing
  double* J;        // (count, n)

  bool idle;      // it cannot push its bodies: constraint/idle.h
  double weight;  // Hessian of a term of the metric                                    (DIS-3)

  ContactView contact;
  const ContactGeometry* geometry;  // features of a contact; null for other rows
  const ContactDofs* chain;         // dofs of a contact
  Path path[2];                     // paths of tendons or coupled joints

  // at the current acceleration
  double force[kMaxRows];
  double hessian[kMaxRows * kMaxRows];  // -d force / d (J a - aref)
  bool active;                          // the Hessian or the force is not zero
  double unknown;  // size of the summands of a force that is lost to rounding, otherwise zero
};

// df/dq and df/dv of the forces of a block at fixed acceleration: (count, n), with its stride.
struct ForceSlopes {
  double *q, *v;
};

// All blocks of a state.
struct Blocks {
  Block* block;
  int count;
  ForceSlopes* slopes;  // per block; null until the residual has been filled
};

// The motion that the derivative of J needs at one acceleration a. The joint motion y = a + B v
// moves bodies by Y = moved + B V.
struct BlockMotion {
  const double* acc;
  const Motion* moved;       // sum_j S_j a_j for each body
  const Motion* moved_rate;  // moved_pre x S for each dof                               (ROW-3)
  MotionSweep velocity;      // accelerations at a = 0 without gravity, for Jdot v
};

// Returns this motion. `acc` may be any joint motion in place of the acceleration.
BlockMotion block_motion(const ModelView& m, const DataView& d, const Blocks& blocks,
                         const double* acc, Arena& arena);

// The derivatives of a block from which its part of the residual is assembled.           (ROW-2)
// All matrices have the stride of the block.
struct BlockChange {
  double* rho_q;  // (count, n): derivative of J a - aref with respect to q, at fixed a
  double* rho_v;  // (count, n): the same with respect to v
  double* dlogD;  // (n): d(log D)/dq
  double* geometric_stiffness;  // (n, n): d(J^T f)/dq at fixed f
};

BlockChange make_change(const Block& block, Arena& arena);

// Returns the blocks with their Jacobians, and with room for `room` further blocks behind them. The
// contact features are copied from `known`, blocks of the same rows, or identified if it is null.
// Throws Unsupported for rows that are not supported.
Blocks make_blocks(const ModelView& m, const DataView& d, Arena& arena, int room = 0,
                   const Blocks* known = nullptr);

// Returns a residual whose components are the trees that the blocks and the actuators couple.
DofRows make_dof_rows(const ModelView& m, const Blocks& blocks, const Coupling* actuators,
                      bool forces, Arena& arena);

// Computes the derivative of one block. `change` is zero on entry, except for geometric_stiffness,
// to which the function adds.
void differentiate(const ModelView& m, const DataView& d, const Block& block,
                   const BlockMotion& motion, BlockChange& change, Arena& arena);

// Returns d(J y)/dq for a fixed joint motion y, (count, n).
const double* jacobian_change(const ModelView& m, const DataView& d, const Blocks& blocks,
                              const Block& block, const double* y, Arena& arena);

// Sets the dofs of the block, and takes memory for its Jacobian, which is zero.
void take_jacobian(Block& block, int n, const int* dofs, Arena& arena);

// The functions make_blocks and differentiate by kind of row.
void make_contact(const ModelView& m, const DataView& d, Block& block, const Block* before,
                  const ContactGeometry* known, Arena& arena);
void differentiate_contact(const ModelView& m, const DataView& d, const Block& block,
                           const BlockMotion& motion, BlockChange& change, Arena& arena);
void make_equality(const ModelView& m, const DataView& d, Block& block, Arena& arena);
void differentiate_equality(const ModelView& m, const DataView& d, const Block& block,
                            const BlockMotion& motion, BlockChange& change, Arena& arena);
void make_point_equality(const ModelView& m, const DataView& d, Block& block, Arena& arena);
void differentiate_point_equality(const ModelView& m, const DataView& d, const Block& block,
                                  const BlockMotion& motion, BlockChange& change);
void make_scalar(const ModelView& m, const DataView& d, Block& block, Arena& arena);

// Return whether a block is the limit or dry friction of a tendon, and the sign of its row relative
// to the moments of the tendon.
bool is_tendon_row(const Block& block);
double tendon_row_sign(const ModelView& m, const DataView& d, const Block& block);

// Throws Unsupported if a limit acts on both sides of the state but not in it, so that MuJoCo has
// no row for it, and if the limit of a ball joint has no axis.                          (ROW-14)
void require_limits(const ModelView& m, const DataView& d, Arena& arena);
void differentiate_scalar(const ModelView& m, const DataView& d, const Block& block,
                          const BlockMotion& motion, BlockChange& change);

// MuJoCo's reference acceleration of an efc row:
//   aref = -damping (J v) - stiffness (pos - margin) - bias (Jdot v)
// The coefficients depend on the impedance, and therefore on the position that the impedance is
// computed from.
struct ReferenceAcceleration {
  double damping, stiffness, bias;
  double dlogD;  // d log D / d(impedance position)

  // derivatives with respect to this position, of stiffness and damping before the division by
  // `factor`, and of `factor`
  double stiffness_slope, damping_slope, factor, factor_slope;
  double ahead;  // time at which the spring is evaluated: the timestep of the discrete integrator

  // Returns -d aref / d(impedance position) at fixed gap (pos - margin) and velocity.     (DIS-7)
  double through(double gap, double velocity, double aref) const {
    double spring = stiffness_slope * (gap + ahead * velocity) + damping_slope * velocity;
    return (spring + factor_slope * aref) / factor;
  }
};
ReferenceAcceleration reference_acceleration(const ModelView& m, const DataView& d,
                                             const Block& block, int index = 0);

// Returns the element that the rows belong to, for messages.
std::string row_name(const ModelView& m, const Block& block);

// Whether R of a row of a block is at its lower bound, and therefore constant. In a contact, the
// bound applies to R of the first row, before MuJoCo scales it for a pyramid and derives that of
// friction.                                                                              (ROW-16)
bool has_least_softness(const DataView& d, const Block& block, int index = 0);

// The polynomial coupling y - y0 = P(x - x0) of two joints or tendons, at the current state.
struct Polynomial {
  double slope, curvature, third;  // P', P'', P'''
};
Polynomial polynomial(const ModelView& m, const DataView& d, int equality);

}  // namespace mujacobian
