// The change of a contact with a parameter of its geoms, while the bodies and their motion are
// fixed.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

struct ContactChange {
  double rho[kMaxRows];  // change of J a - aref
  double dlogD;          // relative change of D
  Force wrench;          // wrench of the contact on body 1, not its change
};

// Returns the change of a contact that moves by `variation`.
ContactChange shift_contact(const ModelView& m, const DataView& d, const Block& block,
                            const BlockMotion& motion, const ContactVariation& variation);

}  // namespace mujacobian
