// What a change of a model's geometry does to a contact while position and velocity are held.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

struct ContactShift {
  ContactVariation variation;  // of the contact itself
  int carries;                 // bit s: body s is carried along by
  Motion axis;                 // this motion about the contact,
  Motion rate, dot_axis;       // which itself moves under joint motions a and v: see ROW-3, KIN-4
};

struct ContactChange {
  double rho[kMaxRows];  // of J a - aref
  double dlogD;          // of D, relative
  Force wrench;          // of the contact on body 1, which the shift turns
};

ContactChange shift_contact(const ModelView& m, const DataView& d, const Block& block,
                            const BlockMotion& motion, const ContactShift& shift);

}  // namespace mujacobian
