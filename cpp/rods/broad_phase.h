// Pairs of round segments that may touch, found by sorting their bounding boxes along an axis.
#pragma once

#include <vector>

#include "rods/model.h"

namespace mujacobian::rods {

struct Pair {
  const Bundle* bundle;
  const Segment *first, *second;
};

// Returns the pairs whose bounding boxes overlap if all radii are multiplied by `scale`
std::vector<Pair> near_pairs(const Model& m, const State& q, double scale);

// Returns the slots that the potential of a pair depends on
std::vector<int> slots_of(const Model& m, const Pair& pair);

}  // namespace mujacobian::rods
