// Second derivatives of the noslip solver, contracted with the multipliers of a step.
// docs/derivations/second_order.md.
#pragma once

#include "dynamics/forward.h"
#include "second_order/friction_update.h"
#include "second_order/mobility.h"
#include "second_order/row_shift.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// The reasons why the noslip solver has no second derivative with RK4 and with diagexact.
inline constexpr const char* kSweptStages =
    "second derivatives of the stages of RK4 are not supported";
inline constexpr const char* kExactSweeps =
    "second derivatives together with the noslip solver are not supported";

// One update of the sweeps with its derivatives.
struct CurvedUpdate {
  const FrictionUpdate* update;
  double residual[kMaxFriction], force[kMaxFriction];  // before the update
  UpdateDerivative derivative;
  const double* residual_bar;  // (rows): cotangents of all residuals after the update
};

// The sweeps as a function of the rows J nu, of the residuals, forces and limits at the optimum,
// and of the mobilities A of all friction rows: Theta = -sum (J nu) . delta, with its derivative.
// (HES-63)
struct CurvedSweeps {
  Noslip noslip;
  int rows;          // friction rows
  const int* first;  // per friction block: its first row
  const MobileRow* row;
  const double* A;        // (rows, rows)
  const double* nu;       // (nv)
  const double* moved;    // (rows): the sum of the updates
  const double* A_bar;    // (rows, rows), symmetric
  const RowShift* shift;  // per block: how the cotangents of residuals, forces and limits act
  const CurvedUpdate* update;
  int updates;
};

// Returns the sweeps for the multiplier nu of the second equation of a step.
const CurvedSweeps* curve_sweeps(const ModelView& m, const DataView& d,
                                 const ForwardDynamics& forward, const double* nu, Arena& arena);

// Adds -d(Theta)/d(acc) at the optimum to the rows of `out`.
void add_sweep_cotangent(const CurvedSweeps& sweeps, const Blocks& blocks, const DofRows& out);

// Adds the second derivatives of -Theta that are linear in those of its variables, except for those
// of the residuals, forces and limits, which follow from the shifts of the blocks.       (HES-66)
void add_sweep_hessian(const ModelView& m, const DataView& d, const ForwardDynamics& forward,
                       const CurvedSweeps& sweeps, const QuadraticForm& form, Arena& arena);

// Adds the products of first derivatives of the variables of -Theta to half of the matrix of
// component c, from the derivative of the acceleration at the optimum.                   (HES-66)
void add_sweep_products(const ModelView& m, const DataView& d, const ForwardDynamics& forward,
                        const CurvedSweeps& sweeps, const DofRows& change, int c, double* half,
                        Arena& arena);

}  // namespace mujacobian
