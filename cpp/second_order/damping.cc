#include "second_order/damping.h"

#include <cmath>

#include "forces/fluid_curvature.h"
#include "forces/passive.h"
#include "layout/enums.h"
#include "tree/inverse_dynamics_hessian.h"
#include "tree/velocity.h"

namespace mujacobian {
namespace {

// Dampers of dofs: nu_i h b'(v_i) w_i                                                    (HES-20)
void add_dof_damping_hessian(const ModelView& m, const DataView& d, const double* w,
                             const double* nu, const QuadraticForm& form) {
  const double h = m.opt.timestep;
  for (int i = 0; i < m.nv; i++) {
    const Poly damping = dof_damping(m, i);
    // the metric of the discrete integrator contains only damping of the stabilizing sign
    if (has_metric(m) && !damping.slope_acts(std::abs(d.qvel[i]))) continue;
    const int column = form.v_column(i);
    form.add(i, column, column, h * nu[i] * w[i] * damping.third());
    form.mixed[i][column] += h * nu[i] * damping.curvature_odd(d.qvel[i]);
  }
}

// Adds `scale` times the q and v part of another form over the same components.
void add_scaled(const QuadraticForm& to, const QuadraticForm& from, double scale) {
  for (int c = 0; c < to.layout.count; c++) {
    const Component& part = to.layout.components[c];
    const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(2 * part.nv) * part.stride;
    for (std::ptrdiff_t k = 0; k < size; k++) to.half[c][k] += scale * from.half[c][k];
  }
}

// Adds the velocity rows of a form to the rows of w, as derivatives with respect to q and v:
// d(nu . (dc/dv) w)/dw = d(nu . c)/dv.
void add_velocity_rows(const ModelView& m, const QuadraticForm& to, const QuadraticForm& from,
                       double scale) {
  for (int k = 0; k < m.nv; k++) {
    const int c = to.layout.component[k], column = from.v_column(k);
    const Component& part = to.layout.components[c];
    for (int j = 0; j < part.nv; j++) {
      const int i = part.dofs[j];
      to.mixed[k][j] += scale * (from.q(i)[column] + from.v(k)[j]);
      to.mixed[k][part.nv + j] += scale * (from.v(i)[column] + from.v(k)[part.nv + j]);
    }
  }
}

// Bias force: h nu . (dc/dv) w, where c is quadratic in v                                (HES-21)
void add_bias_damping_hessian(const ModelView& m, const DataView& d, const Topology& tree,
                              const double* w, const double* nu, const QuadraticForm& form,
                              Arena& arena) {
  const double h = m.opt.timestep;
  ModelView weightless = m;
  weightless.opt.disableflags |= disable::kGravity;
  const double* still = arena.zeros<double>(m.nv);
  auto bias_hessian = [&](const DataView& at) {
    const QuadraticForm bias = make_quadratic_form(m, form.layout, arena);
    add_inverse_dynamics_hessian(weightless, at, tree, still, nu, bias, arena);
    return bias;
  };
  add_velocity_rows(m, form, bias_hessian(d), h);

  // the difference of two passes, with w scaled to the size of v
  const double s = bias_scale(m, d, w);
  if (s == 0) return;
  for (double sign : {1.0, -1.0}) {
    double* velocity = arena.take<double>(m.nv);
    for (int i = 0; i < m.nv; i++) velocity[i] = d.qvel[i] + sign * s * w[i];
    add_scaled(form, bias_hessian(at_velocity(m, d, velocity, arena)), sign * h / (2 * s));
  }
}

// Returns the multipliers of free bodies, the only trees for which implicitfast and the discrete
// integrator use the bias force, or null if there are none.
const double* free_body_multipliers(const ModelView& m, const StepDifferential& s, const double* nu,
                                    Arena& arena) {
  double* masked = nullptr;
  for (int t = 0; t < m.ntree; t++) {
    TreeBlock* const* blocks = has_metric(m) ? s.forward.metric.block : s.step.block;
    const TreeBlock* b = blocks ? blocks[t] : nullptr;
    if (!b) continue;
    if (!masked) masked = arena.zeros<double>(m.nv);
    for (int i = b->dof; i < b->dof + b->n; i++) masked[i] = nu[i];
  }
  return masked;
}

}  // namespace

void add_damping_hessian(const ModelView& m, const DataView& d, const StepDifferential& s,
                         const double* nu, const QuadraticForm& form, Arena& arena) {
  const bool euler = m.opt.integrator == integrator::kEuler;
  if (euler ? euler_is_damped(m, /*inverse=*/false) : dampers_enabled(m)) {
    add_dof_damping_hessian(m, d, s.step.w, nu, form);
  }
  if (euler) return;
  const bool fully = m.opt.integrator == integrator::kImplicit;
  const FluidPart part = fully           ? FluidPart::kAll
                         : has_metric(m) ? FluidPart::kDrag
                                         : FluidPart::kSymmetric;
  // the damping of the medium is -D                                                      (HES-54)
  add_fluid_damping_hessian(m, d, part, fully, nu, s.step.w, -m.opt.timestep, form, arena);
  const double* biased = fully ? nu : free_body_multipliers(m, s, nu, arena);
  if (biased) add_bias_damping_hessian(m, d, s.forward.tree, s.step.w, biased, form, arena);
}

}  // namespace mujacobian
