#include "second_order/path_function.h"

#include "actuation/transmission_curvature.h"
#include "forces/tendon_curvature.h"
#include "layout/enums.h"
#include "second_order/adhesion.h"

namespace mujacobian {
namespace {

bool counts(const PathScalar& x, int k) { return !x.mask || x.mask[k]; }

// The derivative of a variable with respect to some columns of its component.
struct Gradient {
  int n;
  int* column;
  double* slope;
};

Gradient gradient(const PathScalar& x, const QuadraticForm& form, Arena& arena) {
  if (x.kind == PathScalar::kInput) {
    Gradient g{1, arena.take<int>(1), arena.take<double>(1)};
    g.column[0] = form.layout.input_column[x.input], g.slope[0] = 1;
    return g;
  }
  const Path& p = x.path->path;
  Gradient g{0, arena.take<int>(2 * p.n), arena.take<double>(2 * p.n)};
  if (x.kind == PathScalar::kLength || p.hessian) {
    for (int k = 0; k < p.n; k++) g.column[k] = form.q_column(p.dofs[k]);
    g.n = p.n;
    if (x.kind == PathScalar::kLength) {
      for (int k = 0; k < p.n; k++) g.slope[k] = p.dlength[k];
    } else {
      for (int k = 0; k < p.n; k++) g.slope[k] = 0;
      for (int i = 0; i < p.n; i++) {
        if (!counts(x, i)) continue;
        const double y = x.motion[p.dofs[i]];
        for (int k = 0; k < p.n; k++) g.slope[k] += y * p.hessian[i * p.n + k];
      }
    }
  }
  for (int k = 0; x.kind == PathScalar::kVelocity && k < p.n; k++) {
    g.column[g.n] = form.v_column(p.dofs[k]);
    g.slope[g.n++] = p.moment[k];
  }
  return g;
}

// Returns a dof of the component of the function.
int any_dof(const PathFunction& f) {
  for (int s = 0; s < f.count; s++) {
    const PathScalar& x = f.scalar[s];
    if (x.kind != PathScalar::kInput && x.path->path.n > 0) return x.path->path.dofs[0];
  }
  return -1;
}

// Adds the products of first derivatives of two variables.
void add_product(const PathScalar& x, const Gradient& gx, const Gradient& gy, double second,
                 int dof, const QuadraticForm& form) {
  for (int a = 0; a < gx.n; a++) {
    double* row = form.half_row(dof, gx.column[a]);
    // every pair of variables is visited in both orders
    const double scale = 0.5 * second * gx.slope[a];
    for (int b = 0; b < gy.n; b++) row[gy.column[b]] += scale * gy.slope[b];
  }
  if (x.kind != PathScalar::kAcceleration) return;
  const Path& p = x.path->path;
  for (int a = 0; a < p.n; a++) {
    if (!counts(x, a)) continue;
    double* row = form.mixed[p.dofs[a]];
    const double scale = second * p.moment[a];
    for (int b = 0; b < gy.n; b++) row[gy.column[b]] += scale * gy.slope[b];
  }
}

// Adds the second derivatives of a rate with respect to a motion and the positions.
void add_turned_moment(const PathScalar& x, double slope, const QuadraticForm& form) {
  if (x.kind != PathScalar::kVelocity && x.kind != PathScalar::kAcceleration) return;
  const Path& p = x.path->path;
  for (int j = 0; p.hessian && j < p.n; j++) {
    if (!counts(x, j)) continue;
    double* row = x.kind == PathScalar::kVelocity ? form.v(p.dofs[j]) : form.mixed[p.dofs[j]];
    for (int k = 0; k < p.n; k++) {
      row[form.q_column(p.dofs[k])] += slope * p.hessian[j * p.n + k];
    }
  }
}

// Adds the second derivatives of the length and the moments of a path.
void add_bend(const ModelView& m, const DataView& d, const PathFunction& f, const CurvedPath& path,
              double weight, const QuadraticForm& form, Arena& arena) {
  const Path& p = path.path;
  double by_length = 0;
  double* y = arena.zeros<double>(m.nv);
  for (int s = 0; s < f.count; s++) {
    const PathScalar& x = f.scalar[s];
    if (x.kind == PathScalar::kInput || x.path != &path) continue;
    if (x.kind == PathScalar::kLength) by_length += weight * f.slope[s];
    for (int k = 0; x.motion && k < p.n; k++) {
      if (counts(x, k)) y[p.dofs[k]] += weight * f.slope[s] * x.motion[p.dofs[k]];
    }
  }
  const PathBend bend = bend_path(m, d, path.source, y, arena);
  for (int j = 0; j < p.n; j++) {
    double* row = form.q(p.dofs[j]);
    for (int k = 0; k < p.n; k++) {
      double second = bend.moment ? bend.moment[j * p.n + k] : 0;
      if (bend.length) second += by_length * bend.length[j * p.n + k];
      row[form.q_column(p.dofs[k])] += 0.5 * second;
    }
  }
}

}  // namespace

PathBend bend_path(const ModelView& m, const DataView& d, const PathSource& source, const double* y,
                   Arena& arena) {
  if (source.tendon >= 0) return tendon_bend(m, d, source.tendon, y, arena);
  const bool adheres = m.actuator_trntype[source.actuator] == transmission::kBody;
  return adheres ? adhesion_bend(m, d, source.actuator, y, arena)
                 : transmission_bend(m, d, source.actuator, y, arena);
}

double PathScalar::rate() const {
  double sum = 0;
  for (int k = 0; k < path->path.n; k++) {
    if (counts(*this, k)) sum += path->path.moment[k] * motion[path->path.dofs[k]];
  }
  return sum;
}

PathFunction make_path_function(int count, Arena& arena) {
  return {count, arena.zeros<PathScalar>(count), 0, arena.zeros<double>(count),
          arena.zeros<double>(static_cast<std::size_t>(count) * count)};
}

PathFunction multiply(const PathFunction& f, const PathScalar* a, const PathScalar* b, int count,
                      Arena& arena) {
  const int n = f.count, total = n + (b ? 2 : 1) * count;
  PathFunction g = make_path_function(total, arena);
  double* by = arena.take<double>(total);  // derivatives of the sum
  double sum = 0;
  for (int k = 0; k < count; k++) {
    const double rate = a[k].rate(), other = b ? b[k].rate() : 1;
    const int at = n + k, with = n + count + k;
    sum += rate * other;
    g.scalar[at] = a[k], by[at] = other;
    if (!b) continue;
    g.scalar[with] = b[k], by[with] = rate;
    g.second[at * total + with] = g.second[with * total + at] = f.value;
  }
  g.value = f.value * sum;
  for (int k = n; k < total; k++) g.slope[k] = f.value * by[k];
  for (int i = 0; i < n; i++) {
    g.scalar[i] = f.scalar[i];
    g.slope[i] = sum * f.slope[i];
    for (int j = 0; j < n; j++) g.second[i * total + j] = sum * f.second[i * n + j];
    for (int k = n; k < total; k++) {
      g.second[i * total + k] = g.second[k * total + i] = f.slope[i] * by[k];
    }
  }
  return g;
}

void add_path_gradient(const ModelView& m, const PathFunction& f, const PathGradient& to) {
  for (int s = 0; s < f.count; s++) {
    const PathScalar& x = f.scalar[s];
    const double slope = f.slope[s];
    if (slope == 0) continue;
    if (x.kind == PathScalar::kInput) {
      double* input = x.input < m.na ? to.state + 2 * m.nv + x.input : to.ctrl + x.input - m.na;
      *input += slope;
      continue;
    }
    const Path& p = x.path->path;
    for (int k = 0; k < p.n; k++) {
      const int dof = p.dofs[k];
      if (x.kind == PathScalar::kLength) to.state[dof] += slope * p.dlength[k];
      if (x.kind == PathScalar::kVelocity) to.state[m.nv + dof] += slope * p.moment[k];
      if (x.kind == PathScalar::kLength || !counts(x, k)) continue;
      if (x.kind == PathScalar::kAcceleration) to.acceleration[dof] += slope * p.moment[k];
      const double y = slope * x.motion[dof];
      for (int j = 0; p.hessian && j < p.n; j++) {
        to.state[p.dofs[j]] += y * p.hessian[k * p.n + j];
      }
    }
  }
}

void add_path_function(const ModelView& m, const DataView& d, const PathFunction& f, double weight,
                       const QuadraticForm& form, Arena& arena) {
  const int dof = any_dof(f);
  if (dof < 0 || weight == 0) return;
  const Arena::Mark mark = arena.mark();

  // products of first derivatives
  Gradient* gradients = arena.take<Gradient>(f.count);
  for (int s = 0; s < f.count; s++) gradients[s] = gradient(f.scalar[s], form, arena);
  for (int s = 0; s < f.count; s++)
    for (int t = 0; t < f.count; t++) {
      const double second = weight * f.second[s * f.count + t];
      if (second != 0) add_product(f.scalar[s], gradients[s], gradients[t], second, dof, form);
    }

  // second derivatives of the variables, for each path once
  for (int s = 0; s < f.count; s++) {
    const PathScalar& x = f.scalar[s];
    if (x.kind == PathScalar::kInput) continue;
    add_turned_moment(x, weight * f.slope[s], form);
    bool known = !is_curved(x.path->source);
    for (int t = 0; t < s; t++) known |= f.scalar[t].path == x.path;
    if (!known) add_bend(m, d, f, *x.path, weight, form, arena);
  }
  arena.rewind(mark);
}

}  // namespace mujacobian
