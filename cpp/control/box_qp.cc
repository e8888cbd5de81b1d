#include "control/box_qp.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "linear/cholesky.h"
#include "linear/lanes.h"

namespace mujacobian {
namespace {

constexpr double kRounding = 1e-13;  // rounding error of a gradient, relative to its summands

class BoxQp {
 public:
  BoxQp(const double* H, int stride, const double* g, const double* lower, const double* upper,
        int n, Arena& arena)
      : H_(H), g_(g), lower_(lower), upper_(upper), stride_(stride), n_(n) {
    gradient_ = arena.take<double>(n);
    noise_ = arena.take<double>(n);
    fixed_ = arena.take<bool>(n);
    right_ = arena.zeros<double>(static_cast<std::size_t>(n) * kLanes);
    solution_.stride = round_to_lanes(n);
    solution_.free = arena.take<int>(n);
    solution_.factor = arena.take<double>(static_cast<std::size_t>(n) * solution_.stride);
  }

  // Moves to the minimum over the free components. A component that reaches a bound on the way is
  // fixed. At a minimum, the fixed component with the steepest descent away from its bound is
  // released. Returns false if H is not positive definite over the free components.
  bool solve(double* x) {
    // initial active set: components at a bound that the descent direction points out of
    for (int i = 0; i < n_; i++) x[i] = std::clamp(x[i], lower_[i], upper_[i]);
    differentiate(x);
    for (int i = 0; i < n_; i++) {
      fixed_[i] = (x[i] == lower_[i] && gradient_[i] > 0) ||
                  (x[i] == upper_[i] && gradient_[i] < 0) || lower_[i] == upper_[i];
    }
    // each minimum is lower than the previous one, so no active set repeats
    for (int round = 0; round < 20 * (n_ + 5); round++) {
      if (!factor()) return false;
      if (move(x)) continue;
      differentiate(x);
      if (!release(x)) break;
    }
    return true;
  }

  const BoxSolution& solution() const { return solution_; }

 private:
  // Compute the gradient at x and its rounding error.
  void differentiate(const double* x) {
    for (int i = 0; i < n_; i++) {
      double sum = g_[i], size = std::abs(g_[i]);
      for (int j = 0; j < n_; j++) {
        const double part = H_[i * stride_ + j] * x[j];
        sum += part, size += std::abs(part);
      }
      gradient_[i] = sum, noise_[i] = kRounding * size;
    }
  }

  // Factor H over the free components. Returns whether it is positive definite.
  bool factor() {
    int n = 0;
    for (int i = 0; i < n_; i++) {
      if (!fixed_[i]) solution_.free[n++] = i;
    }
    solution_.free_count = n;
    const int stride = solution_.stride;
    std::memset(solution_.factor, 0, static_cast<std::size_t>(n) * stride * sizeof(double));
    for (int a = 0; a < n; a++) {
      for (int b = 0; b <= a; b++) {
        solution_.factor[a * stride + b] = H_[solution_.free[a] * stride_ + solution_.free[b]];
      }
    }
    return factor_dense(solution_.factor, n, stride);
  }

  // Take a Newton step over the free components, up to the first bound that one of them reaches.
  // Returns whether a component reached its bound; it is fixed then.
  bool move(double* x) {
    const int n = solution_.free_count;
    differentiate(x);
    for (int a = 0; a < n; a++) right_[a * kLanes] = gradient_[solution_.free[a]];
    solve_dense(solution_.factor, n, solution_.stride, right_, kLanes, 0, 1);
    // largest step size within the bounds
    double size = 1;
    int first = -1;  // free component that limits the step
    for (int a = 0; a < n; a++) {
      const int i = solution_.free[a];
      const double step = -right_[a * kLanes], end = x[i] + step;
      const double bound = end < lower_[i] ? lower_[i] : end > upper_[i] ? upper_[i] : end;
      if (bound == end) continue;
      const double part = (bound - x[i]) / step;
      if (part < size) size = part, first = a;
    }
    // take the step
    for (int a = 0; a < n; a++) {
      const int i = solution_.free[a];
      x[i] = std::clamp(x[i] - size * right_[a * kLanes], lower_[i], upper_[i]);
    }
    if (first < 0) return false;
    const int fixed = solution_.free[first];
    x[fixed] = right_[first * kLanes] > 0 ? lower_[fixed] : upper_[fixed];
    fixed_[fixed] = true;
    return true;
  }

  // Release the fixed component with the steepest descent away from its bound. Returns whether
  // there is one.
  bool release(const double* x) {
    int best = -1;
    double most = 0;
    for (int i = 0; i < n_; i++) {
      if (!fixed_[i] || lower_[i] == upper_[i]) continue;
      const double pull = (x[i] == lower_[i] ? -gradient_[i] : gradient_[i]) - noise_[i];
      if (pull > most) most = pull, best = i;
    }
    if (best >= 0) fixed_[best] = false;
    return best >= 0;
  }

  const double *H_, *g_, *lower_, *upper_;
  int stride_, n_;
  double *gradient_, *noise_, *right_;
  bool* fixed_;
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
