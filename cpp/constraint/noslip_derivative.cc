#include <cstring>

#include "constraint/friction_tangent.h"
#include "forces/inertia_derivative.h"
#include "tree/inertia.h"

namespace mujacobian {
namespace {

// The derivatives of a friction block. Rows are over all columns of its component (`stride`), or
// only over its positions (`width`).
struct FrictionTangent : FrictionStart {
  double* dJ;  // (count, n, width): dJ_i/dq
  double* dz;  // (count, reach, width)
  double* dA;  // (count, count, width)
};

// Differentiates the updates of the friction blocks of one component, in the order of execution.
class Differentiator {
 public:
  Differentiator(const ModelView& m, const DataView& d, const Topology& tree, const Blocks& blocks,
                 const Noslip& noslip, const DofRows& residual, int c, const double* acc,
                 Arena& arena)
      : m_(m),
        d_(d),
        tree_(tree),
        blocks_(blocks),
        noslip_(noslip),
        residual_(residual),
        part_(residual.components[c]),
        stride_(part_.stride),
        width_(round_to_lanes(part_.nv)),
        arena_(arena),
        start_(acc) {
    motion_ = block_motion(m, d, blocks, acc, arena);
    moved_ = arena.zeros<double>(m.nv);
    tangents_ = arena.take<FrictionTangent>(noslip.count);
    dres_ = arena.take<double>(kMaxFriction * stride_);
    ddelta_ = arena.take<double>(kMaxFriction * stride_);
  }

  void run(int c) {
    auto in_component = [&](int friction) {
      return residual_.component[noslip_.frictions[friction].block->dofs[0]] == c;
    };
    // derivatives at the optimum, block by block
    for (int k = 0; k < noslip_.count;) {
      const Block* b = noslip_.frictions[k].block;
      int end = k;
      while (end < noslip_.count && noslip_.frictions[end].block == b) end++;
      if (in_component(k)) start_block(k, end);
      k = end;
    }
    // the updates
    for (const FrictionUpdate* v = noslip_.first; v; v = v->next) {
      if (in_component(v->friction)) replay(*v);
    }
    // results for sensors
    for (int k = 0; k < noslip_.count; k++) {
      if (in_component(k)) noslip_.dforce[k] = tangents_[k].dforce;
    }
  }

 private:
  // Computes the derivatives of the friction blocks first .. last-1, which belong to one block.
  void start_block(int first, int last) {
    const FrictionContext x{m_, d_, tree_, blocks_, noslip_.frictions, motion_, start_, residual_};
    FrictionStart* start = arena_.take<FrictionStart>(noslip_.count);
    start_frictions(x, first, last, start, arena_);
    for (int k = first; k < last; k++) {
      static_cast<FrictionStart&>(tangents_[k]) = start[k];
      set_mobility_change(noslip_.frictions[k], tangents_[k]);
    }
  }

  // Computes dJ, dz = M^-1 (dJ^T - dM z) and dA = dJ z + J dz.                          (SLIP-2)
  void set_mobility_change(const FrictionBlock& friction, FrictionTangent& t) {
    const Block& b = *friction.block;
    const int n = friction.count, width = width_;
    t.dJ = arena_.zeros<double>(n * b.n * width);
    t.dz = arena_.take<double>(n * friction.reach * width);
    t.dA = arena_.zeros<double>(n * n * width);
    for (int r = 0; r < n; r++) {
      const Arena::Mark mark = arena_.mark();
      set_jacobian_change(friction, r, t.dJ + r * b.n * width);
      set_reach_change(friction, r, t);
      arena_.rewind(mark);
    }
    for (int r = 0; r < n; r++)
      for (int s = 0; s < n; s++) {
        double* out = t.dA + (r * n + s) * width;
        for (int k = 0; k < b.n; k++) {
          const int i = place(friction, b.dofs[k]);
          add_scaled(out, friction.z[s * friction.reach + i], t.dJ + (r * b.n + k) * width, width);
          add_scaled(out, row_of(friction, r)[k], t.dz + (s * friction.reach + i) * width, width);
        }
      }
  }

  static int place(const FrictionBlock& friction, int dof) {
    int i = 0;
    while (friction.dofs[i] != dof) i++;
    return i;
  }

  // Computes the derivative of one row, which is d(J^T f)/dq at a unit force.
  void set_jacobian_change(const FrictionBlock& friction, int r, double* dJ) {
    Block unit = *friction.block;
    for (int k = 0; k < unit.count; k++) unit.force[k] = k == friction.first + r;
    unit.contact.adhesion = 0;
    BlockChange change = make_change(unit, arena_);
    differentiate(m_, d_, unit, motion_, change, arena_);
    for (int i = 0; i < unit.n; i++)
      for (int k = 0; k < unit.n; k++) {
        dJ[i * width_ + residual_.column[unit.dofs[k]]] =
            change.geometric_stiffness[i * unit.stride + k];
      }
  }

  // Computes dz of one row.
  void set_reach_change(const FrictionBlock& friction, int r, FrictionTangent& t) {
    const Block& b = *friction.block;
    double* z = arena_.zeros<double>(m_.nv);
    for (int i = 0; i < friction.reach; i++)
      z[friction.dofs[i]] = friction.z[r * friction.reach + i];
    const DofRows change = make_like(m_, residual_, arena_);
    inertia_derivative(m_, d_, tree_, z, change, arena_);
    for (int i = 0; i < b.n; i++) {
      add_scaled(change.row[b.dofs[i]], 1, t.dJ + (r * b.n + i) * width_, width_);
    }
    visit_trees(m_, friction.dofs, friction.reach, [&](int, int first, int last) {
      const int dof = friction.dofs[first];
      solve_inertia(m_, tree_, {d_.qLD, d_.qLDiagInv}, dof, last - first, change.row[dof], stride_,
                    0, width_);
    });
    for (int i = 0; i < friction.reach; i++) {
      std::memcpy(t.dz + (r * friction.reach + i) * width_, change.row[friction.dofs[i]],
                  width_ * sizeof(double));
    }
  }

  // Adds the derivative of one update to those of the forces and of the acceleration.   (SLIP-7)
  void replay(const FrictionUpdate& v) {
    const FrictionBlock& friction = noslip_.frictions[v.friction];
    const FrictionTangent& t = tangents_[v.friction];
    // derivative of delta
    const int n = friction.count;
    if (v.outcome == FrictionUpdate::kInside || v.outcome == FrictionUpdate::kCone)
      set_dres(friction, t);
    for (int r = 0; r < n; r++) std::memset(ddelta_ + r * stride_, 0, stride_ * sizeof(double));
    switch (v.outcome) {
      case FrictionUpdate::kInside:
        add_scaled(ddelta_, -1 / friction.A[0], dres_, stride_);
        add_scaled(ddelta_, -v.delta[0] / friction.A[0], t.dA, width_);
        break;
      case FrictionUpdate::kLow:
      case FrictionUpdate::kHigh:
        add_scaled(ddelta_, v.outcome == FrictionUpdate::kLow ? -1 : 1, t.dlimit, stride_);
        add_scaled(ddelta_, -1, t.dforce, stride_);
        break;
      case FrictionUpdate::kZero:
        add_scaled(ddelta_, -1, t.dforce, stride_);
        break;
      case FrictionUpdate::kCone:
        set_cone_change(friction, t, v);
        break;
    }
    // d(force) += d(delta), d(acc) += d(z delta)
    for (int r = 0; r < n; r++) {
      const double* change = ddelta_ + r * stride_;
      add_scaled(t.dforce + r * stride_, 1, change, stride_);
      for (int i = 0; i < friction.reach; i++) {
        const double z = friction.z[r * friction.reach + i];
        double* row = residual_.row[friction.dofs[i]];
        add_scaled(row, z, change, stride_);
        add_scaled(row, v.delta[r], t.dz + (r * friction.reach + i) * width_, width_);
        moved_[friction.dofs[i]] += z * v.delta[r];
      }
    }
  }

  // Computes d(J a - aref) = rho + dJ (a - a_optimum) + J da.                           (SLIP-1)
  void set_dres(const FrictionBlock& friction, const FrictionTangent& t) {
    const Block& b = *friction.block;
    for (int r = 0; r < friction.count; r++) {
      double* out = dres_ + r * stride_;
      std::memcpy(out, t.rho + r * stride_, stride_ * sizeof(double));
      add_moved_row(b, friction.first + r, residual_, out);
      for (int k = 0; k < b.n; k++) {
        add_scaled(out, moved_[b.dofs[k]], t.dJ + (r * b.n + k) * width_, width_);
      }
    }
  }

  // Computes d(delta) of a cone, column by column.
  void set_cone_change(const FrictionBlock& friction, const FrictionTangent& t,
                       const FrictionUpdate& v) {
    const int n = friction.count;
    double dA[kMaxFriction * kMaxFriction], db[kMaxFriction], dx[kMaxFriction];
    for (int c = 0; c < stride_; c++) {
      for (int k = 0; k < n * n; k++) dA[k] = c < width_ ? t.dA[k * width_ + c] : 0;
      for (int r = 0; r < n; r++) {
        // b = res - A f, with the force f before the update
        db[r] = dres_[r * stride_ + c];
        for (int s = 0; s < n; s++) {
          const double before = v.qcqp->x[s] - v.delta[s];
          db[r] -= dA[r * n + s] * before + friction.A[r * n + s] * t.dforce[s * stride_ + c];
        }
      }
      differentiate_qcqp(*v.qcqp, dA, db, t.dlimit[c], dx);
      for (int r = 0; r < n; r++) {
        ddelta_[r * stride_ + c] = dx[r] - t.dforce[r * stride_ + c];
      }
    }
  }

  const ModelView& m_;
  const DataView& d_;
  const Topology& tree_;
  const Blocks& blocks_;
  const Noslip& noslip_;
  const DofRows& residual_;
  const Component& part_;
  const int stride_;  // length of rows over all columns of the component
  const int width_;   // length of rows over its positions
  Arena& arena_;
  BlockMotion motion_;
  const double* start_;  // acceleration of the optimum
  double* moved_;        // sum of the changes of the acceleration by the sweeps so far
  FrictionTangent* tangents_;
  double *dres_, *ddelta_;
};

}  // namespace

void differentiate_noslip(const ModelView& m, const DataView& d, const Topology& tree,
                          const Blocks& blocks, const Optimum& optimum, const Noslip& noslip,
                          const DofRows& residual, int c, Arena& arena) {
  if (!noslip.first) return;
  const Component& part = residual.components[c];
  for (int k = 0; k < part.nv; k++) {
    const int dof = part.dofs[k];
    std::memcpy(noslip.start.row[dof], residual.row[dof], part.stride * sizeof(double));
  }
  Differentiator(m, d, tree, blocks, noslip, residual, c, optimum.acc, arena).run(c);
}

}  // namespace mujacobian
