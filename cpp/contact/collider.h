// Contacts of a converged collider. At the user's ccd_tolerance, MuJoCo's convex collider stops
// before the nearest or deepest points of curved geoms. If a contact depends on that, MuJoCo
// evaluates the state again in an mjData of our own, with a collider that converges. The evaluation
// begins with the contacts, so that contacts, constraint rows and forces are consistent.
// docs/derivations/contacts.md, "Contacts at the user's collider tolerance".
#pragma once

#include "layout/views.h"

namespace mujacobian {

// A collider with these settings converges: a finer tolerance would be below rounding. The number
// of iterations depends on the version of MuJoCo: with more than 400, mj_forward of MuJoCo 3.15
// crashes if the normal is not unique, such as that of a cylinder whose axis is on an edge.
constexpr double kColliderTolerance = 1e-13;
constexpr int kColliderIterations = 500, kColliderIterations315 = 200;
int collider_iterations();

// Error of a contact (see contact_error) above which the collider counts as not converged. Over
// motions that are not much longer than its error, a contact follows the facets at which the
// collider stops. With this limit, slopes over 1e-3 m or rad are those of the geometry.
constexpr double kContactLimit = 1e-4;

// The same for the relative error of the acceleration (see notice_collider).
constexpr double kColliderLimit = 1e-3;

// The model and data from which the derivative of a state is computed.
struct Evaluation {
  const ModelView& m;
  const DataView& d;
};

// Returns whether a contact of `d` depends on the user's ccd_tolerance, or on rounding errors that
// the tilt of a standing cylinder amplifies (standing_cylinder.h).
bool has_inexact_contacts(const ModelView& m, const DataView& d);

// Returns `d`, on which mj_forward has just run, or the same state with accurate contacts. The
// latter belongs to the calling thread and lives until its next call. Unless it must be `solved`,
// its qacc, constraint forces and sensors may still be those of `d`: find_optimum begins at that
// qacc. Sensors, parameters and diagnostics need a solved evaluation.
Evaluation converge_collider(const ModelView& m, const DataView& d, bool solved);

// Solves for qacc, constraint forces and sensors of such an evaluation, in place. Returns false if
// `d` is another mjData, or is solved already.
bool solve_again(const DataView& d);
bool is_unsolved(const DataView& d);

// The same as converge_collider after mj_inverse, and after mj_fwdActuation if `actuation` is set.
Evaluation converge_inverse(const ModelView& m, const DataView& d, bool actuation);

// Returns the model with a converging collider. It belongs to the calling thread, too.
const ModelView& converged_model(const ModelView& m);

// Returns the signed distance of two geoms and their nearest points, as mj_geomDistance finds them
// with a converged collider.
double converged_distance(const ModelView& m, const DataView& d, int geom1, int geom2, double most,
                          double fromto[6]);

// Returns the distance (CON-29) between contact k of `converged` and its counterpart in `d`: the
// sum of the changes of position, depth (both in m) and normal (rad). It is infinite if the number
// of contacts between these geoms differs.
double contact_error(const DataView& d, const DataView& converged, int k);

// Returns the caller's qacc if `d` is an evaluation with a converged collider, otherwise null.
const double* given_acceleration(const DataView& d);

// Finds the contact of `d` whose counterpart in the caller's data has the largest error of the
// normal among those that follow facets (CON-45). Returns false if there is none.
bool find_faceted(const ModelView& m, const DataView& d, int geoms[2]);

// Adds a notice with the worst contact if `error`, the distance of the caller's qacc from the
// acceleration of `d`, exceeds kColliderLimit.
void notice_collider(const DataView& d, double error);

}  // namespace mujacobian
