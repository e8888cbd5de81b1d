// Joint springs and dof dampers: values enter through MuJoCo, here are their derivatives.
#pragma once

#include "tree/dof_rows.h"

namespace mujacobian {

// MuJoCo's polynomial: x (k + p0 x + p1 x^2), with |x| for odd (damping) forces.
struct Poly {
  double linear, p[2];
  bool zero() const { return linear == 0 && p[0] == 0 && p[1] == 0; }
  double coefficient(double x) const { return linear + x * (p[0] + x * p[1]); }
  // d(x coefficient(x))/dx, and the derivative of that
  double slope(double x) const { return linear + x * (2 * p[0] + x * 3 * p[1]); }
  // tie: joint damping at rest
  double slope_odd(double x) const { return slope(x < 0 ? -x : x); }
  double curvature(double x) const { return 2 * p[0] + 6 * p[1] * x; }
  double curvature_odd(double x) const {
    // tie: joint damping at rest, implicit
    double sign = (x > 0) - (x < 0);
    return 2 * p[0] * sign + 6 * p[1] * x;
  }
};

Poly joint_stiffness(const ModelView& m, int joint);

// Damping of a dof, with what actuators add to its joint.
Poly dof_damping(const ModelView& m, int dof);

// Damping and armature of a tendon, with what actuators add.
Poly tendon_damping(const ModelView& m, int tendon);
double tendon_armature(const ModelView& m, int tendon);

// The rest position of spring `id` is a state, mjData.plastic; `adr` is jnt_plasticadr or
// tendon_plasticadr, null before MuJoCo 4.0.
inline bool is_plastic(const int* adr, int id) { return adr && adr[id] >= 0; }

// Springs act, dampers act; with both disabled MuJoCo computes no passive force at all.
bool springs_enabled(const ModelView& m);
bool dampers_enabled(const ModelView& m);
bool passive_enabled(const ModelView& m);

// What the discrete integrator knows of a joint's spring: one stiffness for all dofs of a
// translation or rotation, and how it changes with their positions.
struct SpringSlope {
  int dof, n;
  double stiffness, gradient[3];
};

// The springs of a joint, one or two of a free joint; returns their number.
int spring_slopes(const ModelView& m, const DataView& d, int joint, SpringSlope out[2]);

// Add the derivatives of joint springs and dof dampers to the residual.
void add_passive(const ModelView& m, const DataView& d, const DofRows& residual);

}  // namespace mujacobian
