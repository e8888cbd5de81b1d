#include "control/box_qp.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "linear/cholesky.h"
#include "linear/lanes.h"

namespace mujacobian {
namespace {

constexpr double kRounding = 1e-13;  // of a gradient, relative to the terms it is the sum of

class BoxQp {
 public:
  BoxQp(const double* H, int stride, const double* g, const double* lower, const double* upper,
        int n, Arena& arena)
      : H_(H), g_(g), lower_(lower), upper_(upper), stride_(stride), n_(n) {
    gradient_ = arena.take<double>(n);
    noise_ = arena.take<double>(n);
    clamped_ = arena.take<bool>(n);
    right_ = arena.zeros<double>(static_cast<std::size_t>(n) * kLanes);
    solution_.stride = round_to_lanes(n);
    solution_.free = arena.take<int>(n);
    solution_.factor = arena.take<double>(static_cast<std::size_t>(n) * solution_.stride);
  }

  // To the minimum over the free components, or until one of them meets its bound and is clamped
  // there; from a minimum, the clamped component that the gradient pulls hardest is set free.
  bool solve(double* x) {
    for (int i = 0; i < n_; i++) x[i] = std::clamp(x[i], lower_[i], upper_[i]);
    differentiate(x);
    for (int i = 0; i < n_; i++) {
      clamped_[i] = (x[i] == lower_[i] && gradient_[i] > 0) ||
                    (x[i] == upper_[i] && gradient_[i] < 0) || lower_[i] == upper_[i];
    }
    // every minimum is lower than the last, so no set of free components comes twice
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

  bool factor() {
    int n = 0;
    for (int i = 0; i < n_; i++) {
      if (!clamped_[i]) solution_.free[n++] = i;
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

  // A Newton step over the free components, cut where the first one meets a bound. Whether one did.
  bool move(double* x) {
    const int n = solution_.free_count;
    differentiate(x);
    for (int a = 0; a < n; a++) right_[a * kLanes] = gradient_[solution_.free[a]];
    solve_dense(solution_.factor, n, solution_.stride, right_, kLanes, 0, 1);
    double size = 1;
    int first = -1;  // among the free ones
    for (int a = 0; a < n; a++) {
      const int i = solution_.free[a];
      const double step = -right_[a * kLanes], end = x[i] + step;
      const double bound = end < lower_[i] ? lower_[i] : end > upper_[i] ? upper_[i] : end;
      if (bound == end) continue;
      const double part = (bound - x[i]) / step;
      if (part < size) size = part, first = a;
    }
    for (int a = 0; a < n; a++) {
      const int i = solution_.free[a];
      x[i] = std::clamp(x[i] - size * right_[a * kLanes], lower_[i], upper_[i]);
    }
    if (first < 0) return false;
    const int bound = solution_.free[first];
    x[bound] = right_[first * kLanes] > 0 ? lower_[bound] : upper_[bound];
    clamped_[bound] = true;
    return true;
  }

  // Set free the clamped component whose gradient pulls it hardest from its bound, if any does.
  bool release(const double* x) {
    int best = -1;
    double most = 0;
    for (int i = 0; i < n_; i++) {
      if (!clamped_[i] || lower_[i] == upper_[i]) continue;
      const double pull = (x[i] == lower_[i] ? -gradient_[i] : gradient_[i]) - noise_[i];
      if (pull > most) most = pull, best = i;
    }
    if (best >= 0) clamped_[best] = false;
    return best >= 0;
  }

  const double *H_, *g_, *lower_, *upper_;
  int stride_, n_;
  double *gradient_, *noise_, *right_;
  bool* clamped_;
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
