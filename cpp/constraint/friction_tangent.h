// The derivatives of the forces and residuals with which the sweeps of the noslip solver start.
// docs/derivations/noslip.md.
#pragma once

#include "constraint/noslip.h"
#include "linear/lanes.h"

namespace mujacobian {

// y += s x over whole lanes
inline void add_scaled(double* y, double s, const double* x, int n) {
  for (int c = 0; c < n; c += kLanes) {
    store_lanes(y + c, load_lanes(y + c) + broadcast(s) * load_lanes(x + c));
  }
}

// Rows over all columns of a component (`stride`) for one friction block.
struct FrictionStart {
  const double* rho;  // (count, stride): d(J a - aref) at fixed acceleration, that of the optimum
  double* dforce;     // (count, stride)
  double* dlimit;     // (stride)
};

// Where the sweeps start: the optimum and its derivative.
struct FrictionContext {
  const ModelView& m;
  const DataView& d;
  const Topology& tree;
  const Blocks& blocks;
  const FrictionBlock* frictions;
  BlockMotion motion;     // at the optimum
  const double* start;    // acceleration of the optimum
  const DofRows& change;  // d(acc) of the optimum
};

// Writes the derivatives of the friction blocks first .. last-1, which belong to one block, to
// out[first .. last-1].                                                                   (SLIP-3)
void start_frictions(const FrictionContext& x, int first, int last, FrictionStart* out,
                     Arena& arena);

// y += J_r d(acc), over all columns of the component.
void add_moved_row(const Block& block, int r, const DofRows& change, double* y);

}  // namespace mujacobian
