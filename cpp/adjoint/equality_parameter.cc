// Columns of the solref and solimp of equalities.
#include <cmath>

#include "adjoint/column.h"
#include "constraint/contact.h"
#include "constraint/regularization.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// Changes of the stiffness, the damping and the impedance of the rows of an equality.
struct SpringChange {
  double stiffness, damping, impedance;
};

// Returns the changes with solref. MuJoCo's coefficients are k = 1 / (top t r)^2 and
// b = 2 / (top t) for the time constant t and the damping ratio r, where top is the largest
// impedance, or k = -s_0 / top^2 and b = -s_1 / top.                                      (PAR-28)
SpringChange solref_change(const ModelView& m, double k, double b, double top, int component) {
  if (component == 2) return {-1 / (top * top), 0, 0};
  if (component == 3) return {0, -1 / top, 0};
  const double time = 2 / (top * b), ratio = 1 / (top * time * std::sqrt(k));
  if (component == 1) return {-2 * k / ratio, 0, 0};
  const bool safe = !(m.opt.disableflags & disable::kRefSafe);
  // tie: solref of two timesteps
  if (safe && time <= 2 * m.opt.timestep) return {0, 0, 0};
  return {-2 * k / time, -b / time, 0};
}

// Returns the changes with solimp, for the norm of the positions of all rows.             (PAR-29)
SpringChange solimp_change(const double* solimp, double k, double b, double top, double length,
                           int component) {
  const double dtop = largest_impedance_slope(solimp, component);
  return {-2 * k * dtop / top, -b * dtop / top, impedance_slope(solimp, length, component)};
}

}  // namespace

void add_equality_reference(ColumnContext& x, const Parameter& p, const Column& column) {
  const DataView& d = x.d;
  const double* solimp = x.m.eq_solimp + 5 * p.id;
  const double top = std::fmin(std::fmax(solimp[1], kMinImp), kMaxImp);
  for (int i = 0; i < x.s.forward.blocks.count; i++) {
    const Block& b = x.s.forward.blocks.block[i];
    if (b.type != constraint::kEquality || b.id != p.id || !b.active) continue;
    double square = 0;
    for (int r = 0; r < b.count; r++) square += d.efc_pos[b.row + r] * d.efc_pos[b.row + r];
    const double *kbip = d.efc_KBIP + 4 * b.row, imp = kbip[2];
    const SpringChange s =
        p.kind == Parameter::kEqualitySolref
            ? solref_change(x.m, kbip[0], kbip[1], top, p.component)
            : solimp_change(solimp, kbip[0], kbip[1], top, std::sqrt(square), p.component);

    // df = f dlogD - H dx with dx = -d(aref), aref = -b v - k imp pos                      (PAR-7)
    double dx[kMaxRows], change[kMaxRows];
    const double pull = s.stiffness * imp + kbip[0] * s.impedance;
    for (int r = 0; r < b.count; r++) {
      dx[r] = s.damping * d.efc_vel[b.row + r] + pull * d.efc_pos[b.row + r];
    }
    for (int r = 0; r < b.count; r++) {
      change[r] = 0;
      for (int c = 0; c < b.count; c++) change[r] -= b.hessian[r * b.count + c] * dx[c];
    }
    visit_regularization(d, b, [&](const Source& source, const double* force) {
      for (int r = source.first; r < source.last; r++) {
        change[r] -= s.impedance / (imp * (1 - imp)) * force[r];
      }
    });
    add_force(b, change, column.early);
  }
}

void require_equality_reference(const ModelView& m, const Parameter& p) {
  const char* reason = "its solref and solimp are not supported as parameters with it";
  const std::string name = element_name(m, object::kEquality, p.id);
  if (has_metric(m)) throw Unsupported(name, std::string(reason) + ": integrator discrete");
  if (m.opt.enableflags & enable::kDiagExact) {
    throw Unsupported(name, std::string(reason) + ": option diagexact");
  }
}

}  // namespace mujacobian
