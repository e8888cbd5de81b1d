#include "second_order/row.h"

#include <algorithm>

#include "constraint/wrench.h"
#include "forces/tendon_curvature.h"
#include "layout/enums.h"
#include "second_order/ball_limit.h"
#include "second_order/impedance.h"
#include "second_order/path_function.h"
#include "spatial/jet.h"

namespace mujacobian {
namespace {

bool is_ball_limit(const ModelView& m, const Block& b) {
  return b.type == constraint::kLimitJoint && m.jnt_type[b.id] == joint::kBall;
}

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

// Returns -mu . J^T f = (J mu) D (J a - aref) of a limit or coupling in its quadratic zone.
// (HES-24)
RowNumber row_power(const ModelView& m, const DataView& d, const Block& b, const RowVariables& x) {
  // position and Jacobian of the row
  const Polynomial p = b.type == constraint::kEquality ? polynomial(m, d, b.id) : Polynomial{};
  const double gap = d.efc_pos[b.row] - d.efc_margin[b.row];
  const double sign = is_tendon_row(b) ? tendon_row_sign(m, d, b) : 1;
  const RowNumber at = x[kX];
  const RowNumber position = gap + sign * x[kY] + chain(0, -p.slope, -p.curvature, at);
  const RowNumber slope = chain(p.slope, p.curvature, p.third, at);
  auto row = [&](int y) { return sign * x[y] - slope * x[y + 1]; };

  // D and aref as functions of the position
  const RowImpedance imp = row_impedance(d, b, row_solimp(m, b), gap);
  const double D = d.efc_D[b.row], damping = d.efc_KBIP[4 * b.row + 1];
  const RowNumber stiffness = chain(D * imp.scale[0], D * imp.scale[1], D * imp.scale[2], position);
  const RowNumber spring = chain(imp.spring[0], imp.spring[1], imp.spring[2], position);
  return stiffness * row(kYVirtual) * (row(kYAcc) + damping * row(kYRate) + spring);
}

// The same for dry friction of a tendon, whose force is linear or constant.              (HES-51)
RowNumber friction_power(const DataView& d, const Block& b, const RowVariables& x) {
  if (b.hessian[0] == 0) return -b.force[0] * x[kYVirtual];
  const double damping = d.efc_KBIP[4 * b.row + 1];
  return b.hessian[0] * (x[kYVirtual] * (x[kYAcc] + damping * x[kYRate]));
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

}  // namespace

void add_row_hessians(const ModelView& m, const DataView& d, const Blocks& blocks,
                      const double* acc, const double* mu, const QuadraticForm& form,
                      Arena& arena) {
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
    constexpr PathSource kStraight{-1, -1};
    RowVariables x{{{{}, kStraight}, {{}, kStraight}}, {}};
    if (b.type == constraint::kEquality) {
      for (int side = 0; side < 2; side++) x.path[side] = coupled_path(m, b, side);
    } else if (is_tendon_row(b)) {
      x.path[0] = {b.path[0], tendon_source(m, b.id)};
    } else {
      x.path[0].path = {b.n, b.dofs, b.J, b.J, nullptr};
    }
    set_variables(d, acc, mu, x);
    add_power(m, d, friction ? friction_power(d, b, x) : row_power(m, d, b, x), x, form, arena);
  }
}

}  // namespace mujacobian
