#include "control/wasp.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "control/derivative.h"
#include "control/policy.h"
#include "layout/engine.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

enum Kind { kCtrl, kAct, kVel, kPos };

constexpr double kAngle = 0.5, kLength = 0.5;  // tolerances of predictions, in cosine and length
constexpr double kStateShare = 0.5, kCtrlShare = 0.3;  // probes per column of a block, at most

// Returns a random orthonormal matrix (n, n), which is the same in each call.
std::vector<double> orthonormal(int n) {
  std::mt19937_64 random(n);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> basis(static_cast<std::size_t>(n) * n);
  for (int i = 0; i < n; i++) {
    double* row = basis.data() + static_cast<std::ptrdiff_t>(i) * n;
    for (int j = 0; j < n; j++) row[j] = uniform(random);
    // Gram-Schmidt, twice for orthogonality to rounding
    for (int pass = 0; pass < 2; pass++) {
      for (int k = 0; k < i; k++) {
        const double* other = basis.data() + static_cast<std::ptrdiff_t>(k) * n;
        double along = 0;
        for (int j = 0; j < n; j++) along += row[j] * other[j];
        for (int j = 0; j < n; j++) row[j] -= along * other[j];
      }
      double norm = 0;
      for (int j = 0; j < n; j++) norm += row[j] * row[j];
      for (int j = 0; j < n; j++) row[j] /= std::sqrt(norm);
    }
  }
  return basis;
}

// Returns whether a predicted change is close to the measured one in direction and length.
bool agree(const double* measured, const double* predicted, int n) {
  double a = 0, b = 0, ab = 0;
  for (int k = 0; k < n; k++) {
    a += measured[k] * measured[k], b += predicted[k] * predicted[k];
    ab += measured[k] * predicted[k];
  }
  if (a == 0 && b == 0) return true;
  if (a == 0 || b == 0) return false;
  const double cosine = ab / std::sqrt(a * b), ratio = std::sqrt(a / b);
  return std::abs(cosine - 1) <= kAngle &&
         std::min(std::abs(ratio - 1), std::abs(1 / ratio - 1)) <= kLength;
}

}  // namespace

Wasp::Wasp(const void* model, double eps) : model_(model), eps_(eps) {
  const ModelView m = view_model(model);
  nq_ = m.nq, nv_ = m.nv, na_ = m.na, nu_ = m.nu, nx_ = state_size(m), ns_ = m.nsensordata;
  auto add = [&](int kind, int size, int first, double share) {
    if (!size) return;
    const int most = std::max(1, static_cast<int>(share * size));
    blocks_.push_back({kind, size, first, most, orthonormal(size)});
  };
  // in this order, a probe can reuse the earlier stages of MuJoCo's step
  add(kCtrl, nu_, nx_, kCtrlShare);
  add(kAct, na_, 2 * nv_, kStateShare);
  add(kVel, nv_, nv_, kStateShare);
  add(kPos, nv_, 0, kStateShare);
}

void Wasp::begin(int T, int shift) {
  if (knots_.empty() || shift < 0 || shift >= static_cast<int>(knots_.size())) {
    knots_.assign(T, {});
    return;
  }
  knots_.erase(knots_.begin(), knots_.begin() + shift);
  const Knot last = knots_.back();
  knots_.resize(T, last);
}

void Wasp::evaluate(void* data, int t, const Outputs& out, Arena& arena) {
  Knot& knot = knots_[t];
  arena.reset();
  double* row = arena.take<double>(engine().mj_stateSize(model_, engine().integration_spec));
  engine().mj_getState(model_, data, row, engine().integration_spec);
  if (!knot.is_known) {
    // the first plan: all columns
    fill(data, knot, arena);
  } else {
    // later plans: a few directions of each block, relative to the step at the state
    double* base = arena.take<double>(nq_ + nv_ + na_ + ns_);
    step_skip(model_, data, stage::kNone);
    read(data, base);
    for (std::size_t k = 0; k < blocks_.size(); k++) {
      correct(data, row, blocks_[k], knot, knot.next[k], base, arena);
    }
  }
  write(knot, out);
}

// Compute the whole Jacobian by one-sided differences.
void Wasp::fill(void* data, Knot& knot, Arena& arena) const {
  double *A = arena.take<double>(nx_ * nx_), *B = arena.take<double>(nx_ * nu_),
         *C = arena.take<double>(ns_ * nx_), *D = arena.take<double>(ns_ * nu_);
  transition_fd(model_, data, eps_, false, A, B, ns_ ? C : nullptr, ns_ ? D : nullptr);
  difference_count() += nx_ + nu_;
  const int rows = nx_ + ns_;
  knot.columns.resize(static_cast<std::size_t>(nx_ + nu_) * rows);
  for (int j = 0; j < nx_ + nu_; j++) {
    double* column = knot.columns.data() + static_cast<std::ptrdiff_t>(j) * rows;
    for (int i = 0; i < rows; i++) {
      const double* state = i < nx_ ? A + i * nx_ : C + (i - nx_) * nx_;
      const double* ctrl = i < nx_ ? B + i * nu_ : D + (i - nx_) * nu_;
      column[i] = j < nx_ ? state[j] : ctrl[j - nx_];
    }
  }
  knot.is_known = true;
}

// Write the state and sensor readings of `data`.
void Wasp::read(const void* data, double* out) const {
  const DataView d = view_data(data);
  read_state(view_model(model_), d, out);
  std::copy(d.sensordata, d.sensordata + ns_, out + nq_ + nv_ + na_);
}

// Change the inputs of a block by eps times a direction. Controls that would leave their range do
// not change; `used` is the remaining direction. Returns false if it is zero.
bool Wasp::perturb(const void* data, const Block& block, const double* direction,
                   double* used) const {
  const ModelView m = view_model(model_);
  const DataView d = view_data(data);
  std::copy(direction, direction + block.size, used);
  if (block.kind == kPos) {
    engine().mj_integratePos(model_, const_cast<double*>(d.qpos), direction, eps_);
    return true;
  }
  double* values = const_cast<double*>(block.kind == kVel   ? d.qvel
                                       : block.kind == kAct ? d.act
                                                            : d.ctrl);
  // limited controls: try both signs of the direction
  bool any = block.kind != kCtrl;
  for (double sign : {1.0, -1.0}) {
    for (int j = 0; j < block.size && block.kind == kCtrl; j++) {
      const double moved = values[j] + sign * eps_ * direction[j];
      const bool inside = !m.actuator_ctrllimited[j] || (moved >= m.actuator_ctrlrange[2 * j] &&
                                                         moved <= m.actuator_ctrlrange[2 * j + 1]);
      used[j] = inside ? sign * direction[j] : 0;
      any = any || used[j] != 0;
    }
    if (any) break;
  }
  for (int j = 0; j < block.size; j++) values[j] += eps_ * used[j];
  return any;
}

// Probe directions until the Jacobian predicts the change well, and correct it along each of them.
void Wasp::correct(void* data, const double* row, const Block& block, Knot& knot, int& next,
                   const double* base, Arena& arena) const {
  const Arena::Mark mark = arena.mark();
  const int rows = nx_ + ns_, size = nq_ + nv_ + na_;
  double *after = arena.take<double>(size + ns_), *change = arena.take<double>(rows),
         *predicted = arena.take<double>(rows), *used = arena.take<double>(block.size);
  double* columns = knot.columns.data() + static_cast<std::ptrdiff_t>(block.first) * rows;
  const int skipped = block.kind == kPos   ? stage::kNone
                      : block.kind == kVel ? stage::kPos
                                           : stage::kVel;
  const ModelView m = view_model(model_);
  for (int probe = 0; probe < block.most; probe++) {
    // difference quotient along the next direction
    const double* direction = block.basis.data() + static_cast<std::ptrdiff_t>(next) * block.size;
    next = (next + 1) % block.size;
    engine().mj_setState(model_, data, row, engine().integration_spec);
    if (!perturb(data, block, direction, used)) continue;
    step_skip(model_, data, skipped);
    read(data, after);
    difference_count()++;
    difference_states(m, base, after, change);
    for (int i = 0; i < ns_; i++) change[nx_ + i] = after[size + i] - base[size + i];
    for (int i = 0; i < rows; i++) change[i] /= eps_;

    // prediction by the present Jacobian
    std::memset(predicted, 0, rows * sizeof(double));
    double length = 0;
    for (int j = 0; j < block.size; j++) {
      const double* column = columns + static_cast<std::ptrdiff_t>(j) * rows;
      for (int i = 0; i < rows; i++) predicted[i] += used[j] * column[i];
      length += used[j] * used[j];
    }
    // rank-one correction, after which the prediction along this direction is exact
    for (int j = 0; j < block.size; j++) {
      double* column = columns + static_cast<std::ptrdiff_t>(j) * rows;
      const double scale = used[j] / length;
      for (int i = 0; i < rows; i++) column[i] += scale * (change[i] - predicted[i]);
    }
    if (agree(change, predicted, nx_) && agree(change + nx_, predicted + nx_, ns_)) break;
  }
  arena.rewind(mark);
}

// Copy the Jacobian of a knot to the blocks of the caller.
void Wasp::write(const Knot& knot, const Outputs& out) const {
  const int rows = nx_ + ns_;
  auto copy = [&](double* block, int first, int count, int from, int width) {
    for (int i = 0; block && i < count; i++) {
      for (int j = 0; j < width; j++) {
        block[static_cast<std::ptrdiff_t>(i) * width + j] =
            knot.columns[static_cast<std::size_t>(from + j) * rows + first + i];
      }
    }
  };
  copy(out.A, 0, nx_, 0, nx_);
  copy(out.B, 0, nx_, nx_, nu_);
  copy(out.C, nx_, ns_, 0, nx_);
  copy(out.D, nx_, ns_, nx_, nu_);
}

}  // namespace mujacobian
