#include "adjoint/trajectory.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "adjoint/curve.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/interrupt.h"
#include "layout/notice.h"
#include "layout/sleep.h"
#include "layout/unsupported.h"
#include "second_order/product.h"
#include "step/support.h"

namespace mujacobian {
namespace {

// Returns row t of an array with rows of length n; null if the array is null.
template <class T>
T* row(T* array, int t, int n) {
  return array ? array + static_cast<std::ptrdiff_t>(t) * n : nullptr;
}

void copy(double* to, const double* from, int n) {
  if (to && from) std::memcpy(to, from, n * sizeof(double));
}

void apply(const ModelView& m, const DataView& d, const Inputs& inputs, int t) {
  auto write = [&](const double* field, const double* values, int n) {
    copy(const_cast<double*>(field), row(values, t, n), n);
  };
  write(d.ctrl, inputs.ctrl, m.nu);
  write(d.qfrc_applied, inputs.force, m.nv);
  write(d.xfrc_applied, inputs.wrench, 6 * m.nbody);
  if (const double* mocap = row(inputs.mocap, t, 7 * m.nmocap)) {
    copy(const_cast<double*>(d.mocap_pos), mocap, 3 * m.nmocap);
    copy(const_cast<double*>(d.mocap_quat), mocap + 3 * m.nmocap, 4 * m.nmocap);
  }
}

// The model in a trajectory: no tree sleeps, and steps are coupled through their histories outside
// of their derivatives.                                                                  (ADJ-9)
ModelView trajectory_model(const void* model) {
  ModelView m = without_sleep(view_model(model));
  m.open_histories = true;
  return m;
}

void write_state(const ModelView& m, const DataView& d, const double* state) {
  copy(const_cast<double*>(d.qpos), state, m.nq);
  copy(const_cast<double*>(d.qvel), state + m.nq, m.nv);
  copy(const_cast<double*>(d.act), state + m.nq + m.nv, m.na);
}

void record_state(const ModelView& m, const DataView& d, double* states, int t) {
  if (!states) return;
  double* to = row(states, t, m.nq + m.nv + m.na);
  copy(to, d.qpos, m.nq);
  copy(to + m.nq, d.qvel, m.nv);
  copy(to + m.nq + m.nv, d.act, m.na);
}

}  // namespace

void pull_wrenches(const ModelView& m, const DataView& d, const double* y, double* out,
                   Arena& arena) {
  Motion* moved = arena.take<Motion>(m.nbody);
  moved[0] = {};
  for (int b = 1; b < m.nbody; b++) {
    moved[b] = moved[m.body_parentid[b]];
    for (int dof = m.body_dofadr[b]; dof >= 0 && dof < m.body_dofadr[b] + m.body_dofnum[b]; dof++) {
      moved[b] = moved[b] + y[dof] * load_motion(d.cdof + 6 * dof);
    }
  }
  for (int b = 0; b < m.nbody; b++) {
    Vec3 offset = load3(d.xipos + 3 * b) - load3(d.subtree_com + 3 * m.body_rootid[b]);
    store3(out + 6 * b, at_point(moved[b], offset));
    store3(out + 6 * b + 3, moved[b].ang);
  }
}

void append_mocap(const ModelView& m, std::vector<Parameter>& params) {
  std::vector<int> body(m.nmocap);
  for (int b = 0; b < m.nbody; b++) {
    if (m.body_mocapid[b] >= 0) body[m.body_mocapid[b]] = b;
  }
  for (int b : body) {
    for (int k = 0; k < 3; k++) params.push_back({Parameter::kMocapPosition, b, k});
    for (int k = 0; k < 3; k++) params.push_back({Parameter::kMocapRotation, b, k});
  }
}

namespace {

// Simulates as `simulate` does. Calls starting(t, d) before each step and taken(t, d) after it.
template <class F, class G>
int run(const void* model, void* data, const double* state, int T, const Inputs& inputs,
        const Record& record, F starting, G taken) {
  const ModelView m = trajectory_model(model);
  const int size = engine().mj_stateSize(model, engine().integration_spec);
  reset(model, data);
  if (state) engine().mj_setState(model, data, state, engine().integration_spec);
  DataView d = view_data(data);
  if (inputs.state) write_state(m, d, inputs.state);
  record_state(m, d, record.states, 0);
  for (int t = 0; t < T; t++) {
    poll_interrupt();
    apply(m, d, inputs, t);
    if (record.start && t % record.every == 0) {
      engine().mj_getState(model, data, row(record.start, t / record.every, size),
                           engine().integration_spec);
    }
    starting(t, d);
    if (!step(model, data, d)) return t;
    require_awake(m, d);
    copy(row(record.sensors, t, m.nsensordata), d.sensordata, m.nsensordata);
    record_state(m, d, record.states, t + 1);
    taken(t, d);
  }
  return T;
}

// The fields that a step changes and that its derivative reads. mj_step leaves all other fields as
// mj_forward computed them.
class Moved {
 public:
  explicit Moved(const ModelView& m)
      : sizes_{m.nq, m.nv, m.na, m.nplastic}, other_(m.nq + m.nv + m.na + m.nplastic) {}

  void keep(const DataView& d) {
    visit(d, [](double* kept, double* now, int n) { copy(kept, now, n); });
  }
  void exchange(const DataView& d) {
    visit(d, [](double* kept, double* now, int n) { std::swap_ranges(now, now + n, kept); });
  }

 private:
  template <class F>
  void visit(const DataView& d, F f) {
    const double* fields[] = {d.qpos, d.qvel, d.act, d.plastic};
    double* kept = other_.data();
    for (int k = 0; k < 4; kept += sizes_[k++]) f(kept, const_cast<double*>(fields[k]), sizes_[k]);
  }
  int sizes_[4];
  std::vector<double> other_;
};

// Pushes changes of a trajectory through its steps.
class Pusher {
 public:
  Pusher(const ModelView& m, const ParameterList& params, const Sensitivity& along)
      : m_(m), params_(params), along_(along), given_(along.count), made_(along.count) {
    require_parameters(m, params);
    direct_ = along.sensors && sensors_depend(m, params, along.weights);
  }

  // Pushes the changes through step t. mj_forward has run on its state.
  void push(const DataView& d, int t) {
    const int nx = state_size(m_), ns = m_.nsensordata, count = along_.count;
    for (int k = 0; k < count; k++) {
      const double* direction = row(along_.params, k, params_.count);
      given_[k] = {row(along_.states, t * count + k, nx), nullptr, nullptr, direction};
      made_[k] = {row(along_.states, (t + 1) * count + k, nx),
                  row(along_.sensors, t * count + k, ns)};
    }
    arena_.reset();
    jvp(m_, d, given_.data(), params_, direct_, made_.data(), count, arena_);
  }

 private:
  const ModelView& m_;
  const ParameterList& params_;
  const Sensitivity& along_;
  std::vector<Tangent> given_;
  std::vector<Change> made_;
  bool direct_;  // sensors depend on the parameters directly
  Arena arena_;
};

// Puts `data` into the state before step t, and evaluates it.
DataView start_step(const ModelView& m, const void* model, void* data, const double* start, int t) {
  const int size = engine().mj_stateSize(model, engine().integration_spec);
  poll_interrupt();
  engine().mj_setState(model, data, row(start, t, size), engine().integration_spec);
  require_state(m, view_data(data));
  forward(model, data);
  const DataView d = view_data(data);
  require_awake(m, d);
  return d;
}

// y += x
void add(double* y, const double* x, int n) {
  for (int k = 0; x && k < n; k++) y[k] += x[k];
}

// Returns x, or null if all entries are zero.
const double* nonzero(const double* x, int n) {
  return x && std::any_of(x, x + n, [](double value) { return value != 0; }) ? x : nullptr;
}

// Returns step t if it is kept with everything that its product needs, otherwise null.
const KeptStep* kept_step(const KeptTrajectory& kept, int t, bool forces) {
  if (static_cast<std::size_t>(t) >= kept.steps.size()) return nullptr;
  const KeptStep& step = kept.steps[t];
  return step.is_kept() && (step.has_forces() || !forces) ? &step : nullptr;
}

// Returns whether a kept step suffices for these cotangents of the sensors; null: zero.
bool may_use(const ModelView& m, const double* sensors, Arena& arena) {
  return !sensors || may_keep_sensors(m, sensors, arena);
}

void make_room(KeptTrajectory& kept, int T) {
  while (kept.steps.size() < static_cast<std::size_t>(T)) kept.steps.emplace_back();
}

double norm(const double* x, int n) {
  double sum = 0;
  for (int k = 0; k < n; k++) sum += x[k] * x[k];
  return std::sqrt(sum);
}

}  // namespace

int simulate(const void* model, void* data, const double* state, int T, const Inputs& inputs,
             const Record& record) {
  auto nothing = [](int, const DataView&) {};
  return run(model, data, state, T, inputs, record, nothing, nothing);
}

int simulate(const void* model, void* data, const double* state, int T, const Inputs& inputs,
             const Record& record, bool forces, KeptTrajectory& kept) {
  const ModelView m = trajectory_model(model);
  make_room(kept, T);
  const Notices others = take_notices();
  Moved moved(m);
  auto starting = [&](int, const DataView& d) { moved.keep(d); };
  auto keep = [&](int t, const DataView& d) {
    moved.exchange(d);
    try {
      require_state(m, d);
      kept.steps[t].differentiate(m, d, forces);
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception&) {
      kept.steps[t].clear();  // pull_back evaluates the step again and throws
    }
    moved.exchange(d);
  };
  const int taken = run(model, data, state, T, inputs, record, starting, keep);
  kept.found = take_notices();
  notices() = others;
  return taken;
}

std::optional<BatchFailure> pull_back(const void* model, void* data, const double* start, int T,
                                      const TrajectoryCotangent& given, const ParameterList& params,
                                      const TrajectoryPullback& out, double* cotangent,
                                      const KeptTrajectory* kept, Arena& arena) {
  const ModelView m = trajectory_model(model);
  const int nx = state_size(m), ns = m.nsensordata;
  std::vector<double> next(cotangent, cotangent + nx), forces(m.nv);
  // the poses of mocap bodies are parameters of a single step
  std::vector<Parameter> moved(params.item, params.item + params.count);
  if (out.mocap) append_mocap(m, moved);
  const ParameterList all{moved.data(), static_cast<int>(moved.size())};
  std::vector<double> by_parameter(all.count);
  const bool wants_force = out.force || out.wrench;
  const bool may_use = kept && !given.sensors && all.count == 0;
  if (may_use) notices().merge(kept->found);
  for (int t = T - 1; t >= 0; t--) {
    try {
      if (out.wrench && m.opt.integrator == integrator::kRK4) {
        throw Unsupported("xfrc_applied", "the integrator RK4 applies it at several poses");
      }
      double* force = out.force ? row(out.force, t, m.nv) : forces.data();
      const Pullback to{cotangent, row(out.ctrl, t, m.nu), wants_force ? force : nullptr,
                        by_parameter.data()};
      arena.reset();
      const KeptStep* step = may_use ? kept_step(*kept, t, wants_force) : nullptr;
      const DataView d = step ? step->data() : start_step(m, model, data, start, t);
      std::fill(by_parameter.begin(), by_parameter.end(), 0.);
      if (step) {
        poll_interrupt();
        vjp(m, *step, {next.data(), nullptr}, to, arena);
      } else {
        vjp(m, d, {next.data(), row(given.sensors, t, ns)}, all, to, arena);
      }
      for (int k = 0; k < params.count; k++) out.params[k] += by_parameter[k];
      copy(row(out.mocap, t, 6 * m.nmocap), by_parameter.data() + params.count, 6 * m.nmocap);
      if (out.wrench) pull_wrenches(m, d, force, row(out.wrench, t, 6 * m.nbody), arena);
    } catch (const std::exception&) {
      copy(cotangent, next.data(), nx);  // of the state after the step that failed
      return BatchFailure{t, std::current_exception()};
    }
    add(cotangent, row(given.states, t, nx), nx);
    if (out.norms) out.norms[t] = norm(cotangent, nx);
    copy(next.data(), cotangent, nx);
  }
  return std::nullopt;
}

std::optional<BatchFailure> push_forward(const void* model, void* data, const double* start, int T,
                                         const ParameterList& params, const Sensitivity& along) {
  const ModelView m = trajectory_model(model);
  Pusher pusher(m, params, along);
  for (int t = 0; t < T; t++) {
    try {
      pusher.push(start_step(m, model, data, start, t), t);
    } catch (const std::exception&) {
      return BatchFailure{t, std::current_exception()};
    }
  }
  return std::nullopt;
}

std::optional<BatchFailure> simulate_and_push(const void* model, void* data, const double* state,
                                              int T, const Inputs& inputs, const Record& record,
                                              const ParameterList& params, const Sensitivity& along,
                                              int& taken) {
  const ModelView m = trajectory_model(model);
  Moved moved(m);
  Pusher pusher(m, params, along);

  // before a step, keep the state
  int current = 0;
  auto starting = [&](int t, const DataView& d) {
    current = t;
    moved.keep(d);
  };

  // after a step, put the kept state back and differentiate there. mj_forward need not run again,
  // except for RK4, where the last stage has overwritten its results.
  const bool elsewhere = m.opt.integrator == integrator::kRK4;
  std::vector<double> next(elsewhere ? engine().mj_stateSize(model, engine().integration_spec) : 0);
  auto push = [&](int t, const DataView& d) {
    if (elsewhere) engine().mj_getState(model, data, next.data(), engine().integration_spec);
    moved.exchange(d);
    require_state(m, d);
    if (elsewhere) forward(model, data);
    pusher.push(elsewhere ? view_data(data) : d, t);
    moved.exchange(d);
    if (elsewhere) engine().mj_setState(model, data, next.data(), engine().integration_spec);
  };

  try {
    taken = run(model, data, state, T, inputs, record, starting, push);
  } catch (const std::exception&) {
    return BatchFailure{current, std::current_exception()};
  }
  return std::nullopt;
}

std::optional<BatchFailure> push_direction(const void* model, void* data, const double* start,
                                           int T, const double* ctrl,
                                           const ParameterDirection& params, double* states,
                                           double* sensors, const Keeping& keeping, Arena& arena) {
  const ModelView m = trajectory_model(model);
  const int nx = state_size(m);
  require_parameters(m, params.list);
  const bool direct = sensors && params.along && sensors_depend(m, params.list, nullptr);
  if (keeping.steps) make_room(*keeping.steps, T);
  for (int t = 0; t < T; t++) {
    try {
      arena.reset();
      const Tangent along{row(states, t, nx), row(ctrl, t, m.nu), nullptr, params.along};
      const Change made{row(states, t + 1, nx), row(sensors, t, m.nsensordata)};
      const double* given = nonzero(row(keeping.sensors, t, m.nsensordata), m.nsensordata);
      const bool keeps =
          keeping.steps && !sensors && T - t <= keeping.most && may_use(m, given, arena);
      KeptStep* step = keeps ? &keeping.steps->steps[t] : nullptr;
      DataView d;
      if (!step || !step->is_kept()) d = start_step(m, model, data, start, t);
      if (step && !step->is_kept()) step->differentiate(m, d, false);
      poll_interrupt();
      if (step && step->is_kept()) {
        jvp(m, *step, along, params.list, made.state, arena);
      } else {
        jvp(m, d, &along, params.list, direct, &made, 1, arena);
      }
    } catch (const std::exception&) {
      return BatchFailure{t, std::current_exception()};
    }
  }
  return std::nullopt;
}

std::optional<BatchFailure> pull_back_twice(const void* model, void* data, const double* start,
                                            int T, const TrajectoryCotangent& given,
                                            const TrajectoryDirection& along, double* ctrl,
                                            double* norms, const ParameterProducts& params,
                                            double* cotangent, double* change,
                                            const KeptTrajectory* kept) {
  const ModelView m = trajectory_model(model);
  const int nx = state_size(m), ns = m.nsensordata;
  Arena arena;
  const ParameterList& list = along.params.list;
  std::vector<double> made(2 * list.count);
  const CurvedParameters curved =
      curved_parameters(list, along.params.along, made.data(), made.data() + list.count);
  std::vector<double> next(cotangent, cotangent + nx), next_change(change, change + nx);
  for (int t = T - 1; t >= 0; t--) {
    try {
      const double* sensors = nonzero(row(given.sensors, t, ns), ns);
      arena.reset();
      const KeptStep* step =
          kept && may_use(m, sensors, arena) ? kept_step(*kept, t, false) : nullptr;
      const DataView d = step ? step->data() : start_step(m, model, data, start, t);
      poll_interrupt();
      arena.reset();
      if (list.count) require_curved(m, list, sensors);
      const StepDirection direction{row(along.states, t, nx), row(along.ctrl, t, m.nu), nullptr};
      const InputCotangent first{sensors ? nullptr : cotangent, nullptr, nullptr},
          second{change, row(ctrl, t, m.nu), nullptr};
      const StepCotangent out{next.data(), sensors};
      const CurvedParameters* with = list.count ? &curved : nullptr;
      if (step) {
        pull_back_twice(m, *step, out, next_change.data(), direction, first, second, with, arena);
      } else {
        pull_back_twice(m, d, out, next_change.data(), direction, first, second, with, arena);
      }
      add(params.first, made.data(), list.count);
      add(params.second, made.data() + list.count, list.count);
      arena.reset();
      if (sensors) {
        const Cotangent results{next.data(), sensors};
        const Pullback to{cotangent, nullptr, nullptr, nullptr};
        step ? vjp(m, *step, results, to, arena) : vjp(m, d, results, {nullptr, 0}, to, arena);
      }
    } catch (const std::exception&) {
      return BatchFailure{t, std::current_exception()};
    }
    add(cotangent, row(given.states, t, nx), nx);
    add(change, row(along.changes, t, nx), nx);
    norms[t] = norm(change, nx);
    copy(next.data(), cotangent, nx);
    copy(next_change.data(), change, nx);
  }
  return std::nullopt;
}

}  // namespace mujacobian
