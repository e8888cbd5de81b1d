// Second derivatives of the power of a wrench between two bodies, (Y_1 - Y_0) . P, where the bodies
// move by Y_s and the wrench depends on the poses of both. docs/derivations/second_order.md.
#pragma once

#include "contact/curvature.h"
#include "contact/wrench.h"

namespace mujacobian {

inline constexpr int kPairColumns = ContactMap::kColumns;

// A joint motion y, and the wrench whose power it makes. Everything is about the point of the pair.
// Arrays over the dofs are by component, (6, n) with the stride of the pair.
struct PairMotion {
  Motion y[2];                     // of the two bodies
  Force wrench;                    // P on body 1, and its opposite on body 0
  double change[6][kPairColumns];  // dP/dz for the motions z of both bodies
  double* rate;   // Y_pre x S, positive for dofs that move body 1 alone, negative for body 0 alone
  double* moved;  // d(Y_1 - Y_0)/dq

  Motion relative() const { return y[1] + -1.0 * y[0]; }
};

// Computes `moved` from `rate`.                                                           (ROW-3)
void move_pair(const ContactDofs& c, PairMotion& motion);

// The second derivative of everything that depends on the poses of the two bodies. Columns of
// bodies that cannot move are not used.
struct PoseCurvature {
  double half[kPairColumns][kPairColumns];  // half + half^T, without the motion of the axes
  double gradient[kPairColumns];            // first derivative
};

// Sets the wrench of a motion, which is fixed to the frame of a contact, and its changes.
void fix_wrench(const ContactMap& map, int moves, Force wrench, PairMotion& motion);

// Sets the rates of the axes of the dofs from those of all dofs of the model, Y_pre x S.
void set_rate(const ContactDofs& c, int k, Motion rate, PairMotion& motion);

// A function of the distance, the position and the turn of a contact: its derivatives.
struct ContactFunction {
  ContactCotangent slope;
  double distances;  // second derivative with respect to the distance twice,
  Mat3 turns;        // half of that with respect to the turn twice,
  Vec3 across;       // and that with respect to the distance and the turn

  // Adds the product of a vector `x` that turns with the frame and a vector `y` that is fixed.
  void add_turned(Vec3 x, Vec3 y);
};

// Returns the second derivative of the powers of wrenches that are fixed to the frame of a contact,
// and of a function of the contact.                                                       (HES-32)
PoseCurvature power_curvature(const ModelView& m, const DataView& d,
                              const ContactGeometry& geometry, const ContactMap& map, int moves,
                              const PairMotion* motions, int count, const ContactFunction& f);

// Returns the reason why the contact has a first, but no second derivative, or null.
const char* curvature_refusal(const ContactGeometry& geometry);

// Adds the second derivative with respect to the positions of the dofs, as half of a symmetric
// matrix (n, n) with the stride of c: the matrix plus its transpose.                      (HES-31)
void add_pair_hessian(const ModelView& m, const ContactDofs& c, const PairMotion* motions,
                      int count, const PoseCurvature& pose, double* out, Arena& arena);

// Adds the change of a motion as it appears in the frame of a contact, whose position and rotation
// change by `position` and `turn`, (3, n) by component: scale times its products with `axes`, the
// linear part for the first `linear` of them and the angular part for the others.         (ROW-4)
void add_pair_rows(const ContactDofs& c, const PairMotion& motion, const double* position,
                   const double* turn, const Vec3* axes, int count, int linear, double scale,
                   double* out);

}  // namespace mujacobian
