#include "second_order/row.h"

#include "constraint/wrench.h"
#include "forces/tendon.h"
#include "layout/enums.h"
#include "second_order/ball_limit.h"
#include "second_order/impedance.h"
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

// The variables of a row: the coordinates y and x of a coupling y - P(x), their rates and their
// accelerations. A limit has only y.
enum { kY, kX, kYRate, kXRate, kYAcc, kXAcc, kVariables };
using RowNumber = Jet<kVariables>;

// A coordinate that is linear in the positions of some dofs.
struct Coordinate {
  int n;
  const int* dofs;
  const double* slope;

  double along(const double* motion) const {
    double sum = 0;
    for (int k = 0; k < n; k++) sum += slope[k] * motion[dofs[k]];
    return sum;
  }
};

// Returns -mu . J^T f = (J mu) D (J a - aref) of a row in its quadratic zone.             (HES-24)
RowNumber row_power(const ModelView& m, const DataView& d, const Block& b, const Coordinate& y,
                    const Coordinate& x, const double* acc, const double* mu) {
  // position and Jacobian of the row
  const Polynomial p = b.type == constraint::kEquality ? polynomial(m, d, b.id) : Polynomial{};
  const double gap = d.efc_pos[b.row] - d.efc_margin[b.row];
  const RowNumber at = jet_variable<kVariables>(0, kX);
  const RowNumber position =
      jet_variable<kVariables>(gap, kY) + chain(0, -p.slope, -p.curvature, at);
  const RowNumber slope = chain(p.slope, p.curvature, p.third, at);
  auto row = [&](const RowNumber& of_y, const RowNumber& of_x) { return of_y - slope * of_x; };
  const RowNumber virtual_rate = row(y.along(mu), x.along(mu));
  const RowNumber rate = row(jet_variable<kVariables>(y.along(d.qvel), kYRate),
                             jet_variable<kVariables>(x.along(d.qvel), kXRate));
  const RowNumber moved = row(jet_variable<kVariables>(y.along(acc), kYAcc),
                              jet_variable<kVariables>(x.along(acc), kXAcc));

  // D and aref as functions of the position
  const RowImpedance imp = row_impedance(d, b, row_solimp(m, b), gap);
  const double D = d.efc_D[b.row], damping = d.efc_KBIP[4 * b.row + 1];
  const RowNumber stiffness = chain(D * imp.scale[0], D * imp.scale[1], D * imp.scale[2], position);
  const RowNumber spring = chain(imp.spring[0], imp.spring[1], imp.spring[2], position);
  return stiffness * virtual_rate * (moved + damping * rate + spring);
}

// Adds the second derivatives of a function of the variables of a row.
void add_power(const RowNumber& power, const Coordinate& y, const Coordinate& x,
               const QuadraticForm& form) {
  const Coordinate* coordinate[2] = {&y, &x};
  for (int i = 0; i < kVariables; i++)
    for (int j = 0; j <= i && j < kYAcc; j++) {
      const double second = power.second(i, j);
      if (second == 0) continue;
      const Coordinate &a = *coordinate[i % 2], &b = *coordinate[j % 2];
      for (int k = 0; k < a.n; k++)
        for (int l = 0; l < b.n; l++) {
          const double value = second * a.slope[k] * b.slope[l];
          const int dof = b.dofs[l], column = j < kYRate ? form.q_column(dof) : form.v_column(dof);
          if (i >= kYAcc) {
            form.mixed[a.dofs[k]][column] += value;
          } else {
            const int other = i < kYRate ? form.q_column(a.dofs[k]) : form.v_column(a.dofs[k]);
            // all pairs of one variable are visited in both orders
            form.half_row(dof, other)[column] += i == j ? 0.5 * value : value;
          }
        }
    }
}

}  // namespace

bool has_second_derivative(const ModelView& m, const Block& b) {
  if (!b.active || b.n == 0) return true;
  switch (b.type) {
    case constraint::kFrictionDof:
    case constraint::kLimitJoint:
      return true;
    case constraint::kFrictionTendon:
    case constraint::kLimitTendon:
      return !b.path[0].hessian;
    case constraint::kEquality: {
      if (is_point_equality(m, b)) return true;
      return !b.path[0].hessian && !b.path[1].hessian;
    }
    default:
      return true;  // contacts
  }
}

void add_row_hessians(const ModelView& m, const DataView& d, const Blocks& blocks,
                      const double* acc, const double* mu, const QuadraticForm& form) {
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (!b.active || b.n == 0 || b.geometry || is_point_equality(m, b)) continue;
    // the force of dry friction is linear in all variables
    if (b.type == constraint::kFrictionDof || b.type == constraint::kFrictionTendon) continue;
    if (is_ball_limit(m, b)) {
      add_ball_limit_hessian(m, d, b, acc, mu, form);
      continue;
    }
    Coordinate y{b.n, b.dofs, b.J}, x{0, nullptr, nullptr};
    if (b.type == constraint::kEquality) {
      y = {b.path[0].n, b.path[0].dofs, b.path[0].moment};
      x = {b.path[1].n, b.path[1].dofs, b.path[1].moment};
    }
    add_power(row_power(m, d, b, y, x, acc, mu), y, x, form);
  }
}

}  // namespace mujacobian
