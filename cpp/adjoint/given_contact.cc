#include "adjoint/given_contact.h"

#include <algorithm>

#include "adjoint/column.h"
#include "constraint/shift.h"
#include "layout/engine.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// The cotangents of the rows of one contact, and of the wrench between its bodies.
struct RowCotangent {
  double force[kMaxRows] = {};  // J y
  Motion wrench{};              // sum of y times the axes of the dofs
};

RowCotangent row_cotangent(const Block& b, const double* y) {
  RowCotangent of;
  for (int k = 0; k < b.n; k++) {
    const double at = y[b.dofs[k]];
    for (int r = 0; r < b.count; r++) of.force[r] += b.J[r * b.stride + k] * at;
    of.wrench = of.wrench + (b.chain->sign(k) * at) * b.chain->axis[k];
  }
  return of;
}

double dot(const RowCotangent& of, const double change[kMaxRows], int count) {
  double sum = 0;
  for (int r = 0; r < count; r++) sum += of.force[r] * change[r];
  return sum;
}

// Returns the product with the change of the contact's forces and of their directions when the
// contact moves, while its bodies do not.                                                 (PAR-13)
double pull_shift(const ModelView& m, const DataView& d, const Block& b, const BlockMotion& motion,
                  const RowCotangent& of, const ContactVariation& variation) {
  const ContactChange change = shift_contact(m, d, b, motion, variation);
  double df[kMaxRows];
  for (int r = 0; r < b.count; r++) {
    df[r] = b.force[r] * change.dlogD;
    for (int t = 0; t < b.count; t++) df[r] -= b.hessian[r * b.count + t] * change.rho[t];
  }
  return dot(of, df, b.count) + dot(of.wrench, moved_wrench(change.wrench, variation));
}

}  // namespace

void pull_contacts(const ModelView& m, const DataView& d, const StepDifferential& s,
                   const double* multiplier, double* out, Arena& arena) {
  std::fill(out, out + static_cast<std::ptrdiff_t>(d.ncon) * kContactNumbers, 0.);
  const Blocks& blocks = s.forward.blocks;
  const double* acc = s.forward.solved;
  const BlockMotion motion = block_motion(m, d, blocks, acc, arena);
  constexpr struct {
    ContactNumber number;
    int components;
  } kNumbers[] = {{ContactNumber::kFriction, 5},
                  {ContactNumber::kSolref, 2},
                  {ContactNumber::kFrictionSolref, 2},
                  {ContactNumber::kSolimp, 5}};
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (!b.geometry || !b.active) continue;
    if (b.idle) {
      throw Unsupported(contact_name(m, b.contact),
                        "as a given contact, because it cannot push its bodies");
    }
    const RowCotangent of = row_cotangent(b, multiplier);
    double* to = out + static_cast<std::ptrdiff_t>(b.id) * kContactNumbers;
    const Vec3 none{0, 0, 0};
    *to++ = pull_shift(m, d, b, motion, of, {1, none, none});
    for (int i = 0; i < 3; i++) *to++ = pull_shift(m, d, b, motion, of, {0, unit3(i), none});
    for (int i = 0; i < 3; i++) *to++ = pull_shift(m, d, b, motion, of, {0, none, unit3(i)});
    for (const auto& [number, components] : kNumbers) {
      for (int i = 0; i < components; i++) {
        double change[kMaxRows];
        contact_number_change(m, d, b, acc, number, i, change);
        *to++ = dot(of, change, b.count);
      }
    }
  }
}

}  // namespace mujacobian
