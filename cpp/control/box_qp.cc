#include "control/box_qp.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "constraint/cholesky.h"
#include "spatial/lanes.h"

namespace mujacobian {
namespace {

constexpr int kIterations = 100;
constexpr double kArmijo = 0.1, kBacktrack = 0.6, kSmallest = 1e-20;

class BoxQp {
 public:
  BoxQp(const double* H, int stride, const double* g, const double* lower, const double* upper,
        int n, Arena& arena)
      : H_(H), g_(g), lower_(lower), upper_(upper), stride_(stride), n_(n) {
    gradient_ = arena.take<double>(n);
    step_ = arena.take<double>(n);
    trial_ = arena.take<double>(n);
    solution_.stride = round_to_lanes(n);
    solution_.free = arena.take<int>(n);
    solution_.factor = arena.take<double>(static_cast<std::size_t>(n) * solution_.stride);
    right_ = arena.take<double>(static_cast<std::size_t>(n) * kLanes);
  }

  bool solve(double* x) {
    for (int i = 0; i < n_; i++) x[i] = std::clamp(x[i], lower_[i], upper_[i]);
    bool is_newton = false;  // the last step went to the minimum over the free components
    for (int iteration = 0; iteration < kIterations; iteration++) {
      differentiate(x);
      const bool same = !update_free(x) && iteration > 0;
      if (same && is_newton) return true;
      if (!same && !factor()) return false;
      if (solution_.free_count == 0) return true;
      newton_step();
      is_newton = search(x);
      if (stalled_) return true;
    }
    return true;
  }

  const BoxSolution& solution() const { return solution_; }

 private:
  void differentiate(const double* x) {
    for (int i = 0; i < n_; i++) {
      double sum = g_[i];
      for (int j = 0; j < n_; j++) sum += H_[i * stride_ + j] * x[j];
      gradient_[i] = sum;
    }
  }

  // Components at a bound that the gradient presses them to are held. Returns whether that changes.
  bool update_free(const double* x) {
    int count = 0;
    bool changed = false;
    for (int i = 0; i < n_; i++) {
      const bool held =
          (x[i] == lower_[i] && gradient_[i] > 0) || (x[i] == upper_[i] && gradient_[i] < 0);
      if (held) continue;
      changed = changed || count >= solution_.free_count || solution_.free[count] != i;
      solution_.free[count++] = i;
    }
    changed = changed || count != solution_.free_count;
    solution_.free_count = count;
    return changed;
  }

  bool factor() {
    const int n = solution_.free_count, stride = solution_.stride;
    std::memset(solution_.factor, 0, static_cast<std::size_t>(n) * stride * sizeof(double));
    for (int a = 0; a < n; a++) {
      for (int b = 0; b <= a; b++) {
        solution_.factor[a * stride + b] = H_[solution_.free[a] * stride_ + solution_.free[b]];
      }
    }
    return factor_dense(solution_.factor, n, stride);
  }

  void newton_step() {
    const int n = solution_.free_count;
    for (int a = 0; a < n; a++) right_[a * kLanes] = gradient_[solution_.free[a]];
    solve_dense(solution_.factor, n, solution_.stride, right_, kLanes, 0, 1);
    std::memset(step_, 0, n_ * sizeof(double));
    for (int a = 0; a < n; a++) step_[solution_.free[a]] = -right_[a * kLanes];
  }

  // Along the projected step until the objective falls enough. True if the whole step was taken and
  // no bound was met.
  bool search(double* x) {
    stalled_ = false;
    double slope = 0;
    for (int i = 0; i < n_; i++) slope += gradient_[i] * step_[i];
    for (double size = 1; size > kSmallest; size *= kBacktrack) {
      bool cut = false;
      for (int i = 0; i < n_; i++) {
        const double whole = x[i] + size * step_[i];
        trial_[i] = std::clamp(whole, lower_[i], upper_[i]);
        cut = cut || trial_[i] != whole;
      }
      if (!cut && size == 1) {
        std::memcpy(x, trial_, n_ * sizeof(double));
        return true;
      }
      if (change(x) <= kArmijo * size * slope) {
        std::memcpy(x, trial_, n_ * sizeof(double));
        return false;
      }
    }
    stalled_ = true;  // nothing falls any more: rounding is all that is left
    return false;
  }

  // Objective at the trial minus that at x, whose gradient is known.
  double change(const double* x) const {
    double sum = 0;
    for (int i = 0; i < n_; i++) {
      double curved = 0;
      for (int j = 0; j < n_; j++) curved += H_[i * stride_ + j] * (trial_[j] - x[j]);
      sum += (trial_[i] - x[i]) * (gradient_[i] + 0.5 * curved);
    }
    return sum;
  }

  const double *H_, *g_, *lower_, *upper_;
  int stride_, n_;
  double *gradient_, *step_, *trial_, *right_;
  bool stalled_ = false;
  BoxSolution solution_{};
};

}  // namespace

bool solve_box_qp(const double* H, int stride, const double* g, const double* lower,
                  const double* upper, int n, double* x, BoxSolution& solution, Arena& arena) {
  BoxQp problem(H, stride, g, lower, upper, n, arena);
  const bool solved = problem.solve(x);
  solution = problem.solution();
  return solved;
}

}  // namespace mujacobian
