// Linear feedback along a trajectory, looked up by time.
#pragma once

#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

// Bounds of controls.
struct Bounds {
  const double *lower, *upper;  // (nu)
};

// u(t, x) = u_t + K_t (x [-] x_t) with u_t, x_t, K_t interpolated between knots, and held before
// the first and after the last one.
struct Policy {
  int n;
  const double* times;     // (n), ascending
  const double* states;    // (n, nq + nv + na)
  const double* controls;  // (n, nu)
  const double* gains;     // (n, nu, nx)
  bool is_linear;          // between knots; otherwise each knot holds until the next
};

// (qpos, qvel, act) of a data, nq + nv + na numbers.
void read_state(const ModelView& m, const DataView& d, double* out);

// to [-] from, nx numbers: positions by mj_differentiatePos.
void difference_states(const ModelView& m, const double* from, const double* to, double* out);

// The control at a time and state, `feedback` times the gain, between the bounds.        (ILQ-10)
void evaluate_policy(const ModelView& m, const Policy& policy, const Bounds& bounds, double time,
                     const double* state, double feedback, double* ctrl, Arena& arena);

// u + scale step + gain (x [-] at), between the bounds.                             (ILQ-9)
void feed_back(const ModelView& m, const Bounds& bounds, const double* u, const double* step,
               double scale, const double* gain, const double* at, const double* state,
               double* ctrl, Arena& arena);

}  // namespace mujacobian
