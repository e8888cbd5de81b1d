#include "rods/model.h"

#include "rods/algebra.h"

namespace mujacobian::rods {

std::vector<char> Model::fixed() const {
  std::vector<char> all(slots());
  for (size_t i = 0; i < mass.size(); i++) all[point_slot[i]] = point_fixed[i];
  for (size_t i = 0; i < moment.size(); i++) all[frame_slot[i]] = frame_fixed[i];
  return all;
}

void subtract(const State& after, const State& before, State& step) {
  for (size_t i = 0; i < after.x.size(); i++) step.x[i] = after.x[i] - before.x[i];
  for (size_t i = 0; i < after.R.size(); i++) {
    step.R[i] = times_transposed(after.R[i], before.R[i]);
  }
}

}  // namespace mujacobian::rods
