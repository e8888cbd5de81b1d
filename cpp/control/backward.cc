#include "control/backward.h"

#include <cstring>

#include "control/box_qp.h"
#include "linear/cholesky.h"
#include "linear/dense.h"
#include "linear/lanes.h"

namespace mujacobian {
namespace {

// One backward pass. Q(z) = Qz^T z + z^T Qzz z / 2 is the cost to go at a knot as a function of
// z = (x, u), and V(x) = Vx^T x + x^T Vxx x / 2 its minimum at the next knot.
class Pass {
 public:
  Pass(const BackwardProblem& p, Arena& arena)
      : p_(p), nx_(p.nx), nu_(p.nu), nz_(p.nx + p.nu), arena_(arena) {
    stride_ = round_to_lanes(nz_);
    x_stride_ = round_to_lanes(nx_);
    F_ = zeros(nx_, stride_), P_ = zeros(nx_, stride_), Qzz_ = zeros(nz_, stride_);
    Qz_ = zeros(1, stride_), Vx_ = zeros(1, nx_), Vxx_ = zeros(nx_, x_stride_);
    slope_ = zeros(1, stride_), Vx_slope_ = zeros(1, nx_);
    Vu_ = zeros(1, nu_), Vu_slope_ = zeros(1, nu_);
    Vux_ = zeros(nu_, x_stride_), Vuu_ = zeros(nu_, stride_);
    // consecutive, so that one product has the factors (gain, Qux) and (curved, gain)
    curved_ = zeros(3 * nu_, x_stride_);
    gain_ = curved_ + nu_ * x_stride_, Qux_ = gain_ + nu_ * x_stride_;
    Quu_ = zeros(nu_, stride_), lower_ = zeros(1, nu_), upper_ = zeros(1, nu_);
  }

  // Returns the knot at which the problem is not convex, or -1.
  int run(BackwardPass& out) {
    out.expected[0] = out.expected[1] = 0;
    start();
    store_value(out.values, p_.T - 1);
    for (int t = p_.T - 2; t >= 0; t--) {
      if (p_.gaps) cross_gap(p_.gaps + static_cast<std::ptrdiff_t>(t + 1) * nx_, out.expected);
      expand(t);
      regularize();
      const Arena::Mark mark = arena_.mark();
      double* step = out.steps + static_cast<std::ptrdiff_t>(t) * nu_;
      const bool convex = minimize(step);
      arena_.rewind(mark);
      if (!convex) return t;
      store_gain(out.gains + static_cast<std::ptrdiff_t>(t) * nu_ * nx_);
      update_value(step, out.expected);
      store_value(out.values, t);
    }
    return -1;
  }

 private:
  double* zeros(int rows, int columns) {
    return arena_.zeros<double>(static_cast<std::size_t>(rows) * columns);
  }
  const double* hessian(int t) const {
    return p_.hessian + static_cast<std::ptrdiff_t>(t) * nz_ * stride_;
  }

  // Value at the last knot, which has the control of the previous knot                   (ILQ-6)
  void start() {
    const int t = p_.T - 1;
    const double *g = p_.gradient + static_cast<std::ptrdiff_t>(t) * nz_, *H = hessian(t);
    std::memcpy(Vx_, g, nx_ * sizeof(double));
    std::memcpy(Vx_slope_, g, nx_ * sizeof(double));
    std::memcpy(Vu_, g + nx_, nu_ * sizeof(double));
    std::memcpy(Vu_slope_, g + nx_, nu_ * sizeof(double));
    for (int i = 0; i < nx_; i++) {
      std::memcpy(Vxx_ + i * x_stride_, H + i * stride_, nx_ * sizeof(double));
    }
    for (int i = 0; i < nu_; i++) {
      const double* row = H + (nx_ + i) * stride_;
      std::memcpy(Vux_ + i * x_stride_, row, nx_ * sizeof(double));
      std::memcpy(Vuu_ + i * stride_, row + nx_, nu_ * sizeof(double));
    }
  }

  // The value as a function of the change of the end of a step, which is `gap` before the state of
  // the next knot. The last knot also depends on the control before it.                  (ILQ-23)
  void cross_gap(const double* gap, double expected[2]) {
    double slope = 0, change = 0;
    for (int i = 0; i < nx_; i++) {
      double along = 0;
      for (int j = 0; j < nx_; j++) along += Vxx_[i * x_stride_ + j] * gap[j];
      slope += gap[i] * Vx_slope_[i];
      change += gap[i] * (Vx_[i] + 0.5 * along);
      Vx_[i] += along;
    }
    for (int i = 0; i < nu_; i++) {
      for (int j = 0; j < nx_; j++) Vu_[i] += Vux_[i * x_stride_ + j] * gap[j];
    }
    expected[0] += slope;
    expected[1] += change - slope;
  }

  // Qz = lz + F^T Vx, Qzz = lzz + F^T Vxx F                                              (ILQ-5)
  void expand(int t) {
    // F = (A, B)
    const double *A = p_.A + static_cast<std::ptrdiff_t>(t) * nx_ * nx_,
                 *B = p_.B + static_cast<std::ptrdiff_t>(t) * nx_ * nu_;
    for (int i = 0; i < nx_; i++) {
      std::memcpy(F_ + i * stride_, A + i * nx_, nx_ * sizeof(double));
      std::memcpy(F_ + i * stride_ + nx_, B + i * nu_, nu_ * sizeof(double));
    }
    // derivatives of the cost of this knot
    const double* gradient = p_.gradient + static_cast<std::ptrdiff_t>(t) * nz_;
    std::memcpy(Qz_, gradient, nz_ * sizeof(double));
    std::memcpy(slope_, gradient, nz_ * sizeof(double));
    std::memcpy(Qzz_, hessian(t), sizeof(double) * nz_ * stride_);
    // add those of the value, with P = Vxx F
    std::memset(P_, 0, sizeof(double) * nx_ * stride_);
    add_product(P_, stride_, Vxx_, x_stride_, F_, stride_, nx_, nz_, nx_);
    add_symmetric_product(Qzz_, stride_, F_, stride_, P_, stride_, nz_, nx_);
    for (int i = 0; i < nx_; i++) {
      for (int j = 0; j < nz_; j++) {
        Qz_[j] += Vx_[i] * F_[i * stride_ + j];
        slope_[j] += Vx_slope_[i] * F_[i * stride_ + j];
      }
    }
    if (t == p_.T - 2) expand_last_control();
    // bounds of the step
    for (int i = 0; i < nu_; i++) {
      lower_[i] = p_.lower[i] - p_.controls[static_cast<std::ptrdiff_t>(t) * nu_ + i];
      upper_[i] = p_.upper[i] - p_.controls[static_cast<std::ptrdiff_t>(t) * nu_ + i];
    }
  }

  // Add the derivatives of the last knot, which has the same control                     (ILQ-6)
  void expand_last_control() {
    for (int i = 0; i < nu_; i++) Qz_[nx_ + i] += Vu_[i], slope_[nx_ + i] += Vu_slope_[i];
    for (int i = 0; i < nu_; i++) {
      for (int j = 0; j < nz_; j++) {
        double mixed = 0;
        for (int k = 0; k < nx_; k++) mixed += Vux_[i * x_stride_ + k] * F_[k * stride_ + j];
        Qzz_[(nx_ + i) * stride_ + j] += mixed;
        Qzz_[j * stride_ + nx_ + i] += mixed;
      }
      for (int j = 0; j < nu_; j++) {
        Qzz_[(nx_ + i) * stride_ + nx_ + j] += Vuu_[i * stride_ + j];
      }
    }
  }

  // Copy Qux and Quu, with regularization.
  void regularize() {
    for (int i = 0; i < nu_; i++) {
      const double* row = Qzz_ + (nx_ + i) * stride_;
      std::memcpy(Qux_ + i * x_stride_, row, nx_ * sizeof(double));
      std::memcpy(Quu_ + i * stride_, row + nx_, nu_ * sizeof(double));
      if (p_.regularization == Regularization::kControl) {
        Quu_[i * stride_ + i] += p_.mu * p_.scale[i];
      }
      if (p_.regularization != Regularization::kState) continue;
      for (int k = 0; k < nx_; k++) {
        const double scale = p_.mu * F_[k * stride_ + nx_ + i];
        for (int j = 0; j < nx_; j++) Qux_[i * x_stride_ + j] += scale * F_[k * stride_ + j];
        for (int j = 0; j < nu_; j++) Quu_[i * stride_ + j] += scale * F_[k * stride_ + nx_ + j];
      }
    }
  }

  // Compute the step within bounds, and the gain of the controls that are not at a bound. Returns
  // false if the problem is not convex.                                                  (ILQ-7)
  bool minimize(double* step) {
    BoxSolution solution;
    if (!solve_box_qp(Quu_, stride_, Qz_ + nx_, lower_, upper_, nu_, step, solution, arena_)) {
      return false;
    }
    const int n = solution.free_count;
    double* rows = arena_.zeros<double>(static_cast<std::size_t>(n) * x_stride_);
    for (int a = 0; a < n; a++) {
      for (int j = 0; j < nx_; j++) {
        rows[a * x_stride_ + j] = -Qux_[solution.free[a] * x_stride_ + j];
      }
    }
    solve_dense(solution.factor, n, solution.stride, rows, x_stride_, 0, nx_);
    std::memset(gain_, 0, sizeof(double) * nu_ * x_stride_);
    for (int a = 0; a < n; a++) {
      std::memcpy(gain_ + solution.free[a] * x_stride_, rows + a * x_stride_, nx_ * sizeof(double));
    }
    return true;
  }

  void store_gain(double* gains) const {
    for (int i = 0; i < nu_; i++) {
      std::memcpy(gains + i * nx_, gain_ + i * x_stride_, nx_ * sizeof(double));
    }
  }

  void store_value(double* values, int t) const {
    if (values) {
      std::memcpy(values + static_cast<std::ptrdiff_t>(t) * nx_, Vx_, nx_ * sizeof(double));
    }
  }

  // V(x) = Q(x, step + gain x), where Q has no regularization                            (ILQ-8)
  void update_value(const double* step, double expected[2]) {
    // Vx = Qx, Vxx = Qxx
    std::memcpy(Vx_, Qz_, nx_ * sizeof(double));
    std::memcpy(Vx_slope_, slope_, nx_ * sizeof(double));
    for (int i = 0; i < nx_; i++) {
      std::memcpy(Vxx_ + i * x_stride_, Qzz_ + i * stride_, nx_ * sizeof(double));
    }
    // Vx += K^T (Qu + Quu step) + Qxu step, and the expected change of the cost
    for (int i = 0; i < nu_; i++) {
      const double* row = Qzz_ + (nx_ + i) * stride_;
      double along = 0;
      for (int j = 0; j < nu_; j++) along += row[nx_ + j] * step[j];
      const double linear = step[i] * slope_[nx_ + i];
      expected[0] += linear;
      expected[1] += step[i] * (Qz_[nx_ + i] + 0.5 * along) - linear;
      for (int j = 0; j < nx_; j++) {
        Vx_[j] += gain_[i * x_stride_ + j] * (along + Qz_[nx_ + i]) + row[j] * step[i];
        Vx_slope_[j] += gain_[i * x_stride_ + j] * slope_[nx_ + i];
      }
      std::memcpy(Qux_ + i * x_stride_, row, nx_ * sizeof(double));
      std::memcpy(Quu_ + i * stride_, row + nx_, nu_ * sizeof(double));
    }
    // Vxx += K^T (Quu K + Qux) + Qux^T K
    std::memcpy(curved_, Qux_, sizeof(double) * nu_ * x_stride_);
    add_product(curved_, x_stride_, Quu_, stride_, gain_, x_stride_, nu_, nx_, nu_);
    add_symmetric_product(Vxx_, x_stride_, gain_, x_stride_, curved_, x_stride_, nx_, 2 * nu_);
  }

  const BackwardProblem& p_;
  int nx_, nu_, nz_, stride_, x_stride_;
  Arena& arena_;
  // gradients of Q and V for steps of size zero: the slope of the cost in the step size
  double *slope_, *Vx_slope_, *Vu_slope_;
  double *F_, *P_, *Qzz_, *Qz_, *Vx_, *Vxx_, *Vu_, *Vux_, *Vuu_, *Quu_, *Qux_, *gain_, *curved_,
      *lower_, *upper_;
};

}  // namespace

int pass_backward(const BackwardProblem& problem, BackwardPass& out, Arena& arena) {
  return Pass(problem, arena).run(out);
}

}  // namespace mujacobian
