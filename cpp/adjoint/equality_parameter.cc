// Columns of the solref and solimp of equalities.
#include <cmath>

#include "adjoint/column.h"
#include "constraint/contact.h"
#include "constraint/regularization.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {

void add_equality_reference(ColumnContext& x, const Parameter& p, const Column& column) {
  const DataView& d = x.d;
  // the stiffness and the damping of all rows                                    (PAR-28, PAR-29)
  const double* solimp = x.m.eq_solimp + 5 * p.id;
  const double top = std::fmin(std::fmax(solimp[1], kMinImp), kMaxImp);
  const bool of_solimp = p.kind == Parameter::kEqualitySolimp;
  const double dtop = of_solimp ? largest_impedance_slope(solimp, p.component) : 0;
  const SpringChange s =
      spring_change(x.m, x.m.eq_solref + 2 * p.id, !of_solimp && p.component == 0,
                    !of_solimp && p.component == 1, top, dtop);
  for (int i = 0; i < x.s.forward.blocks.count; i++) {
    const Block& b = x.s.forward.blocks.block[i];
    if (b.type != constraint::kEquality || b.id != p.id || !b.active) continue;
    double square = 0;
    for (int r = 0; r < b.count; r++) square += d.efc_pos[b.row + r] * d.efc_pos[b.row + r];
    const double *kbip = d.efc_KBIP + 4 * b.row, imp = kbip[2];
    const double dimp = of_solimp ? impedance_slope(solimp, std::sqrt(square), p.component) : 0;

    // df = f dlogD - H dx with dx = -d(aref), aref = -b v - k imp pos                      (PAR-7)
    double dx[kMaxRows], change[kMaxRows];
    const double pull = s.stiffness * imp + kbip[0] * dimp;
    for (int r = 0; r < b.count; r++) {
      dx[r] = s.damping * d.efc_vel[b.row + r] + pull * d.efc_pos[b.row + r];
    }
    for (int r = 0; r < b.count; r++) {
      change[r] = 0;
      for (int c = 0; c < b.count; c++) change[r] -= b.hessian[r * b.count + c] * dx[c];
    }
    visit_regularization(d, b, [&](const Source& source, const double* force) {
      for (int r = source.first; r < source.last; r++) {
        change[r] -= dimp / (imp * (1 - imp)) * force[r];
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
