// What a change of a geom does to a contact while the bodies and their motion are held.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

struct ContactChange {
  double rho[kMaxRows];  // of J a - aref
  double dlogD;          // of D, relative
  Force wrench;          // of the contact on body 1, which the shift turns
};

ContactChange shift_contact(const ModelView& m, const DataView& d, const Block& block,
                            const BlockMotion& motion, const ContactVariation& variation);

}  // namespace mujacobian
