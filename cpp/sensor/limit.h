// Limits of joints and tendons: distance, velocity and force of their constraint row. MuJoCo
// reports zero if there is no row.
#pragma once

#include "sensor/sensing.h"

namespace mujacobian {

// The quantity that a sensor reads, and the row that it belongs to.
struct LimitRow {
  int constraint;  // type of the row
  enum { kPosition, kVelocity, kForce } quantity;
  int block;  // the first block of the limit, which MuJoCo reports; -1: there is none
};

LimitRow find_limit(const Sensing& s, int sensor);

}  // namespace mujacobian
