#include "step/diagnostics.h"

#include <cmath>
#include <limits>

#include "contact/collider.h"
#include "contact/identification.h"
#include "dynamics/convergence.h"
#include "dynamics/forward.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "step/integrator.h"
#include "step/sleep.h"
#include "step/support.h"

namespace mujacobian {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Sets the state of the block, and the distance of its rows from the nearest other state.
void set_zone(const DataView& d, const Block& b, const double* acc, RowDiagnostic& row) {
  // J a, and J a - aref of the first row
  double moved[kMaxRows];
  for (int r = 0; r < b.count; r++) {
    moved[r] = 0;
    for (int k = 0; k < b.n; k++) moved[r] += b.J[r * b.stride + k] * acc[b.dofs[k]];
  }
  const double x = moved[0] - d.efc_aref[b.row];

  // by type of row
  if (b.type == constraint::kEquality) {
    row.state = "held";
  } else if (b.type == constraint::kFrictionDof || b.type == constraint::kFrictionTendon) {
    double edge = d.efc_R[b.row] * d.efc_frictionloss[b.row];
    row.state = std::abs(x) < edge ? "sticking" : "slipping";
    row.zone = std::abs(std::abs(x) - edge);
  } else if (b.type == constraint::kContactPyramidal) {
    int pressing = 0;
    for (int e = 0; e < b.edges; e++) {
      double mu = b.contact.friction.v[e / 2] * (e % 2 ? -1 : 1);
      double edge = moved[0] + mu * moved[1 + e / 2] - d.efc_aref[b.row + e];
      row.zone = std::fmin(row.zone, std::abs(edge));
      pressing += edge < 0;
    }
    row.state = pressing == 0 ? "free" : pressing == b.edges ? "sticking" : "slipping";
  } else if (b.type == constraint::kContactElliptic) {
    double mu = b.contact.mu, n = mu * x, t2 = 0;
    for (int r = 1; r < b.count; r++) {
      double u = b.contact.friction.v[r - 1] * (moved[r] - d.efc_aref[b.row + r]);
      t2 += u * u;
    }
    double t = std::sqrt(t2), scale = std::sqrt(1 + mu * mu);
    row.zone = std::fmin(std::abs(n - mu * t), std::abs(mu * n + t)) / scale;
    row.state = n >= mu * t ? "free" : mu * n + t <= 0 ? "sticking" : "slipping";
  } else {
    row.state = x < 0 ? "pressing" : "free";
    row.zone = std::abs(x);
  }
}

// Returns the distance of x from the nearer end of the range, negative outside.
double inside(double x, const double range[2]) { return std::fmin(x - range[0], range[1] - x); }

std::vector<ClampDiagnostic> diagnose_clamps(const ModelView& m, const DataView& d) {
  std::vector<ClampDiagnostic> clamps;
  if (m.opt.disableflags & disable::kActuation) return clamps;
  for (int a = 0; a < m.nactuator; a++) {
    std::string name = element_name(m, object::kActuator, a);
    int first = m.actuator_ctrladr[a], last = first + m.actuator_ctrlnum[a];
    for (int u = first; u < last; u++) {
      if (!m.actuator_ctrllimited[u] || (m.opt.disableflags & disable::kClampCtrl)) continue;
      clamps.push_back({name, "ctrlrange", inside(d.ctrl[u], m.actuator_ctrlrange + 2 * u)});
    }
    if (m.actuator_forcelimited[a]) {
      const double *force = d.actuator_force + m.actuator_outadr[a],
                   *range = m.actuator_forcerange + 2 * a;
      bool vector = m.actuator_gaintype[a] == gain::kSO3;  // limited in norm
      double distance = vector ? range[1] - norm(load3(force)) : inside(*force, range);
      clamps.push_back({name, "forcerange", distance});
    }
  }
  // force ranges of joints
  for (int j = 0; j < m.njnt; j++) {
    if (!m.jnt_actfrclimited[j]) continue;
    double distance = inside(d.qfrc_actuator[m.jnt_dofadr[j]], m.jnt_actfrcrange + 2 * j);
    clamps.push_back({element_name(m, object::kJoint, j), "actuatorfrcrange", distance});
  }
  return clamps;
}

}  // namespace

Diagnostics diagnose(const ModelView& given_m, const DataView& given_d, double* K, Arena& arena) {
  const Sleep sleep(given_m, given_d, false, nullptr, arena);
  const auto& [m, evaluated] = converge_collider(given_m, given_d, true);
  const DataView& d = sleep.at_rest(m, evaluated, arena);
  Diagnostics all{};
  all.clamps = diagnose_clamps(m, d);
  all.solver_limit = solver_limit(m, d);
  if (d.nefc == 0 && !has_metric(m)) {
    fill_hessian(m, d, {}, K);
    return all;
  }

  // convergence
  require_rows(m, d);
  const ForwardDynamics f = evaluate_forward(m, d, false, arena);
  const Optimum& optimum = f.optimum;
  all.residual_before = optimum.residual_before;
  all.residual = optimum.residual;
  all.solver_error = f.solver_error;
  all.collider_error = f.collider_error;
  if (m.opt.integrator != integrator::kRK4) {
    all.solver_error = solver_error(m, d, f, integrate(m, d, f, arena), arena);
  }

  // constraint rows
  for (int k = 0; k < f.blocks.count; k++) {
    const Block& b = f.blocks.block[k];
    RowDiagnostic row{row_name(m, b), "", kNever, kNever, kNever, 0, ""};
    set_zone(d, b, optimum.acc, row);
    if (b.type >= constraint::kLimitJoint) row.activation = d.efc_margin[b.row] - d.efc_pos[b.row];
    if (b.geometry) {
      row.region = b.geometry->region;
      row.contact_error = contact_error(given_d, d, b.id);
      row.feature = describe(*b.geometry);
    }
    all.rows.push_back(row);
  }
  fill_hessian(m, f.metric.problem, f.metric.blocks, K);
  return all;
}

}  // namespace mujacobian
