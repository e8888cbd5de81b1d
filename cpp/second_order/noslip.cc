#include "second_order/noslip.h"

#include <cmath>
#include <cstring>

#include "constraint/force.h"
#include "constraint/friction_tangent.h"
#include "layout/enums.h"
#include "second_order/row.h"

namespace mujacobian {
namespace {

// The cotangents of the variables of the sweeps, and how they change.
class ReverseSweeps {
 public:
  ReverseSweeps(const ModelView& m, const DataView& d, const ForwardDynamics& forward,
                const double* nu, Arena& arena)
      : m_(m), d_(d), forward_(forward), noslip_(forward.noslip), arena_(arena) {
    int* first = arena.take<int>(noslip_.count);
    for (int k = 0; k < noslip_.count; k++) {
      first[k] = out_.rows;
      out_.rows += noslip_.frictions[k].count;
    }
    out_.noslip = noslip_, out_.first = first, out_.nu = nu;
    rows_ = out_.rows;
    set_mobilities();
    virt_ = arena.zeros<double>(rows_);
    for (int k = 0; k < rows_; k++)
      for (int i = 0; i < m.nv; i++) virt_[k] += out_.row[k].row[i] * nu[i];
  }

  CurvedSweeps run() {
    replay();
    double* r_bar = arena_.zeros<double>(rows_);
    double* f_bar = arena_.zeros<double>(rows_);
    double* limit_bar = arena_.zeros<double>(noslip_.count);
    double* A_bar = arena_.zeros<double>(rows_ * rows_);
    for (int u = out_.updates - 1; u >= 0; u--) reverse(u, r_bar, f_bar, limit_bar, A_bar);
    for (int i = 0; i < rows_; i++)
      for (int k = 0; k < i; k++) {
        const double mean = 0.5 * (A_bar[i * rows_ + k] + A_bar[k * rows_ + i]);
        A_bar[i * rows_ + k] = A_bar[k * rows_ + i] = mean;
      }
    out_.A_bar = A_bar;
    set_shifts(r_bar, f_bar, limit_bar);
    return out_;
  }

 private:
  void set_mobilities() {
    const BlockMotion motion = block_motion(m_, d_, forward_.blocks, forward_.solved, arena_);
    MobileRow* row = arena_.take<MobileRow>(rows_);
    for (int k = 0; k < noslip_.count; k++) {
      const FrictionBlock& friction = noslip_.frictions[k];
      for (int i = 0; i < friction.count; i++) {
        double weight[kMaxRows] = {};
        weight[friction.first + i] = 1;
        row[out_.first[k] + i] = make_mobile_row(m_, d_, forward_.tree, *friction.block, weight,
                                                 motion, forward_.residual, arena_);
      }
    }
    double* A = arena_.take<double>(rows_ * rows_);
    for (int i = 0; i < rows_; i++)
      for (int k = 0; k < rows_; k++) A[i * rows_ + k] = mobility(m_, row[i], row[k]);
    out_.row = row, out_.A = A;
  }

  // Lists the updates with the residuals and forces before them, from those of the optimum.
  void replay() {
    double* f = arena_.take<double>(rows_);
    double* r = arena_.take<double>(rows_);
    double* moved = arena_.zeros<double>(rows_);
    for (const FrictionUpdate* v = noslip_.first; v; v = v->next) {
      out_.updates++;
      for (int i = 0; i < noslip_.frictions[v->friction].count; i++) {
        moved[out_.first[v->friction] + i] += v->delta[i];
      }
    }
    for (int k = 0; k < noslip_.count; k++) {
      const FrictionBlock& friction = noslip_.frictions[k];
      for (int i = 0; i < friction.count; i++) {
        const int at = out_.first[k] + i;
        f[at] = friction.force[i] - moved[at];
        r[at] = -friction.aref[i];
        for (int j = 0; j < m_.nv; j++) r[at] += out_.row[at].row[j] * forward_.solved[j];
      }
    }
    updates_ = arena_.take<CurvedUpdate>(out_.updates);
    CurvedUpdate* next = updates_;
    for (const FrictionUpdate* v = noslip_.first; v; v = v->next) {
      CurvedUpdate& u = *next++;
      u = {};
      u.update = v;
      for (int i = 0; i < noslip_.frictions[v->friction].count; i++) {
        const int at = out_.first[v->friction] + i;
        u.residual[i] = r[at], u.force[i] = f[at];
      }
      for (int i = 0; i < noslip_.frictions[v->friction].count; i++) {
        const int at = out_.first[v->friction] + i;
        f[at] += v->delta[i];
        for (int k = 0; k < rows_; k++) r[k] += out_.A[k * rows_ + at] * v->delta[i];
      }
    }
    out_.moved = moved, out_.update = updates_;
  }

  // Moves the cotangents from after an update to before it.                               (HES-64)
  void reverse(int index, double* r_bar, double* f_bar, double* limit_bar, double* A_bar) {
    CurvedUpdate& u = updates_[index];
    const FrictionUpdate& v = *u.update;
    const FrictionBlock& friction = noslip_.frictions[v.friction];
    const int first = out_.first[v.friction], n = friction.count;
    double* after = arena_.take<double>(rows_);
    std::memcpy(after, r_bar, rows_ * sizeof(double));
    u.residual_bar = after;
    double bar[kMaxFriction];
    for (int i = 0; i < n; i++) {
      const int at = first + i;
      bar[i] = f_bar[at] - virt_[at];
      for (int k = 0; k < rows_; k++) {
        bar[i] += out_.A[k * rows_ + at] * after[k];
        A_bar[k * rows_ + at] += after[k] * v.delta[i];
      }
    }
    u.derivative = differentiate_update(friction, v, u.residual, u.force, bar, arena_);
    const UpdateVariables x{n};
    for (int i = 0; i < n; i++) {
      const double* slope = u.derivative.slope + i * x.size();
      for (int k = 0; k < n; k++) {
        r_bar[first + k] += bar[i] * slope[x.residual(k)];
        f_bar[first + k] += bar[i] * slope[x.force(k)];
        for (int j = 0; j <= k; j++) {
          if (k == j && is_floor(friction, first, k)) continue;
          A_bar[(first + k) * rows_ + first + j] += bar[i] * slope[x.mobility(k, j)];
        }
      }
      limit_bar[v.friction] += bar[i] * slope[x.limit()];
    }
  }

  // Returns whether a diagonal entry of A is MuJoCo's lower bound, a constant.
  bool is_floor(const FrictionBlock& friction, int first, int i) const {
    const int at = first + i;
    return friction.A[i * friction.count + i] > 0 && out_.A[at * rows_ + at] == 0;
  }

  // Sets the shifts of the blocks from the cotangents at the optimum: the terms of -Theta.
  void set_shifts(const double* r_bar, const double* f_bar, const double* limit_bar) {
    RowShift* shift = arena_.zeros<RowShift>(forward_.blocks.count);
    for (int k = 0; k < noslip_.count; k++) {
      const FrictionBlock& friction = noslip_.frictions[k];
      const Block& b = *friction.block;
      RowShift& to = shift[&b - forward_.blocks.block];
      const double *r = r_bar + out_.first[k], *f = f_bar + out_.first[k];
      for (int i = 0; i < friction.count; i++) to.extra[friction.first + i] = -r[i];
      if (b.type == constraint::kContactPyramidal) {
        add_edges(friction, f[0], limit_bar[k], to);
        continue;
      }
      if (friction.cone) to.along[0] += limit_bar[k];
      for (int i = 0; i < friction.count; i++) to.along[friction.first + i] += f[i];
      for (int i = 0; i < b.count; i++) {
        to.power -= to.along[i] * b.force[i];
        for (int j = 0; j < b.count; j++) to.pulled[i] += b.hessian[i * b.count + j] * to.along[j];
      }
    }
    out_.shift = shift;
  }

  void add_edges(const FrictionBlock& friction, double f_bar, double limit_bar,
                 RowShift& to) const {
    const Block& b = *friction.block;
    double moved[kMaxRows];
    move_block(b, forward_.solved, moved);
    for (int side = 0; side < 2; side++) {
      const Edge edge = pyramid_edge(d_, b, moved, friction.first, side);
      const double weight = edge.mu * f_bar + std::abs(edge.mu) * limit_bar;
      to.power -= weight * edge.force;
      to.pulled[0] += weight * edge.stiffness;
      to.pulled[friction.first] += weight * edge.stiffness * edge.mu;
    }
  }

  const ModelView& m_;
  const DataView& d_;
  const ForwardDynamics& forward_;
  const Noslip& noslip_;
  Arena& arena_;
  int rows_;
  double* virt_;  // J nu
  CurvedUpdate* updates_;
  CurvedSweeps out_{};
};

// The variables of the sweeps of one component, and their derivatives with respect to its columns.
class SweepTangents {
 public:
  SweepTangents(const ModelView& m, const DataView& d, const ForwardDynamics& forward,
                const CurvedSweeps& sweeps, const DofRows& change, int c, Arena& arena)
      : sweeps_(sweeps), part_(change.components[c]), stride_(part_.stride), arena_(arena) {
    const int rows = sweeps.rows;
    in_component_ = arena.zeros<unsigned char>(sweeps.noslip.count);
    for (int k = 0; k < sweeps.noslip.count; k++) {
      in_component_[k] = change.component[sweeps.noslip.frictions[k].block->dofs[0]] == c;
    }
    dr_ = take(rows), df_ = take(rows), dlimit_ = take(sweeps.noslip.count);
    dvirt_ = take(rows), dA_ = take(rows * rows);
    start(m, d, forward, change);
    for (int i = 0; i < rows; i++)
      for (int k = 0; k < rows; k++) {
        if (has_row(i) && has_row(k)) set_mobility(m, change, i, k);
      }
  }

  // Adds the products of all updates to half of the matrix of the component.
  void add_to(double* half) {
    for (int u = 0; u < sweeps_.updates; u++) {
      if (in_component_[sweeps_.update[u].update->friction]) add_update(sweeps_.update[u], half);
    }
  }

 private:
  double* take(int rows) { return arena_.zeros<double>(static_cast<std::size_t>(rows) * stride_); }
  double* at(double* x, int row) const { return x + static_cast<std::ptrdiff_t>(row) * stride_; }

  bool has_row(int row) const {
    int k = sweeps_.noslip.count - 1;
    while (sweeps_.first[k] > row) k--;
    return in_component_[k];
  }

  // Sets the derivatives at the optimum, and those of J nu.
  void start(const ModelView& m, const DataView& d, const ForwardDynamics& forward,
             const DofRows& change) {
    const Noslip& noslip = sweeps_.noslip;
    const FrictionContext x{m,
                            d,
                            forward.tree,
                            forward.blocks,
                            noslip.frictions,
                            block_motion(m, d, forward.blocks, forward.solved, arena_),
                            forward.solved,
                            change};
    FrictionStart* all = arena_.take<FrictionStart>(noslip.count);
    for (int k = 0; k < noslip.count; k++) {
      if (!in_component_[k]) continue;
      const FrictionBlock& friction = noslip.frictions[k];
      const Block& b = *friction.block;
      start_frictions(x, k, k + 1, all, arena_);
      const double* turned = jacobian_change(m, d, forward.blocks, b, sweeps_.nu, arena_);
      add_scaled(at(dlimit_, k), 1, all[k].dlimit, stride_);
      for (int i = 0; i < friction.count; i++) {
        const int row = sweeps_.first[k] + i, of_block = friction.first + i;
        add_scaled(at(dr_, row), 1, all[k].rho + i * stride_, stride_);
        add_moved_row(b, of_block, change, at(dr_, row));
        add_scaled(at(df_, row), 1, all[k].dforce + i * stride_, stride_);
        for (int j = 0; j < b.n; j++) {
          at(dvirt_, row)[change.column[b.dofs[j]]] = turned[of_block * b.stride + j];
        }
      }
    }
  }

  void set_mobility(const ModelView& m, const DofRows& change, int i, int k) {
    const Arena::Mark mark = arena_.mark();
    double* dA = arena_.zeros<double>(m.nv);
    add_mobility_change(m, sweeps_.row[i], sweeps_.row[k], 1, change, dA);
    for (int j = 0; j < part_.nv; j++) at(dA_, i * sweeps_.rows + k)[j] = dA[part_.dofs[j]];
    arena_.rewind(mark);
  }

  // half += scale x y^T over the columns
  void add_product(double scale, const double* x, const double* y, double* half) const {
    for (int j = 0; j < part_.end_column(); j++) {
      if (x[j] != 0)
        add_scaled(half + static_cast<std::ptrdiff_t>(j) * stride_, scale * x[j], y, stride_);
    }
  }

  // Adds the products of one update, and changes the derivatives of residuals and forces. (HES-66)
  void add_update(const CurvedUpdate& u, double* half) {
    const Arena::Mark mark = arena_.mark();
    const FrictionBlock& friction = sweeps_.noslip.frictions[u.update->friction];
    const int first = sweeps_.first[u.update->friction], n = friction.count;
    const int rows = sweeps_.rows;
    const UpdateVariables x{n};
    const int size = x.size();
    const double** dx = arena_.take<const double*>(size);
    for (int i = 0; i < n; i++) {
      dx[x.residual(i)] = at(dr_, first + i), dx[x.force(i)] = at(df_, first + i);
      for (int k = 0; k <= i; k++) dx[x.mobility(i, k)] = at(dA_, (first + i) * rows + first + k);
    }
    dx[x.limit()] = at(dlimit_, u.update->friction);

    // second derivatives of the update, and d(delta)
    double *bent = take(1), *ddelta = take(n), *pulled = take(1);
    for (int j = 0; j < size; j++) {
      std::memset(bent, 0, stride_ * sizeof(double));
      for (int k = 0; k < size; k++) {
        add_scaled(bent, u.derivative.second[j * size + k], dx[k], stride_);
      }
      add_product(-0.5, dx[j], bent, half);
      for (int i = 0; i < n; i++) {
        add_scaled(at(ddelta, i), u.derivative.slope[i * size + j], dx[j], stride_);
      }
    }

    // the products of A and of J nu with delta
    for (int i = 0; i < n; i++) {
      std::memset(pulled, 0, stride_ * sizeof(double));
      add_scaled(pulled, -1, at(dvirt_, first + i), stride_);
      for (int k = 0; k < rows; k++) {
        add_scaled(pulled, u.residual_bar[k], at(dA_, k * rows + first + i), stride_);
      }
      add_product(-1, pulled, at(ddelta, i), half);
    }

    // after the update
    for (int i = 0; i < n; i++) {
      add_scaled(at(df_, first + i), 1, at(ddelta, i), stride_);
      for (int k = 0; k < rows; k++) {
        const int entry = k * rows + first + i;
        add_scaled(at(dr_, k), u.update->delta[i], at(dA_, entry), stride_);
        add_scaled(at(dr_, k), sweeps_.A[entry], at(ddelta, i), stride_);
      }
    }
    arena_.rewind(mark);
  }

  const CurvedSweeps& sweeps_;
  const Component& part_;
  const int stride_;
  Arena& arena_;
  unsigned char* in_component_;
  double *dr_, *df_, *dlimit_, *dvirt_, *dA_;
};

}  // namespace

const CurvedSweeps* curve_sweeps(const ModelView& m, const DataView& d,
                                 const ForwardDynamics& forward, const double* nu, Arena& arena) {
  return new (arena.take<CurvedSweeps>(1))
      CurvedSweeps(ReverseSweeps(m, d, forward, nu, arena).run());
}

void add_sweep_cotangent(const CurvedSweeps& sweeps, const Blocks& blocks, const DofRows& out) {
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    const RowShift& shift = sweeps.shift[k];
    for (int r = 0; r < b.count; r++)
      for (int i = 0; i < b.n; i++) {
        out.row[b.dofs[i]][0] += b.J[r * b.stride + i] * (shift.pulled[r] + shift.extra[r]);
      }
  }
}

void add_sweep_hessian(const ModelView& m, const DataView& d, const ForwardDynamics& forward,
                       const CurvedSweeps& sweeps, const QuadraticForm& form, Arena& arena) {
  // J nu, times the sum of the updates
  for (int k = 0; k < sweeps.noslip.count; k++) {
    const FrictionBlock& friction = sweeps.noslip.frictions[k];
    double weights[kMaxRows] = {};
    for (int i = 0; i < friction.count; i++) {
      weights[friction.first + i] = sweeps.moved[sweeps.first[k] + i];
    }
    const Arena::Mark mark = arena.mark();
    add_row_power_hessian(m, d, forward.blocks, *friction.block, weights, sweeps.nu, form, arena);
    arena.rewind(mark);
  }

  // the mobilities; those between components are zero
  const int rows = sweeps.rows;
  double* weights = arena.take<double>(rows * rows);
  for (int i = 0; i < rows * rows; i++) weights[i] = -sweeps.A_bar[i];
  for (int i = 0; i < rows; i++)
    for (int k = 0; k < rows; k++) {
      const int* component = form.layout.component;
      const int first = component[sweeps.row[i].block->dofs[0]];
      if (component[sweeps.row[k].block->dofs[0]] != first) weights[i * rows + k] = 0;
    }
  add_mobility_hessian(m, d, forward.tree, forward.blocks, sweeps.row, rows, weights, form, arena);
}

void add_sweep_products(const ModelView& m, const DataView& d, const ForwardDynamics& forward,
                        const CurvedSweeps& sweeps, const DofRows& change, int c, double* half,
                        Arena& arena) {
  SweepTangents(m, d, forward, sweeps, change, c, arena).add_to(half);
}

}  // namespace mujacobian
