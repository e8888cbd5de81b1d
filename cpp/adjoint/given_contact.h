// Contacts that the caller gives, such as those of Newton's collision pipeline. They do not move
// with the bodies, but all their numbers are inputs of the step. docs/derivations/newton.md.
#pragma once

#include "step/differential.h"

namespace mujacobian {

// The numbers of a contact, in this order: distance, position (3), rotation of the frame about the
// axes of the world (3), friction (5), solref (2), solreffriction (2), solimp (5).
inline constexpr int kContactNumbers = 21;

// Writes the cotangents of the numbers of all contacts of `d`, (ncon, kContactNumbers), with
// `multiplier` the cotangent of the forces on the dofs. They are zero for contacts without force.
// (NWT-11)
void pull_contacts(const ModelView& m, const DataView& d, const StepDifferential& s,
                   const double* multiplier, double* out, Arena& arena);

}  // namespace mujacobian
