// Further terms of a block in a function that is differentiated twice, besides its power.
#pragma once

#include "constraint/block.h"

namespace mujacobian {

// A function along . f + extra . x of the forces f of a block and of its rows x = J a - aref.
// Pyramids have weights per edge in the place of `along`, which is zero then.
struct RowShift {
  double along[kMaxRows];   // weights of -f
  double pulled[kMaxRows];  // its derivative with respect to x through the forces
  double power;             // its value
  double extra[kMaxRows];   // weights of x
};

}  // namespace mujacobian
