// Contacts at the optimum of MuJoCo's convex collider. At the user's ccd_tolerance the collider
// stops short of the nearest or deepest points of curved geoms. Where a contact depends on that,
// MuJoCo evaluates the state once more in an mjData of our own, with a collider that converges,
// from the contacts on: what is differentiated is then consistent in all of its contacts,
// constraint rows and forces. docs/derivations/contacts.md, "Contacts at the user's collider
// tolerance".
#pragma once

#include "layout/views.h"

namespace mujacobian {

// A collider with these settings converges: a finer tolerance is that of rounding.
constexpr double kColliderTolerance = 1e-13;
constexpr int kColliderIterations = 500;

// Error of a contact (see contact_error) beyond which the collider counts as not converged. Over
// motions that are not much longer than its error, a contact follows the facets at which the
// collider stops: with this limit, slopes over 1e-3 m or rad are those of the geometry.
constexpr double kContactLimit = 1e-4;

// The same for the relative error of the acceleration (see notice_collider), as of the solver.
constexpr double kColliderLimit = 1e-3;

// What the derivative of a state is computed from.
struct Evaluation {
  const ModelView& m;
  const DataView& d;
};

// `d`, on which mj_forward has just run, or the same state with a converged collider. The second
// one belongs to the calling thread and lives until its next call. Unless it must be `solved`, its
// qacc, constraint forces and sensors may still be those of `d`: find_optimum begins at that qacc.
// Sensors, parameters and diagnostics need a solved one.
Evaluation converge_collider(const ModelView& m, const DataView& d, bool solved);

// Solve for qacc, constraint forces and sensors of such an evaluation, in place. Returns false if
// `d` is another data, or solved already.
bool solve_again(const DataView& d);
bool is_unsolved(const DataView& d);

// The same after mj_inverse, and mj_fwdActuation if `actuation` is set.
Evaluation converge_inverse(const ModelView& m, const DataView& d, bool actuation);

// The model with a collider that converges, which belongs to the calling thread in the same way.
const ModelView& converged_model(const ModelView& m);

// The signed distance of two geoms and their nearest points, as mj_geomDistance finds them with a
// converged collider.
double converged_distance(const ModelView& m, const DataView& d, int geom1, int geom2, double most,
                          double fromto[6]);

// Distance (CON-29) between contact k of `converged` and the one of `d` that it comes from: the
// changes of position, depth (both in m) and normal (rad), added up. Infinite if the number of
// contacts between these geoms differs.
double contact_error(const DataView& d, const DataView& converged, int k);

// The caller's qacc where `d` is an evaluation with a converged collider, else null; and what to do
// if that is `error` away from the acceleration of `d`: notice it, with the worst contact.
const double* given_acceleration(const DataView& d);
void notice_collider(const DataView& d, double error);

}  // namespace mujacobian
