#include "constraint/noslip.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "constraint/force.h"
#include "constraint/rounding.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// An update that increases the cost by more than this is undone, as in MuJoCo.
constexpr double kMaxIncrease = 1e-10;

// Largest accepted difference from MuJoCo's constraint force, relative to the largest generalized
// force. MuJoCo's Newton solver stops up to 4e-5 from the optimum if cones slide, and the
// derivative there is the same to 1e-9. A solver that has not converged (PGS on cones) ends 1e-2
// away and on other branches.
constexpr double kSameForce = 1e-4;

// Returns the sum of R f^2 / 2 of a block, which MuJoCo counts as an improvement by the first
// sweep.
double regularization(const DataView& d, const Block& b, const double* acc) {
  double sum = 0;
  if (b.type == constraint::kContactPyramidal) {
    double moved[kMaxRows];
    move_block(b, acc, moved);
    for (int e = 0; e < b.edges; e++) {
      const double f = pyramid_edge(d, b, moved, 1 + e / 2, e % 2).force;
      sum += 0.5 * d.efc_R[b.row + e] * f * f;
    }
    return sum;
  }
  for (int r = 0; r < b.count; r++) sum += 0.5 * d.efc_R[b.row + r] * b.force[r] * b.force[r];
  return sum;
}

// Computes J acc - aref of the rows of a friction block.
void residual_of(const FrictionBlock& friction, const double* acc, double* res) {
  const Block& b = *friction.block;
  for (int r = 0; r < friction.count; r++) {
    res[r] = -friction.aref[r];
    for (int k = 0; k < b.n; k++) res[r] += row_of(friction, r)[k] * acc[b.dofs[k]];
  }
}

// Updates one force between bounds.                                                     (SLIP-4)
void update_bounded(const FrictionBlock& friction, double res, FrictionUpdate& visit) {
  const double mu =
      is_dry(*friction.block) ? 0 : friction.block->contact.friction.v[friction.first - 1];
  double force = 0;
  if (mu > 0 && 4 * mu * mu * friction.A[0] < kMinVal) {
    visit.outcome = FrictionUpdate::kZero;
  } else {
    force = friction.force[0] - res / friction.A[0];
    visit.outcome = FrictionUpdate::kInside;
    // tie: noslip and the bound of dry friction
    if (force < -friction.limit) {
      force = -friction.limit;
      visit.outcome = FrictionUpdate::kLow;
    } else if (force > friction.limit) {
      force = friction.limit;
      visit.outcome = FrictionUpdate::kHigh;
    }
  }
  visit.delta[0] = force - friction.force[0];
}

// Updates the tangential forces of a cone.                                              (SLIP-6)
void update_cone(const FrictionBlock& friction, const double* res, FrictionUpdate& visit,
                 Arena& arena) {
  const int n = friction.count;
  double b[kMaxFriction];
  for (int r = 0; r < n; r++) {
    b[r] = res[r];
    for (int s = 0; s < n; s++) b[r] -= friction.A[r * n + s] * friction.force[s];
  }
  Qcqp* qcqp = arena.take<Qcqp>(1);
  *qcqp = solve_qcqp(n, friction.A, b, friction.block->contact.friction.v, friction.limit, arena);
  visit.qcqp = qcqp;
  visit.outcome = FrictionUpdate::kCone;
  for (int r = 0; r < n; r++) visit.delta[r] = qcqp->x[r] - friction.force[r];
}

// Returns the change of the cost by an update.
double cost_change(const FrictionBlock& friction, const double* res, const double* delta) {
  double change = 0;
  for (int r = 0; r < friction.count; r++) {
    change += delta[r] * res[r];
    for (int s = 0; s < friction.count; s++) {
      change += 0.5 * delta[r] * friction.A[r * friction.count + s] * delta[s];
    }
  }
  return change;
}

// f += delta, J^T f += J^T delta, a += z delta
void apply(FrictionBlock& friction, const double* delta, Noslip& noslip) {
  const Block& b = *friction.block;
  for (int r = 0; r < friction.count; r++) {
    friction.force[r] += delta[r];
    for (int k = 0; k < b.n; k++) noslip.force[b.dofs[k]] += row_of(friction, r)[k] * delta[r];
    for (int i = 0; i < friction.reach; i++) {
      noslip.acc[friction.dofs[i]] += friction.z[r * friction.reach + i] * delta[r];
    }
  }
}

// Returns the total inertia of the island, by which MuJoCo divides improvements.
double inertia_scale(const ModelView& m, const DataView& d, int island) {
  // since 3.17 the trace of M, before that a constant of the model
  if (engine().version < kMuJoCo317) return m.stat.meaninertia * std::fmax(1, m.nv);
  double trace = 0;
  for (int i = 0; i < m.nv; i++) {
    if (d.nisland && d.dof_island[i] != island) continue;
    trace += d.M[m.M_rowadr[i] + m.M_rownnz[i] - 1];
  }
  return trace;
}

// The sweeps of the solver.
class Sweeper {
 public:
  Sweeper(const ModelView& m, const DataView& d, const Blocks& blocks, const Optimum& optimum,
          Noslip& noslip, Arena& arena)
      : m_(m), d_(d), blocks_(blocks), start_(optimum.acc), noslip_(noslip), arena_(arena) {}

  // Runs all sweeps of one island. Without islands, all rows are one island.
  void run(int island) {
    // the first sweep also removes the regularization
    double bonus = 0;
    for (int k = 0; k < blocks_.count; k++) {
      if (in_island(blocks_.block[k], island)) {
        bonus += regularization(d_, blocks_.block[k], start_);
      }
    }
    const double scale = inertia_scale(m_, d_, island);
    for (int sweep = 0; sweep < m_.opt.noslip_iterations; sweep++) {
      double improvement = sweep == 0 ? bonus : 0;
      for (int k = 0; k < noslip_.count; k++) {
        if (in_island(*noslip_.frictions[k].block, island)) improvement -= visit(k);
      }
      if (improvement / scale < m_.opt.noslip_tolerance) break;
    }
  }

 private:
  bool in_island(const Block& b, int island) const {
    return d_.nisland == 0 || d_.efc_island[b.row] == island;
  }

  // Updates one friction block. Returns the change of the cost.
  double visit(int index) {
    FrictionBlock& friction = noslip_.frictions[index];
    double res[kMaxFriction];
    residual_of(friction, noslip_.acc, res);
    const Arena::Mark mark = arena_.mark();
    FrictionUpdate* v = arena_.take<FrictionUpdate>(1);
    v->friction = index;
    v->next = nullptr;
    if (friction.cone) {
      update_cone(friction, res, *v, arena_);
    } else {
      update_bounded(friction, res[0], *v);
    }
    const double change = cost_change(friction, res, v->delta);
    // undo an update that increases the cost, otherwise apply and record it
    if (change > kMaxIncrease && !is_dry(*friction.block)) {
      arena_.rewind(mark);
      return 0;
    }
    apply(friction, v->delta, noslip_);
    (last_ ? last_->next : head_) = v;
    noslip_.first = head_;
    last_ = v;
    return change;
  }

  const ModelView& m_;
  const DataView& d_;
  const Blocks& blocks_;
  const double* start_;
  Noslip& noslip_;
  Arena& arena_;
  FrictionUpdate *head_ = nullptr, *last_ = nullptr;
};

// Throws Unsupported if the forces differ from those of MuJoCo's own sweeps.
void require_same(const ModelView& m, const DataView& d, const Noslip& noslip) {
  double scale = std::fmax(largest(d.qfrc_smooth, m.nv), largest(d.qfrc_constraint, m.nv));
  double difference = 0;
  for (int i = 0; i < m.nv; i++) {
    difference = std::fmax(difference, std::abs(noslip.force[i] - d.qfrc_constraint[i]));
  }
  if (difference <= kSameForce * scale) return;
  char text[200];
  std::snprintf(text, sizeof text,
                "the forces after the sweeps differ from MuJoCo's by %.1e of the largest force, "
                "because its solver stopped short of the optimum: lower opt.tolerance or raise "
                "opt.iterations",
                difference / scale);
  throw Unsupported("option noslip_iterations", text);
}

}  // namespace

Noslip sweep_noslip(const ModelView& m, const DataView& d, const Blocks& blocks,
                    const Optimum& optimum, Arena& arena) {
  Noslip noslip{
      arena.take<double>(m.nv), arena.take<double>(m.nv), nullptr, 0, nullptr, {}, nullptr};
  std::memcpy(noslip.acc, optimum.acc, m.nv * sizeof(double));
  std::memcpy(noslip.force, optimum.force, m.nv * sizeof(double));
  noslip.frictions = arena.take<FrictionBlock>(d.nefc);
  noslip.count = make_friction_blocks(m, d, blocks, optimum.acc, noslip.frictions, arena);
  Sweeper sweeper(m, d, blocks, optimum, noslip, arena);
  for (int island = 0; island < (d.nisland ? d.nisland : 1); island++) sweeper.run(island);

  require_same(m, d, noslip);
  noslip.dforce = arena.zeros<double*>(noslip.count);
  return noslip;
}

}  // namespace mujacobian
