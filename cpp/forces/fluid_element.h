// The shapes on which the medium acts: the inertia box of a body, or the ellipsoids of its geoms.
// docs/derivations/fluid.md.
#pragma once

#include "layout/enums.h"
#include "layout/topology.h"
#include "spatial/matrix6.h"

namespace mujacobian {

// The drag of a box in principal axes: component i of the wrench is
// -(linear_i + quadratic_i |v_i|) v_i.                                                    (FLU-4)
struct FluidBox {
  double linear[6], quadratic[6];
};

// The coefficients of the fluid force on an ellipsoid, in its axes.
struct FluidEllipsoid {
  double density, viscosity;
  double scale;                    // of the force; MuJoCo's own derivatives omit it
  double blunt, slender, angular;  // drag coefficients
  double kutta, magnus;            // lift coefficients, the latter times the volume
  double mass[3], inertia[3];      // virtual (added) mass and inertia, over the density
  double face[3];                  // E_i, squared products of the other two semi-axes
  double widest;                   // the largest projected area
  double drag, torque;             // Stokes drag and torque, over the viscosity
  double moment[3];                // moments of the angular drag
};

// The box of a body, or the ellipsoid of a geom, in the medium.
struct FluidElement {
  int body;
  bool round;   // it is an ellipsoid
  Vec3 offset;  // from the reference point
  Mat3 frame;
  double velocity[6];  // relative to the medium, in its own axes
  FluidBox box;
  FluidEllipsoid ellipsoid;

  // X: the components of a motion in its own axes                                      (FLU-1)
  void localize(Motion v, double out[6]) const {
    store3(out, transpose_mul(frame, v.ang));
    store3(out + 3, transpose_mul(frame, at_point(v, offset)));
  }
  // X^T: the wrench about the reference point from its components in its own axes
  Force globalize(const double f[6]) const {
    Vec3 force = frame * load3(f + 3);
    return {frame * load3(f) + cross(offset, force), force};
  }
};

// Returns X^T a X.
Mat6 globalize(const FluidElement& e, const double a[36]);

// Returns whether the medium acts on the ellipsoids of the geoms of a body, instead of on its box.
bool has_ellipsoids(const ModelView& m, int body);

// Return the element of a body, or of a geom.
FluidElement box_element(const ModelView& m, const DataView& d, int body);
FluidElement ellipsoid_element(const ModelView& m, const DataView& d, int geom);

// Calls visit(element) for every element that can move: the ellipsoids of a body, or its box if it
// has none.
template <class F>
void visit_elements(const ModelView& m, const DataView& d, F visit) {
  for (int body = 1; body < m.nbody; body++) {
    if (m.body_mass[body] < kMinVal || last_dof(m, body) < 0) continue;
    if (!has_ellipsoids(m, body)) {
      visit(box_element(m, d, body));
      continue;
    }
    for (int id = m.body_geomadr[body], last = id + m.body_geomnum[body]; id < last; id++) {
      if (m.geom_fluid[kNFluid * id] != 0) visit(ellipsoid_element(m, d, id));
    }
  }
}

// Computes the wrench and its derivative with respect to the velocity, in the axes of the element.
void differentiate_force(const FluidElement& e, double force[6], double rate[36]);

// Computes MuJoCo's B in the axes of the element and, if `along` is not null, the derivative
// d(B along)/d(velocity).                                                                (FLU-7)
void differentiate_damping(const FluidElement& e, bool symmetric, const double* along, double b[36],
                           double change[36]);

// Computes the second derivative of along . wrench with respect to the velocity.          (HES-53)
void bend_force(const FluidElement& e, const double along[6], double second[36]);

// MuJoCo's B, and the derivatives of left . B right with respect to the velocity v.      (HES-54)
struct DampingBend {
  double b[36];
  double left[36];    // d(B^T left)/dv
  double right[36];   // d(B right)/dv
  double slope[6];    // d(left . B right)/dv
  double second[36];  // d2(left . B right)/dv2
};
DampingBend bend_damping(const FluidElement& e, bool symmetric, const double left[6],
                         const double right[6]);

}  // namespace mujacobian
