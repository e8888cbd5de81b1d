// The springs of tendons, as the potential energy has them.
#pragma once

#include "forces/passive.h"
#include "sensor/sensing.h"

namespace mujacobian {

// The spring of a tendon and its stretch, which is zero inside of the dead band.
struct TendonSpring {
  Poly spring;
  double stretch;

  double pull() const { return stretch * spring.coefficient(stretch); }
};

TendonSpring tendon_spring(const ModelView& m, const DataView& d, int tendon);

}  // namespace mujacobian
