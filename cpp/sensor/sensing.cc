#include "sensor/sensing.h"

#include <algorithm>
#include <new>

#include "forces/tendon.h"
#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

ForwardDynamics after_sweeps(const ForwardDynamics& forward, Arena& arena) {
  ForwardDynamics f = forward;
  if (!f.noslip.first) return f;
  f.blocks.block = arena.take<Block>(f.blocks.count);
  std::copy(forward.blocks.block, forward.blocks.block + f.blocks.count, f.blocks.block);
  for (int k = 0; k < f.noslip.count; k++) {
    const FrictionBlock& friction = f.noslip.frictions[k];
    Block& b = f.blocks.block[friction.block - forward.blocks.block];
    std::copy(friction.force, friction.force + friction.count, b.force + friction.first);
  }
  return f;
}

}  // namespace

Sensing::Sensing(const ModelView& model, const DataView& data, const ForwardDynamics& forward,
                 const DirectForces& direct_forces, Arena& scratch)
    : m(model),
      d(data),
      f(after_sweeps(forward, scratch)),
      direct(direct_forces),
      arena(scratch),
      solved_(forward.blocks) {}

const MotionSweep& Sensing::motion() {
  if (!motion_.rates) {
    motion_ = sweep_motion(m, d, f.acc, base_acceleration(m), arena);
  }
  return motion_;
}

const MotionSweep& Sensing::still_motion() {
  if (!still_.rates) still_ = sweep_motion(m, d, nullptr, {0, 0, 0}, arena);
  return still_;
}

const SubtreeForces& Sensing::subtree_forces() {
  if (!subtree_forces_.inertial) {
    subtree_forces_ = {composites(m, d, motion().acceleration, arena),
                       applied_wrenches(m, d, arena)};
  }
  return subtree_forces_;
}

const Force* Sensing::momentum() {
  if (momentum_) return momentum_;
  momentum_ = arena.zeros<Force>(m.nbody);
  for (int b = m.nbody - 1; b > 0; b--) {
    momentum_[b] += Inertia{d.cinert + 10 * b} * load_motion(d.cvel + 6 * b);
    momentum_[m.body_parentid[b]] += momentum_[b];
  }
  return momentum_;
}

const Path& Sensing::tendon(int t) {
  if (!tendon_) {
    tendon_ = arena.take<Path>(m.ntendon);
    for (int k = 0; k < m.ntendon; k++) tendon_[k].n = -1;
  }
  if (tendon_[t].n < 0) tendon_[t] = tendon_path(m, d, t, arena);
  return tendon_[t];
}

const Tension& Sensing::tension(int t) {
  if (!tension_) tension_ = arena.zeros<Tension*>(m.ntendon);
  if (!tension_[t]) {
    tension_[t] = new (arena.take<Tension>(1)) Tension{0, SensorRows(m, f, 1, direct.count, arena)};
    tension_[t]->derivative.reset(1);
    tension_[t]->value = sense_tension(*this, t, tension_[t]->derivative);
    tension_[t]->derivative.settle();
  }
  return *tension_[t];
}

const ActuatorForces& Sensing::actuators() {
  if (actuators_.count < 0) {
    // without actuation, as in inverse dynamics, the forces are constants
    bool constant = f.paths.actuation.count == 0;
    actuators_ = constant ? ActuatorForces{nullptr, 0} : actuator_forces(m, d, arena);
  }
  return actuators_;
}

const ActuatorCurvatures& Sensing::actuator_curvatures() {
  if (actuator_curvatures_.count < 0) {
    const Actuation& actuation = f.paths.actuation;
    PathCurvature* all = arena.take<PathCurvature>(actuation.weight_count + m.ntendon);
    actuator_curvatures_ = {all, mujacobian::actuator_curvatures(m, d, actuation, all, arena)};
  }
  return actuator_curvatures_;
}

const DofRows& Sensing::actuator_force() {
  if (!actuator_force_) {
    actuator_force_ = arena.take<DofRows>(1);
    *actuator_force_ = make_like(m, f.residual, arena);
    const Actuation& all = f.paths.actuation;
    for (int k = 0; k < all.count; k++) {
      add_path_force(all.forces[k], d.qvel, nullptr, *actuator_force_, arena);
    }
  }
  return *actuator_force_;
}

const DofRows& Sensing::gravity_compensation() {
  if (!gravity_compensation_) {
    gravity_compensation_ = arena.take<DofRows>(1);
    *gravity_compensation_ = make_like(m, f.residual, arena);
    add_gravity_compensation(m, d, nullptr, *gravity_compensation_, arena);
  }
  return *gravity_compensation_;
}

const BlockMotion& Sensing::block_motion() {
  if (!block_motion_.acc) {
    block_motion_ = mujacobian::block_motion(m, d, solved_, f.solved, arena);
  }
  return block_motion_;
}

const ForceDerivative& Sensing::force(int k) {
  if (!force_) force_ = arena.zeros<ForceDerivative*>(f.blocks.count);
  if (!force_[k]) {
    if (solved_.block[k].unknown > 0) {
      throw Unsupported(row_name(m, solved_.block[k]),
                        "its force is lost to rounding, and a sensor measures it");
    }
    force_[k] = arena.take<ForceDerivative>(1);
    *force_[k] = force_derivative(m, d, f.tree, solved_, solved_.block[k], block_motion(),
                                  f.residual, arena);
  }
  return *force_[k];
}

const BlockWrench& Sensing::wrench(int k) {
  if (!wrench_) wrench_ = arena.zeros<BlockWrench*>(f.blocks.count);
  if (!wrench_[k]) {
    wrench_[k] = arena.take<BlockWrench>(1);
    *wrench_[k] = block_wrench(m, d, f.blocks.block[k], arena);
  }
  return *wrench_[k];
}

const ContactVariation* Sensing::variations(int k) {
  if (!variations_) variations_ = arena.zeros<const ContactVariation*>(f.blocks.count);
  if (!variations_[k]) variations_[k] = contact_variations(m, f.blocks.block[k], arena);
  return variations_[k];
}

void Sensing::add_swept(SensorRows& rows, int r, int k, double* weight) {
  for (int i = 0; i < f.noslip.count; i++) {
    const FrictionBlock& friction = f.noslip.frictions[i];
    if (friction.block != solved_.block + k) continue;
    const Component& part = f.residual.components[f.residual.component[friction.block->dofs[0]]];
    for (int row = 0; row < friction.count; row++) {
      rows.add_columns(r, weight[friction.first + row], f.noslip.dforce[i] + row * part.stride,
                       part,
                       /*forces=*/true);
      weight[friction.first + row] = 0;
    }
  }
}

void Sensing::add_force(SensorRows& rows, int r, int k, const double* weights) {
  const Block& b = solved_.block[k];
  const ForceDerivative& df = force(k);
  double weight[kMaxRows];
  std::copy(weights, weights + b.count, weight);
  if (f.noslip.first) add_swept(rows, r, k, weight);
  for (int i = 0; i < b.n; i++) {
    double acc = 0;
    for (int row = 0; row < b.count; row++) {
      const int at = row * b.stride + i;
      acc += weight[row] * df.acc[at];
      rows.q(r, b.dofs[i]) += weight[row] * df.q[at];
      rows.v(r, b.dofs[i]) += weight[row] * df.v[at];
    }
    if (f.noslip.first) {
      rows.add_generalized(r, acc, f.noslip.start, b.dofs[i]);
    } else {
      rows.add_acceleration(r, acc, b.dofs[i]);
    }
  }
  for (int s = 0; s < df.diagonal_count; s++) {
    const DiagonalChange& change = df.diagonal[s];
    double scale = 0;
    for (int row = change.first; row < change.last; row++) {
      scale += weight[row] * force_by_log_stiffness(d, b, row);
    }
    for (int i = 0; i < m.nv; i++) rows.q(r, i) += scale * change.dlogD[i];
  }
  if (corrects_rows(m, d, f)) add_correction(rows, r, b, weight);
  for (int p = 0; p < direct.count; p++) {
    const double* change =
        direct.change + (static_cast<std::size_t>(k) * direct.count + p) * kMaxRows;
    for (int row = 0; row < b.count; row++) rows.direct(r, p) += weight[row] * change[row];
  }
}

void Sensing::add_correction(SensorRows& rows, int r, const Block& b, const double* weight) {
  if (!diagonal_rates_) {
    diagonal_rates_ = arena.take<DiagonalRates>(1);
    *diagonal_rates_ = diagonal_rates(m, d, f, arena);
  }
  EffectiveChange change[kMaxRows];
  const int count = effective_change(m, d, f.blocks, b, *diagonal_rates_, change, arena);
  for (int s = 0; s < count; s++) {
    double scale = 0;
    for (int row = 0; row < b.count; row++) scale += weight[row] * change[s].force[row];
    const Component& part = f.residual.components[f.residual.component[b.dofs[0]]];
    rows.add_columns(r, scale, change[s].dlogR, part, /*forces=*/false);
  }
}

}  // namespace mujacobian
