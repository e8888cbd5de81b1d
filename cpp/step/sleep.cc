#include "step/sleep.h"

#include <cmath>
#include <cstring>

#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/sleep.h"
#include "layout/topology.h"
#include "layout/unsupported.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

// Returns whether all bits are zero: MuJoCo takes -0.0 as a reason to stay awake.
bool is_zero(const double* x, int n) {
  for (int k = 0; k < n; k++) {
    if (x[k] != 0 || std::signbit(x[k])) return false;
  }
  return true;
}

// Returns whether the tree is so slow that its counter approaches sleep.
bool is_slow(const ModelView& m, const DataView& d, int tree) {
  const int policy = m.tree_sleep_policy[tree];
  if (policy == sleep_policy::kNever || policy == sleep_policy::kAutoNever) return false;
  const int body = m.tree_bodyadr[tree], dof = m.tree_dofadr[tree], n = m.tree_dofnum[tree];
  if (!is_zero(d.xfrc_applied + 6 * body, 6 * m.tree_bodynum[tree])) return false;
  if (!is_zero(d.qfrc_applied + dof, n)) return false;
  const double tolerance = m.opt.sleep_tolerance;
  if (tolerance == 0) return is_zero(d.qvel + dof, n);
  for (int i = dof; i < dof + n; i++) {
    if (m.dof_length[i] * std::abs(d.qvel[i]) >= tolerance) return false;
  }
  return true;
}

// Returns whether the counter of an awake tree reaches its end in this step.
bool is_ready(const ModelView& m, const DataView& d, int tree) {
  return d.tree_asleep[tree] >= -2 && is_slow(m, d, tree);
}

// Marks the trees that fall asleep: all trees of their island must be ready.
bool* falling_trees(const ModelView& m, const DataView& d, Arena& arena) {
  bool* falls = arena.zeros<bool>(m.ntree);
  if (d.nefc && !d.nisland) return falls;  // MuJoCo needs islands
  bool* restless = arena.zeros<bool>(d.nisland);
  auto island = [&](int t) { return d.nisland ? d.dof_island[m.tree_dofadr[t]] : -1; };
  for (int t = 0; t < m.ntree; t++) {
    falls[t] = !is_asleep(m, d, t) && is_ready(m, d, t);
    if (!falls[t] && island(t) >= 0) restless[island(t)] = true;
  }
  for (int t = 0; t < m.ntree; t++) {
    if (island(t) >= 0 && restless[island(t)]) falls[t] = false;
  }
  return falls;
}

// Throws Unsupported with the name of the first sensor that MuJoCo computes in another way.
void require_sensors_awake(const ModelView& m, const DataView& d, const unsigned char* wanted,
                           bool falls) {
  for (int s = 0; s < m.nsensor; s++) {
    if (wanted && !wanted[s]) continue;
    const char* reason = nullptr;
    if (falls && m.sensor_needstage[s] != stage::kPos) {
      reason = "trees fall asleep in this step, and MuJoCo then computes this sensor twice";
    }
    const int type = m.sensor_type[s];
    if (any_asleep(m, d) && (type == sensor::kForce || type == sensor::kTorque)) {
      const int body = m.site_bodyid[m.sensor_objid[s]];
      if (last_dof(m, body) < 0) reason = "it weighs trees that sleep";
    }
    if (reason) throw Unsupported(element_name(m, object::kSensor, s), reason, s);
  }
}

}  // namespace

Sleep::Sleep(const ModelView& m, const DataView& d, bool senses, const unsigned char* wanted,
             Arena& arena) {
  if (!(m.opt.enableflags & enable::kSleep)) return;
  const bool* falls = falling_trees(m, d, arena);
  State* all = arena.zeros<State>(m.nv);
  bool asleep = false, falling = false;
  for (int t = 0; t < m.ntree; t++) {
    const State state = is_asleep(m, d, t) ? kAsleep : falls[t] ? kFalling : kAwake;
    for (int i = 0; i < m.tree_dofnum[t]; i++) all[m.tree_dofadr[t] + i] = state;
    asleep |= state == kAsleep;
    falling |= state == kFalling;
  }
  if (!asleep && !falling) return;
  dof_ = all;
  if (m.opt.integrator == integrator::kRK4) {
    throw Unsupported("flag sleep", "MuJoCo does not support RK4 with sleeping trees");
  }
  if (asleep && m.opt.integrator == integrator::kDiscrete) {
    throw Unsupported("flag sleep",
                      "sleeping trees are not supported with the discrete integrator");
  }
  if (senses) require_sensors_awake(m, d, wanted, falling);
}

const DataView& Sleep::at_rest(const ModelView& m, const DataView& d, Arena& arena) const {
  if (!any_asleep(m, d)) return d;
  DataView* view = new (arena.take<DataView>(1)) DataView(d);
  for (const double** field :
       {&view->qacc, &view->qacc_smooth, &view->qfrc_smooth, &view->qfrc_constraint}) {
    double* still = arena.take<double>(m.nv);
    for (int i = 0; i < m.nv; i++) still[i] = dof_[i] == kAsleep ? 0 : (*field)[i];
    *field = still;
  }
  return *view;
}

void Sleep::hold(const ModelView& m, const Outputs& out) const {
  if (is_empty()) return;
  const std::size_t nx = state_size(m), nv = m.nv, nu = m.nu, ns = m.nsensordata;
  auto clear_row = [](double* block, std::size_t row, std::size_t width) {
    if (block) std::memset(block + row * width, 0, width * sizeof(double));
  };
  auto clear_column = [](double* block, std::size_t rows, std::size_t width, std::size_t column) {
    for (std::size_t r = 0; block && r < rows; r++) block[r * width + column] = 0;
  };
  for (std::size_t i = 0; i < nv; i++) {
    if (dof_[i] == kAwake) continue;
    for (std::size_t row : {i, nv + i}) {
      clear_row(out.A, row, nx), clear_row(out.B, row, nu), clear_row(out.Bf, row, nv);
    }
    if (dof_[i] != kAsleep) continue;
    for (std::size_t column : {i, nv + i}) {
      clear_column(out.A, nx, nx, column), clear_column(out.C, ns, nx, column);
    }
    clear_column(out.Bf, nx, nv, i), clear_column(out.Df, ns, nv, i);
  }
  for (std::size_t i = 0; out.A && i < nv; i++) {
    if (dof_[i] != kAwake) out.A[i * nx + i] = 1;
    if (dof_[i] == kAsleep) out.A[(nv + i) * nx + nv + i] = 1;
  }
}

const double* Sleep::without_asleep(const double* x, int copies, int nv, int size,
                                    Arena& arena) const {
  if (!x) return nullptr;
  double* y = arena.take<double>(size);
  std::memcpy(y, x, size * sizeof(double));
  for (int i = 0; i < copies * nv; i++) {
    if (dof_[i % nv] == kAsleep) y[i] = 0;
  }
  return y;
}

void Sleep::hold_tangent(const ModelView& m, const double* state, double* next) const {
  for (int i = 0; next && i < m.nv; i++) {
    if (dof_[i] == kAwake) continue;
    next[i] = state ? state[i] : 0;
    next[m.nv + i] = state && dof_[i] == kAsleep ? state[m.nv + i] : 0;
  }
}

const double* Sleep::without_still(const double* x, int nv, int size, Arena& arena) const {
  if (!x) return nullptr;
  double* y = arena.take<double>(size);
  std::memcpy(y, x, size * sizeof(double));
  for (int i = 0; i < 2 * nv; i++) {
    if (dof_[i % nv] != kAwake) y[i] = 0;
  }
  return y;
}

void Sleep::hold_cotangent(const ModelView& m, const double* next, double* state,
                           double* force) const {
  for (int i = 0; i < m.nv; i++) {
    if (dof_[i] == kAwake) continue;
    if (dof_[i] == kAsleep) {
      if (state) state[i] = state[m.nv + i] = 0;
      if (force) force[i] = 0;
    }
    if (!state || !next) continue;
    state[i] += next[i];
    if (dof_[i] == kAsleep) state[m.nv + i] += next[m.nv + i];
  }
}

}  // namespace mujacobian
