// Derivatives of joint springs and dof dampers. MuJoCo computes their forces.
#pragma once

#include "tree/quadratic_form.h"

namespace mujacobian {

// MuJoCo's polynomial force x (k + p0 x + p1 x^2). Damping forces are odd: they use |x| in the
// bracket.
struct Poly {
  double linear, p[2];
  bool zero() const { return linear == 0 && p[0] == 0 && p[1] == 0; }
  double coefficient(double x) const { return linear + x * (p[0] + x * p[1]); }
  // first derivative of x coefficient(x); `curvature` is the second one
  double slope(double x) const { return linear + x * (2 * p[0] + x * 3 * p[1]); }
  // tie: joint damping at rest
  double slope_odd(double x) const { return slope(x < 0 ? -x : x); }
  double curvature(double x) const { return 2 * p[0] + 6 * p[1] * x; }
  double curvature_odd(double x) const {
    // tie: joint damping at rest, implicit
    double sign = (x > 0) - (x < 0);
    return 2 * p[0] * sign + 6 * p[1] * x;
  }
  // derivative of `curvature` and, except at zero, of `curvature_odd`
  double third() const { return 6 * p[1]; }
  // Whether max(0, slope) is the slope on both sides of x, also if it touches zero there, so that
  // it is twice differentiable.
  bool slope_acts(double x) const {
    const double at = slope(x);
    return at > 0 || (at == 0 && curvature(x) == 0 && third() > 0);
  }
};

Poly joint_stiffness(const ModelView& m, int joint);

// Returns the damping of a dof, including the damping of actuators on its joint.
Poly dof_damping(const ModelView& m, int dof);

// Return the damping and the armature of a tendon, including those of its actuators.
Poly tendon_damping(const ModelView& m, int tendon);
double tendon_armature(const ModelView& m, int tendon);

// Returns whether the rest position of spring `id` is a state, in mjData.plastic. `adr` is
// jnt_plasticadr or tendon_plasticadr, which is null before MuJoCo 4.0.
inline bool is_plastic(const int* adr, int id) { return adr && adr[id] >= 0; }

// Return whether springs act, whether dampers act, and whether MuJoCo computes passive forces at
// all: it does not if both are disabled.
bool springs_enabled(const ModelView& m);
bool dampers_enabled(const ModelView& m);
bool passive_enabled(const ModelView& m);

// The stiffness of a joint spring in the metric of the discrete integrator: one number for all dofs
// of a translation or rotation, and its gradient with respect to their positions.
struct SpringSlope {
  int dof, n;
  double stiffness, gradient[3];
};

// Writes the springs of a joint, two for a free joint, and returns their number.
int spring_slopes(const ModelView& m, const DataView& d, int joint, SpringSlope out[2]);

// Adds the derivatives of the forces of joint springs to the rows of their dofs.
void add_springs(const ModelView& m, const DataView& d, const DofRows& residual);

// Adds the derivatives of joint springs and dof dampers to the residual.
void add_passive(const ModelView& m, const DataView& d, const DofRows& residual);

// Adds the second derivatives of mu . tau, where tau is the force of joint springs and dof dampers.
// (HES-14, HES-15)
void add_passive_hessian(const ModelView& m, const DataView& d, const double* mu,
                         const QuadraticForm& form);

}  // namespace mujacobian
