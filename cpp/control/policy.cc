#include "control/policy.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "layout/engine.h"

namespace mujacobian {
namespace {

// Times of knots are products, and times of a simulation are sums of time steps. A time that is
// closer to the next knot than this fraction of an interval belongs to that knot.
constexpr double kRounding = 1e-6;

// A time between two knots.
struct Between {
  int knot;     // the earlier knot
  double part;  // fraction of the interval after it
};

Between find(const Policy& policy, double time) {
  const double *first = policy.times, *last = policy.times + policy.n;
  const int next = static_cast<int>(std::upper_bound(first, last, time) - first);
  if (next == 0) return {0, 0};
  if (next == policy.n) return {next - 1, 0};
  const double begin = first[next - 1], end = first[next], part = (time - begin) / (end - begin);
  if (part > 1 - kRounding) return {next, 0};
  return {next - 1, policy.is_linear ? part : 0};
}

void add_matrix_vector(double* out, double scale, const double* matrix, const double* x, int rows,
                       int columns) {
  for (int i = 0; i < rows; i++) {
    double sum = 0;
    for (int j = 0; j < columns; j++)
      sum += matrix[static_cast<std::ptrdiff_t>(i) * columns + j] * x[j];
    out[i] += scale * sum;
  }
}

void clamp(const Bounds& bounds, double* ctrl, int nu) {
  // these comparisons keep NaN
  for (int i = 0; i < nu; i++) {
    if (ctrl[i] < bounds.lower[i]) ctrl[i] = bounds.lower[i];
    if (ctrl[i] > bounds.upper[i]) ctrl[i] = bounds.upper[i];
  }
}

}  // namespace

void read_state(const ModelView& m, const DataView& d, double* out) {
  out = std::copy(d.qpos, d.qpos + m.nq, out);
  out = std::copy(d.qvel, d.qvel + m.nv, out);
  std::copy(d.act, d.act + m.na, out);
}

void move_state(const ModelView& m, void* data, const double* difference, double scale) {
  const DataView d = view_data(data);
  engine().mj_integratePos(m.address, const_cast<double*>(d.qpos), difference, scale);
  for (int k = 0; k < m.nv; k++) const_cast<double*>(d.qvel)[k] += scale * difference[m.nv + k];
  for (int k = 0; k < m.na; k++) const_cast<double*>(d.act)[k] += scale * difference[2 * m.nv + k];
}

void difference_states(const ModelView& m, const double* from, const double* to, double* out) {
  engine().mj_differentiatePos(m.address, out, 1, from, to);
  for (int k = 0; k < m.nv + m.na; k++) out[m.nv + k] = to[m.nq + k] - from[m.nq + k];
}

void evaluate_policy(const ModelView& m, const Policy& policy, const Bounds& bounds, double time,
                     const double* state, double feedback, double* ctrl, Arena& arena) {
  const Arena::Mark mark = arena.mark();
  const std::ptrdiff_t nu = m.nu, nx = state_size(m), size = m.nq + m.nv + m.na;
  // control and reference state of the knot before this time
  const Between place = find(policy, time);
  const double part = place.part;
  const double *u = policy.controls + place.knot * nu, *x = policy.states + place.knot * size,
               *K = policy.gains + place.knot * nu * nx;
  double *reference = arena.take<double>(size), *dx = arena.take<double>(nx);
  std::memcpy(reference, x, size * sizeof(double));
  std::memcpy(ctrl, u, nu * sizeof(double));
  if (part > 0) {
    // interpolate, along the geodesic from one reference state to the next
    difference_states(m, x, x + size, dx);
    engine().mj_integratePos(m.address, reference, dx, part);
    for (int k = 0; k < m.nv + m.na; k++) reference[m.nq + k] += part * dx[m.nv + k];
    for (int k = 0; k < nu; k++) ctrl[k] += part * (u[nu + k] - u[k]);
  }
  if (feedback != 0) {
    difference_states(m, reference, state, dx);
    add_matrix_vector(ctrl, feedback * (1 - part), K, dx, nu, nx);
    if (part > 0) add_matrix_vector(ctrl, feedback * part, K + nu * nx, dx, nu, nx);
  }
  clamp(bounds, ctrl, nu);
  arena.rewind(mark);
}

void feed_back(const ModelView& m, const Bounds& bounds, const double* u, const double* step,
               double scale, const double* gain, const double* at, const double* state,
               double* ctrl, Arena& arena) {
  const Arena::Mark mark = arena.mark();
  const int nx = state_size(m);
  double* dx = arena.take<double>(nx);
  difference_states(m, at, state, dx);
  for (int k = 0; k < m.nu; k++) ctrl[k] = u[k] + scale * step[k];
  add_matrix_vector(ctrl, 1, gain, dx, m.nu, nx);
  clamp(bounds, ctrl, m.nu);
  arena.rewind(mark);
}

}  // namespace mujacobian
