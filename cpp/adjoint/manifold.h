// States (qpos, qvel, act) as MuJoCo stores them, and their tangent coordinates. The Python class
// Manifold has the same functions, with bitwise equal results. (ADJ-6, ADJ-7, ADJ-8, HVP-3)
#pragma once

#include "layout/views.h"

namespace mujacobian {

// The number of entries of a stored state.
inline int stored_size(const ModelView& m) { return m.nq + m.nv + m.na; }

// Converts a gradient with respect to the stored state x to tangent coordinates, `out` (nx).
void pull_state(const ModelView& m, const double* x, const double* gradient, double* out);

// Converts a gradient in tangent coordinates to that of a function of q / |q|, `out` (stored size).
void lift_gradient(const ModelView& m, const double* x, const double* gradient, double* out);

// Converts a change in tangent coordinates to a change of the stored numbers.
void push_change(const ModelView& m, const double* x, const double* change, double* out);

// Converts a change of the stored numbers to tangent coordinates of q / |q|.
void reduce_change(const ModelView& m, const double* x, const double* change, double* out);

// Returns whether all quaternions of the state are rotations: their length is not zero.
bool has_rotations(const ModelView& m, const double* x);

// Converts gradients with respect to positions and rotations of `count` mocap bodies, (count, 6),
// to gradients with respect to their poses, (count, 7).
void lift_poses(const double* poses, const double* gradients, int count, double* out);

}  // namespace mujacobian
