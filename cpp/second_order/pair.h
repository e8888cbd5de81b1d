// Second derivatives of the power of forces between two bodies, sum_s Y_s . P_s, where the bodies
// move by Y_s and the wrenches P_s depend on the poses of both. docs/derivations/second_order.md.
#pragma once

#include "contact/wrench.h"

namespace mujacobian {

inline constexpr int kPairColumns = ContactMap::kColumns;

// A joint motion y, and the wrenches whose power it makes. Everything is about the point of the
// pair.
struct PairMotion {
  Motion y[2];                        // of the two bodies
  const Motion* rate;                 // Y_pre x S of each dof of the pair
  Force wrench[2];                    // P_s on the two bodies
  double change[2][6][kPairColumns];  // dP_s/dz for the motions z of both bodies
};

// The second derivative of everything that depends on the poses of the two bodies. Columns of
// bodies that cannot move are not used.
struct PoseCurvature {
  double half[kPairColumns][kPairColumns];  // half + half^T, without the motion of the axes
  double gradient[kPairColumns];            // first derivative
};

// Adds the second derivative with respect to the positions of the dofs, as half of a symmetric
// matrix (n, n) with the stride of c: the matrix plus its transpose.                      (HES-31)
void add_pair_hessian(const ModelView& m, const ContactDofs& c, const PairMotion* motions,
                      int count, const PoseCurvature& pose, double* out, Arena& arena);

}  // namespace mujacobian
