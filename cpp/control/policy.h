// Linear feedback along a trajectory, interpolated in time.
#pragma once

#include "layout/arena.h"
#include "layout/views.h"

namespace mujacobian {

// Bounds of controls.
struct Bounds {
  const double *lower, *upper;  // (nu)
};

// u(t, x) = u_t + K_t (x [-] x_t), where u_t, x_t and K_t are interpolated between knots. They are
// constant before the first knot and after the last one.
struct Policy {
  int n;
  const double* times;     // (n), ascending
  const double* states;    // (n, nq + nv + na)
  const double* controls;  // (n, nu)
  const double* gains;     // (n, nu, nx)
  bool is_linear;          // linear interpolation; otherwise each knot applies until the next
};

// Write (qpos, qvel, act), nq + nv + na numbers.
void read_state(const ModelView& m, const DataView& d, double* out);

// Add scale times a difference (nx) to the state of `data`.
void move_state(const ModelView& m, void* data, const double* difference, double scale);

// Write to [-] from (nx), where mj_differentiatePos subtracts positions.
void difference_states(const ModelView& m, const double* from, const double* to, double* out);

// Write the control at a time and state, within bounds. `feedback` scales the gain.       (ILQ-10)
void evaluate_policy(const ModelView& m, const Policy& policy, const Bounds& bounds, double time,
                     const double* state, double feedback, double* ctrl, Arena& arena);

// Write u + scale step + gain (x [-] at), within bounds.                                  (ILQ-9)
void feed_back(const ModelView& m, const Bounds& bounds, const double* u, const double* step,
               double scale, const double* gain, const double* at, const double* state,
               double* ctrl, Arena& arena);

}  // namespace mujacobian
