// Forces along a path: a path has a scalar length l(q) and a row of moment arms m(q). A force
// F(l, m v, inputs) along it enters the dynamics as m^T F. Tendons and actuator transmissions are
// paths. docs/derivations/paths.md.
#pragma once

#include "layout/topology.h"
#include "tree/dof_rows.h"

namespace mujacobian {

struct Path {
  int n;  // number of dofs
  const int* dofs;
  const double* moment;   // m
  const double* dlength;  // dl/dq: equal to the moment, except for rotations
  const double* hessian;  // dm_i/dq_k at [i * n + k]; null where the moment is constant
};

// An activation or control that a force depends on, numbered as the inputs of the residual.
struct InputSlope {
  int input;
  double force;      // dF/dinput
  double damping;    // d(damping)/dinput
  double stiffness;  // d(stiffness)/dinput
};

// Another path over the same dofs, if a force depends on its rate.
struct RateSlope {
  const Path* path;
  double force;  // dF/d(m v), with the moment m of the other path
};

struct PathForce {
  Path path;
  double force;           // F
  double dlength, drate;  // dF/dl, dF/d(m v)
  InputSlope* inputs;
  int input_count;
  const RateSlope* others;
  int other_count;

  // the parts of dF/d(m v) and dF/dl in the matrices of MuJoCo's implicit integrators, and the
  // derivatives of these parts
  double damping;
  double damping_dlength, damping_drate;
  double stiffness;
  double stiffness_dlength, stiffness_drate;
};

// The element that a path with second derivatives belongs to.
struct PathSource {
  int tendon, actuator;  // -1: none; with neither, the length is linear in the positions
};
inline bool is_curved(const PathSource& source) {
  return source.tendon >= 0 || source.actuator >= 0;
}

// The second derivatives of a force along a path with respect to its variables: the length, the
// rate, and `count - 2` inputs.
struct PathCurvature {
  const PathForce* of;
  int count;                      // 0: all second derivatives are zero
  const int* inputs;              // their numbers, as in InputSlope
  const double *force, *damping;  // (count, count)
  PathSource source;
};

// The second derivatives of a path whose moments depend on the position, for a joint motion y: in
// exponential coordinates, (n, n) over the dofs of the path; null: zero.
struct PathBend {
  const double* length;  // d2l/dq2
  const double* moment;  // d2(y . m)/dq2
};

// d(m v)/dq_k = sum_i v_i dm_i/dq_k, written to rate[0 .. n-1]                         (PATH-2)
inline void path_rate_derivative(const Path& path, const double* qvel, double* rate) {
  for (int k = 0; k < path.n; k++) rate[k] = 0;
  if (!path.hessian) return;
  for (int i = 0; i < path.n; i++) {
    double v = qvel[path.dofs[i]];
    for (int k = 0; k < path.n; k++) rate[k] += v * path.hessian[i * path.n + k];
  }
}

// Adds d(m^T F) to the residual, except to rows with frozen[dof] set (null: none).      (PATH-3)
void add_path_force(const PathForce& f, const double* qvel, const unsigned char* frozen,
                    const DofRows& residual, Arena& arena);

}  // namespace mujacobian
