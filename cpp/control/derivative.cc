#include "control/derivative.h"

#include <algorithm>
#include <stdexcept>

#include "layout/engine.h"
#include "layout/sleep.h"
#include "step/support.h"

namespace mujacobian {

Backend backend_kind(const std::string& name) {
  constexpr const char* kNames[] = {"analytic", "fd", "fd_central", "wasp", "isolation"};
  for (int k = 0; k < 5; k++) {
    if (name == kNames[k]) return static_cast<Backend>(k);
  }
  throw std::invalid_argument("unknown backend " + name);
}

std::atomic<long long>& difference_count() {
  static std::atomic<long long> count{0};
  return count;
}

Differentiator::Differentiator(const void* model, Backend backend, double eps, bool warm_start)
    : model_(model), backend_(backend), eps_(eps), warm_start_(warm_start) {
  if (backend == Backend::kWasp) wasp_ = std::make_unique<Wasp>(model, eps);
}

void Differentiator::require(const unsigned char* sensors) const {
  const ModelView m = view_model(model_);
  if (backend_ == Backend::kAnalytic || backend_ == Backend::kIsolation) require_model(m);
  if (backend_ == Backend::kAnalytic) require_sensors(m, sensors);
}

void Differentiator::begin(int T, int shift) {
  if (wasp_) wasp_->begin(T, shift);
}

DataView Differentiator::forward_at(void* data, const double* row, const double* qacc) const {
  const ModelView m = view_model(model_);
  engine().mj_setState(model_, data, row, engine().integration_spec);
  std::copy_n(qacc, m.nv, const_cast<double*>(view_data(data).qacc_warmstart));
  require_state(m, view_data(data));
  forward(model_, data);
  return view_data(data);
}

void Differentiator::transition_here(const void* data, const Outputs& out, KeptStep* kept,
                                     Arena& arena) const {
  arena.reset();
  const ModelView m = view_model(model_);
  const DataView d = view_data(data);
  require_awake(m, d);
  if (kept) return kept->transition(without_sleep(m), d, out, arena);
  transition(without_sleep(m), d, out, arena);
}

void Differentiator::transition_at(void* data, const double* row, const double* qacc, int t,
                                   const Outputs& out, KeptStep* kept, Arena& arena) {
  const ModelView m = view_model(model_);
  engine().mj_setState(model_, data, row, engine().integration_spec);
  if (warm_start_) std::copy_n(qacc, m.nv, const_cast<double*>(view_data(data).qacc_warmstart));
  if (backend_ == Backend::kOneSided) return difference(data, false, out);
  if (backend_ == Backend::kCentral) return difference(data, true, out);
  if (backend_ == Backend::kWasp) return wasp_->evaluate(data, t, out, arena);
  // analytic, after one-sided C and D if isolated
  Outputs exact = out;
  if (backend_ == Backend::kIsolation) {
    difference(data, false, {nullptr, nullptr, out.C, out.D, nullptr, nullptr});
    if (!out.A && !out.B) return;
    exact.C = exact.D = nullptr;
  }
  forward_at(data, row, qacc);
  transition_here(data, exact, kept, arena);
}

void Differentiator::difference(void* data, bool central, const Outputs& out) const {
  const ModelView m = view_model(model_);
  transition_fd(model_, data, eps_, central, out.A, out.B, out.C, out.D);
  difference_count() += (state_size(m) + m.nu) * (central ? 2 : 1);
}

}  // namespace mujacobian
