#include "second_order/row.h"

#include <algorithm>

#include "constraint/wrench.h"
#include "forces/tendon_curvature.h"
#include "layout/enums.h"
#include "second_order/ball_limit.h"
#include "second_order/contact.h"
#include "second_order/impedance.h"
#include "second_order/path_function.h"
#include "second_order/point_equality.h"
#include "spatial/jet.h"

namespace mujacobian {
namespace {

// Returns MuJoCo's solimp of a row.
const double* row_solimp(const ModelView& m, const Block& b) {
  if (b.type == constraint::kLimitJoint) return m.jnt_solimp + kNImp * b.id;
  if (b.type == constraint::kLimitTendon) return m.tendon_solimp_lim + kNImp * b.id;
  return m.eq_solimp + kNImp * b.id;
}

// The variables of a row: the coordinates y and x of a coupling y - P(x), and their rates in the
// motions mu, v and a. A limit has only y.
enum { kY, kX, kYVirtual, kXVirtual, kYRate, kXRate, kYAcc, kXAcc, kVariables };
using RowNumber = Jet<kVariables>;

struct RowVariables {
  CurvedPath path[2];  // of y and x
  PathScalar scalar[kVariables];

  RowNumber operator[](int k) const {
    return jet_variable<kVariables>(k < kYVirtual ? 0 : scalar[k].rate(), k);
  }
};

void set_variables(const DataView& d, const double* acc, const double* mu, RowVariables& x) {
  for (int side = 0; side < 2; side++) {
    const CurvedPath* path = x.path + side;
    x.scalar[kY + side] = {PathScalar::kLength, path, nullptr, nullptr, 0};
    x.scalar[kYVirtual + side] = {PathScalar::kVirtual, path, mu, nullptr, 0};
    x.scalar[kYRate + side] = {PathScalar::kVelocity, path, d.qvel, nullptr, 0};
    x.scalar[kYAcc + side] = {PathScalar::kAcceleration, path, acc, nullptr, 0};
  }
}

// Returns the rate of a row in one of the motions, from the rate of y. The slope of the coupling
// changes with x.
RowNumber row_rate(const ModelView& m, const DataView& d, const Block& b, const RowVariables& x,
                   const Polynomial& p, int y) {
  const double sign = is_tendon_row(b) ? tendon_row_sign(m, d, b) : 1;
  return sign * x[y] - chain(p.slope, p.curvature, p.third, x[kX]) * x[y + 1];
}

// The numbers J mu and -f = D (J a - aref) of a limit or coupling in its quadratic zone.  (HES-24)
struct RowFactors {
  RowNumber virt, force;
};

RowFactors row_factors(const ModelView& m, const DataView& d, const Block& b,
                       const RowVariables& x) {
  // position and Jacobian of the row
  const Polynomial p = b.type == constraint::kEquality ? polynomial(m, d, b.id) : Polynomial{};
  const double gap = d.efc_pos[b.row] - d.efc_margin[b.row];
  const double sign = is_tendon_row(b) ? tendon_row_sign(m, d, b) : 1;
  const RowNumber position = gap + sign * x[kY] + chain(0, -p.slope, -p.curvature, x[kX]);
  auto row = [&](int y) { return row_rate(m, d, b, x, p, y); };

  // D and aref as functions of the position
  const RowImpedance imp = row_impedance(m, d, b, row_solimp(m, b), gap);
  const double D = d.efc_D[b.row], damping = d.efc_KBIP[4 * b.row + 1];
  const RowNumber stiffness = chain(D * imp.scale[0], D * imp.scale[1], D * imp.scale[2], position);
  const RowNumber spring = chain(imp.spring[0], imp.spring[1], imp.spring[2], position);
  return {row(kYVirtual), stiffness * (row(kYAcc) + damping * row(kYRate) + spring)};
}

// -mu . J^T f of dry friction of a tendon, whose force is linear or constant, with the further
// terms of a shift (null: none). (HES-51)
RowNumber friction_power(const DataView& d, const Block& b, const RowShift* shift,
                         const RowVariables& x) {
  const double damping = d.efc_KBIP[4 * b.row + 1];
  const RowNumber moved = x[kYAcc] + damping * x[kYRate];
  const RowNumber power =
      b.hessian[0] == 0 ? -b.force[0] * x[kYVirtual] : b.hessian[0] * (x[kYVirtual] * moved);
  return shift ? power + (shift->pulled[0] + shift->extra[0]) * moved : power;
}

// Adds the second derivatives of a function of the variables of a row.
void add_power(const ModelView& m, const DataView& d, const RowNumber& power, RowVariables& x,
               const QuadraticForm& form, Arena& arena) {
  double second[kVariables * kVariables];
  for (int i = 0; i < kVariables; i++)
    for (int k = 0; k < kVariables; k++) second[i * kVariables + k] = power.second(i, k);
  double slope[kVariables];
  std::copy(power.d, power.d + kVariables, slope);
  add_path_function(m, d, {kVariables, x.scalar, power.v, slope, second}, 1, form, arena);
}

// Returns the path of one side of a coupling.
CurvedPath coupled_path(const ModelView& m, const Block& b, int side) {
  const int tendon = side ? m.eq_obj2id[b.id] : m.eq_obj1id[b.id];
  const bool on_tendon = m.eq_type[b.id] == equality::kTendon && tendon >= 0;
  return {b.path[side], on_tendon ? tendon_source(m, tendon) : PathSource{-1, -1}};
}

// Sets the paths of a row that is not the limit of a ball joint.
void set_paths(const ModelView& m, const Block& b, RowVariables& x) {
  constexpr PathSource kStraight{-1, -1};
  x.path[0] = x.path[1] = {{}, kStraight};
  if (b.type == constraint::kEquality) {
    for (int side = 0; side < 2; side++) x.path[side] = coupled_path(m, b, side);
  } else if (is_tendon_row(b)) {
    x.path[0] = {b.path[0], tendon_source(m, b.id)};
  } else {
    x.path[0].path = {b.n, b.dofs, b.J, b.J, nullptr};
  }
}

// Adds the second derivatives of weight J y, for a row that is not the limit of a ball joint.
void add_row_power(const ModelView& m, const DataView& d, const Block& b, double weight,
                   const double* y, const QuadraticForm& form, Arena& arena) {
  RowVariables x{};
  set_paths(m, b, x);
  set_variables(d, y, y, x);
  const Polynomial p = b.type == constraint::kEquality ? polynomial(m, d, b.id) : Polynomial{};
  add_power(m, d, weight * row_rate(m, d, b, x, p, kYVirtual), x, form, arena);
}

}  // namespace

bool is_ball_limit(const ModelView& m, const Block& b) {
  return b.type == constraint::kLimitJoint && m.jnt_type[b.id] == joint::kBall;
}

void add_limit_force_hessian(const ModelView& m, const DataView& d, const Block& b,
                             const double* acc, double weight, const QuadraticForm& form,
                             Arena& arena) {
  if (is_ball_limit(m, b)) return add_ball_limit_force(m, d, b, acc, weight, form);
  RowVariables x{};
  set_paths(m, b, x);
  set_variables(d, acc, acc, x);  // nothing is virtual
  add_power(m, d, -weight * row_factors(m, d, b, x).force, x, form, arena);
}

void add_row_power_hessian(const ModelView& m, const DataView& d, const Blocks& blocks,
                           const Block& b, const double* weights, const double* y,
                           const QuadraticForm& form, Arena& arena) {
  if (b.geometry) return add_contact_power(m, d, blocks, b, weights, y, form, arena);
  if (is_point_equality(m, b)) {
    return add_point_equality_power(m, d, blocks, b, weights, y, form, arena);
  }
  if (is_ball_limit(m, b)) return add_ball_limit_power(m, d, b, weights[0], y, form);
  // the rows of dofs are constant
  if (b.type != constraint::kFrictionDof && b.type != constraint::kLimitJoint) {
    add_row_power(m, d, b, weights[0], y, form, arena);
  }
}

void add_row_hessians(const ModelView& m, const DataView& d, const Blocks& blocks,
                      const double* acc, const double* mu, const RowShift* shift,
                      const QuadraticForm& form, Arena& arena) {
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (!b.active || b.n == 0 || b.geometry || is_point_equality(m, b)) continue;
    // the force of dry friction is linear in all variables, if the row is constant
    const bool friction = b.type == constraint::kFrictionTendon;
    if (b.type == constraint::kFrictionDof || (friction && !b.path[0].hessian)) continue;
    if (is_ball_limit(m, b)) {
      add_ball_limit_hessian(m, d, b, acc, mu, form);
      continue;
    }
    RowVariables x{};
    set_paths(m, b, x);
    set_variables(d, acc, mu, x);
    if (friction) {
      add_power(m, d, friction_power(d, b, shift ? shift + k : nullptr, x), x, form, arena);
    } else {
      const RowFactors row = row_factors(m, d, b, x);
      add_power(m, d, row.virt * row.force, x, form, arena);
    }
  }
}

}  // namespace mujacobian
