// Second derivative of the position update q+ = q exp(h v+) of ball and free joints.
#pragma once

#include "spatial/rotation.h"

namespace mujacobian {

// Second derivatives of lambda . log(q+(0)^-1 q+(z, e)) with respect to the rotation z of q and the
// change e of the rotation vector h v+, at zero. That with respect to z alone is zero.    (HES-4)
struct TurnCurvature {
  Mat3 mixed;  // row: z, column: e
  Mat3 turn;   // e and e
};

inline TurnCurvature turn_curvature(Vec3 turn, Vec3 lambda) {
  const Mat3 change = right_jacobian_transposed_change(turn, lambda);
  return {(-0.5) * (rotation_exp(turn) * skew(lambda) * right_jacobian(turn)),
          0.5 * (change + transposed(change))};
}

}  // namespace mujacobian
