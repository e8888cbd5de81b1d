#include "rods/newton.h"

#include <algorithm>
#include <cmath>

#include "layout/interrupt.h"
#include "rods/algebra.h"

namespace mujacobian::rods {
namespace {

constexpr double kDecrease = 1e-4;   // fraction of the predicted decrease that a step must reach
constexpr double kRounding = 1e-13;  // rounding error of the energy, relative to its summands
constexpr double kSlack = 1e-15;     // the same, relative to forces times positions
constexpr double kFlatter = 0.5;     // fraction of the slope that may remain after such a step
constexpr double kTurn = 1;          // maximum rotation of a frame per iteration, rad
constexpr int kHalvings = 40;        // of the step size in a line search
constexpr double kProgress = 0.5;    // factor by which the Newton step must decrease ...
constexpr int kPatience = 8;         // ... in so many iterations, or rounding is suspected
constexpr int kStall = 20;           // iterations without progress after which the method gives up

double entry(Vec3 v) { return std::max({std::abs(v.x), std::abs(v.y), std::abs(v.z)}); }

}  // namespace

Newton::Newton(const Model& m)
    : model_(m),
      fixed_(m.fixed()),
      hessian_(m),
      gradient_(m.slots()),
      direction_(m.slots()),
      scratch_(m.slots()) {
  trial_.x.resize(m.mass.size());
  trial_.R.resize(m.moment.size());
}

double Newton::largest(const Tangent& d) const {
  double most = 0;
  for (size_t i = 0; i < d.size(); i++) {
    if (fixed_[i]) continue;
    if (!(entry(d[i]) <= most)) most = entry(d[i]);  // NaN is kept
  }
  return most;
}

int Newton::worst(const Tangent& d) const {
  const double most = largest(d);
  for (size_t i = 0; i < d.size(); i++) {
    if (!fixed_[i] && entry(d[i]) == most) return static_cast<int>(i);
  }
  return -1;
}

double Newton::slope_at(const Problem& p, const State& q) {
  Sum there;
  there.gradient = &scratch_;
  evaluate(p, q, there);
  double slope = 0;
  for (size_t i = 0; i < scratch_.size(); i++) {
    if (!fixed_[i]) slope += dot(scratch_[i], direction_[i]);
  }
  return slope;
}

bool Newton::is_rounding(const State& q) {
  // rounding errors of the gradient, with the signs of the Newton step
  hessian_.matrix().bound(q.x, model_.point_slot, scratch_);
  for (size_t i = 0; i < scratch_.size(); i++) {
    const Vec3 d = direction_[i];
    scratch_[i] = {std::copysign(scratch_[i].x, d.x), std::copysign(scratch_[i].y, d.y),
                   std::copysign(scratch_[i].z, d.z)};
  }
  hessian_.factor().solve(scratch_);
  return largest(direction_) <= largest(scratch_);
}

void Newton::guess(const Problem& p, State& q) {
  q = p.previous;
  Sum rest, again;
  evaluate(p, q, rest);
  for (size_t i = 0; i < q.x.size(); i++) {
    trial_.x[i] = model_.point_fixed[i] ? q.x[i] : 2.0 * q.x[i] - p.past[1]->x[i];
  }
  for (size_t i = 0; i < q.R.size(); i++) {
    const Mat3 step = times_transposed(q.R[i], orthonormal(p.past[1]->R[i]));
    trial_.R[i] = model_.frame_fixed[i] ? q.R[i] : orthonormal(step * q.R[i]);
  }
  evaluate(p, trial_, again);
  if (again.energy <= rest.energy) std::swap(q, trial_);
}

bool Newton::direct(const Problem& p, const State& q) {
  sum_.gradient = &gradient_;
  hessian_.fit(p, q);
  sum_.hessian = &hessian_.matrix();
  evaluate(p, q, sum_);
  if (!std::isfinite(sum_.energy)) return false;
  // shift the diagonal of the Hessian until it is positive definite
  shifted_ = !hessian_.factor().compute(hessian_.matrix(), fixed_, 0, false);
  for (double shift = 1e-10; shifted_ && shift < 1e5; shift *= 8) {
    if (hessian_.factor().compute(hessian_.matrix(), fixed_, shift, false)) break;
  }
  for (size_t i = 0; i < gradient_.size(); i++) direction_[i] = -gradient_[i];
  hessian_.factor().solve(direction_);
  return std::isfinite(largest(direction_));
}

bool Newton::search(const Problem& p, State& q) {
  double slope = 0, turned = 0;
  for (size_t i = 0; i < gradient_.size(); i++) {
    if (!fixed_[i]) slope += dot(gradient_[i], direction_[i]);
  }
  if (slope > kRounding * sum_.magnitude)
    return false;  // no shift made the Hessian positive definite
  // initial step size, limited by rotations
  for (int slot : model_.frame_slot) turned = std::max(turned, norm(direction_[slot]));
  double scale = turned > kTurn ? kTurn / turned : 1;
  // halve it until the energy decreases sufficiently
  Sum there;
  for (int k = 0; k < kHalvings; k++, scale /= 2) {
    move(model_, q, direction_, scale, trial_);
    evaluate(p, trial_, there);
    double rounding = kRounding * (sum_.magnitude + there.magnitude);
    if (there.energy <= sum_.energy + kDecrease * scale * slope + rounding) {
      std::swap(q, trial_);
      return true;
    }
    // where rounding hides the decrease, the slope decides
    rounding += kSlack * (sum_.leverage + there.leverage);
    if (there.energy <= sum_.energy + rounding &&
        std::abs(slope_at(p, trial_)) <= kFlatter * std::abs(slope)) {
      std::swap(q, trial_);
      return true;
    }
  }
  return false;
}

double Newton::chord(const Problem& p, const State& q) {
  sum_.gradient = &gradient_;
  sum_.hessian = nullptr;
  evaluate(p, q, sum_);
  // the estimate needs the Hessian without the shift
  if (shifted_) hessian_.factor().compute(hessian_.matrix(), fixed_, 0, true);
  for (size_t i = 0; i < gradient_.size(); i++) direction_[i] = -gradient_[i];
  hessian_.factor().solve(direction_);
  return hessian_.factor().singular() ? INFINITY : largest(direction_);
}

Report Newton::minimize(const Problem& p, const Options& options, State& q) {
  guess(p, q);
  Report report{Status::kIterations, 0, INFINITY, INFINITY, -1, -1};
  double smallest = INFINITY, lowest = INFINITY;  // Newton step and energy at the last progress
  int idle = 0;                                   // iterations since then
  while (report.iterations < options.iterations) {
    // Newton direction and line search
    poll_interrupt();
    if (!direct(p, q)) {
      report.status = Status::kNotFinite;
      break;
    }
    report.iterations++;
    if (!search(p, q)) {
      report.correction = largest(direction_);
      report.residual = largest(gradient_);
      report.status = Status::kLineSearch;
      break;
    }
    // converged if the simplified Newton step is small; this step is still taken
    report.correction = chord(p, q);
    report.residual = largest(gradient_);
    bool is_converged = report.correction <= options.tolerance;
    // or if it no longer decreases because of rounding
    const double drop = kRounding * sum_.magnitude;
    idle++;
    if (report.correction < kProgress * smallest) smallest = report.correction, idle = 0;
    if (sum_.energy < lowest - drop) lowest = sum_.energy, idle = 0;
    if (!is_converged && idle >= kPatience) is_converged = is_rounding(q);
    if (is_converged) {
      move(model_, q, direction_, 1, trial_);
      std::swap(q, trial_);
      report.status = Status::kConverged;
      break;
    }
    if (idle >= kStall) {
      report.status = Status::kStalled;
      break;
    }
  }
  if (report.status != Status::kConverged && report.status != Status::kNotFinite) {
    report.slot = worst(direction_);
    if (report.slot >= 0) report.contact = deepest_contact(p, q, report.slot);
  }
  for (Mat3& R : q.R) R = orthonormal(R);
  return report;
}

}  // namespace mujacobian::rods
