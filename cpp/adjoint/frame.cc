#include "adjoint/frame.h"

#include <algorithm>

#include "actuation/transmission.h"
#include "forces/inertia_derivative.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "sensor/frame.h"
#include "sensor/sensor.h"
#include "sensor/type.h"
#include "spatial/quaternion.h"
#include "step/activation.h"

namespace mujacobian {
namespace {

// Returns a rotation about a point of space, as a motion about `reference`.
Motion turn_about(Vec3 axis, Vec3 point, Vec3 reference) {
  return {axis, cross(axis, reference - point)};
}

// Returns whether MuJoCo reads the frame of the body. It does not if the body has a free joint.
bool reads_frame(const ModelView& m, int body) {
  return m.body_jntnum[body] == 0 || m.jnt_type[m.body_jntadr[body]] != joint::kFree;
}

int body_of(const ModelView& m, const Parameter& p) {
  return kind_of(p).element == object::kJoint ? m.jnt_bodyid[p.id] : p.id;
}

// Writes the motions that make up a unit change of the parameter, and returns their number.
// (PAR-12)
int make_virtual_dofs(const ModelView& m, const DataView& d, const Parameter& p,
                      VirtualDof out[2]) {
  const int body = body_of(m, p), parent = m.body_parentid[body];
  const Vec3 reference = load3(d.subtree_com + 3 * m.body_rootid[body]);
  const Mat3 outer = load9(d.xmat + 9 * parent), after = load9(d.xmat + 9 * body);
  const Mat3 before = outer * rotation(normalized(load_quaternion(m.body_quat + 4 * body)));
  const Vec3 origin = load3(d.xpos + 3 * parent) + outer * load3(m.body_pos + 3 * body);
  const Vec3 e = unit3(p.component), place = load3(d.xpos + 3 * body);
  switch (p.kind) {
    case Parameter::kMocapPosition:
      out[0] = {body, true, {{0, 0, 0}, e}};
      return 1;
    case Parameter::kMocapRotation:
      out[0] = {body, true, turn_about(after * e, place, reference)};
      return 1;
    case Parameter::kBodyPosition:
      if (!reads_frame(m, body)) return 0;
      out[0] = {body, true, {{0, 0, 0}, outer * e}};
      return 1;
    case Parameter::kBodyRotation:
      if (!reads_frame(m, body)) return 0;
      out[0] = {body, true, turn_about(before * e, origin, reference)};
      return 1;
    case Parameter::kBodyOffset:
      out[0] = {body, false, {{0, 0, 0}, after * e}};
      return 1;
    case Parameter::kBodyTurn:
      out[0] = {body, false, turn_about(after * e, place, reference)};
      return 1;
    case Parameter::kJointPosition:
      // the anchor moves, and the body keeps its distance to it
      if (m.jnt_type[p.id] == joint::kSlide) return 0;
      out[0] = {body, true, {{0, 0, 0}, before * e}};
      out[1] = {body, false, {{0, 0, 0}, -(after * e)}};
      return 2;
    default: {
      // exp(x (n + w x n)) = exp(w) exp(x n) exp(-w)
      const Vec3 turn = cross(load3(m.jnt_axis + 3 * p.id), e);
      const Vec3 anchor = load3(d.xanchor + 3 * p.id);
      const bool slides = m.jnt_type[p.id] == joint::kSlide;
      out[0] = {body, true, turn_about(before * turn, slides ? origin : anchor, reference)};
      out[1] = {body, false, turn_about(-(after * turn), slides ? place : anchor, reference)};
      return 2;
    }
  }
}

// Returns the blocks of the integrator for the trees of the extended model, without their matrices.
TreeBlock* const* extended_blocks(const ModelView& m, const Extension& e, TreeBlock* const* blocks,
                                  Arena& arena) {
  if (!blocks) return nullptr;
  TreeBlock** to = arena.zeros<TreeBlock*>(e.m.ntree);
  for (int t = 0; t < m.ntree; t++) {
    if (!blocks[t]) continue;
    const int dof = e.real[blocks[t]->dof];
    TreeBlock* block = to[e.m.dof_treeid[dof]] = arena.take<TreeBlock>(1);
    *block = {dof, blocks[t]->n, nullptr, nullptr};
  }
  return to;
}

}  // namespace

bool is_at_rest(const ModelView& m, int sensor) {
  if (engine().version >= kMuJoCo400) return false;
  const Dependence by = sensor_type(m, sensor).parameters;
  if (by != Dependence::kLinearAcceleration && by != Dependence::kAngularAcceleration) return false;
  return last_dof(m, object_body(m, m.sensor_objtype[sensor], m.sensor_objid[sensor])) < 0;
}

Frames::Frames(const ModelView& m, const DataView& d, const ParameterList& params, Arena& arena)
    : m_(m), d_(d), params_(params), arena_(arena) {
  first_ = arena.take<int>(params.count + 1);
  virtual_dofs_ = arena.take<VirtualDof>(2 * params.count);
  first_[0] = 0;
  for (int k = 0; k < params.count; k++) {
    const Parameter& p = params.item[k];
    first_[k + 1] = first_[k];
    if (family_of(p) == Family::kFrame)
      first_[k + 1] += make_virtual_dofs(m, d, p, virtual_dofs_ + first_[k]);
  }
}

void Frames::require_still_fluid() const {
  if (m_.opt.density == 0 && m_.opt.viscosity == 0) return;
  for (int k = 0; k < count(); k++) {
    const int tree = extension_.m.dof_treeid[extension_.virtual_dof[k]];
    for (int i = 0; i < m_.nv; i++) {
      if (extension_.m.dof_treeid[extension_.real[i]] != tree) continue;
      throw Unsupported(element_name(m_, object::kBody, virtual_dofs_[k].body),
                        "its frame is not supported as a parameter in a fluid");
    }
  }
}

// Prepares the forward dynamics of the extended model, with the same forces and accelerations.
void Frames::start_forward(const StepDifferential& s) {
  const Extension& e = extension_;
  forward_ = mujacobian::start_forward(e.m, e.d, false, &s.forward.blocks, arena_);
  for (int k = 0; k < forward_.blocks.count; k++) {
    const Block& from = s.forward.blocks.block[k];
    Block& to = forward_.blocks.block[k];
    std::copy(from.force, from.force + kMaxRows, to.force);
    std::copy(from.hessian, from.hessian + kMaxRows * kMaxRows, to.hessian);
    to.active = from.active;
    if (!from.idle) continue;
    // an idle contact has a force of 1e16 that moves no dof; it could move a virtual one
    for (int i = 0; i < to.n; i++) {
      if (std::find(e.virtual_dof, e.virtual_dof + count(), to.dofs[i]) == e.virtual_dof + count())
        continue;
      throw Unsupported(
          contact_name(m_, to.contact),
          "frames are not supported as parameters of a contact that cannot push its bodies");
    }
    to.n = to.stride = 0;
  }
  forward_.solved = extended(m_, e, s.forward.solved, arena_);
  forward_.acc = extended(m_, e, s.forward.acc, arena_);
  forward_.metric.block = extended_blocks(m_, e, s.forward.metric.block, arena_);
}

// Subtracts the change of the bias force of single free bodies with the virtual dofs. The matrix of
// the step contains the rate of this force, but its derivative has only the six dofs of the body.
// (PAR-3)
void Frames::subtract_free_bias(const double* w, TreeBlock* const* blocks,
                                const DofRows& residual) {
  const ModelView& m = extension_.m;
  bool any = false;
  for (int k = 0; k < count(); k++)
    any |= blocks[m.dof_treeid[extension_.virtual_dof[k]]] != nullptr;
  if (!any) return;
  const DofRows bias = make_like(m, residual, arena_);
  subtract_bias_change(m, extension_.d, forward_.tree, w, bias, arena_);
  for (int k = 0; k < count(); k++) {
    const int column = extension_.virtual_dof[k], tree = m.dof_treeid[column];
    for (int i = 0; blocks[tree] && i < m.tree_dofnum[tree]; i++) {
      const int dof = m.tree_dofadr[tree] + i;
      residual.dq(dof, column) += bias.dq(dof, column);
    }
  }
}

void Frames::write(const DofRows& from, double* to) const {
  for (int k = 0; k < count(); k++) {
    const int column = extension_.virtual_dof[k];
    for (int i = 0; i < m_.nv; i++) {
      const int dof = extension_.real[i];
      const bool coupled = from.component[dof] == from.component[column];
      to[k * m_.nv + i] = coupled ? from.dq(dof, column) : 0;
    }
  }
}

void Frames::write_activations() {
  for (int i = 0; i < m_.na; i++) {
    auto write = [&](int column, double value) {
      for (int k = 0; k < count(); k++) {
        if (extension_.virtual_dof[k] == column) act_[k * m_.na + i] += value;
      }
    };
    visit_activation(extension_.m, extension_.d, forward_.paths.actuation, i, arena_, write,
                     [](int, double) {});
  }
  if (m_.opt.integrator != integrator::kRK4) return;
  for (int k = 0; k < count() * m_.na; k++) {
    if (act_[k] == 0) continue;
    throw Unsupported(
        element_name(m_, object::kBody, virtual_dofs_[k / m_.na].body),
        "activations depend on its frame, which is not supported as a parameter under RK4");
  }
}

void Frames::carry() {
  if (!extension_.virtual_dof) extension_ = extend(m_, d_, virtual_dofs_, count(), arena_);
}

void Frames::write_path(const Path& path, double scale, double* out) const {
  const int width = 1 + m_.nv;
  std::fill(out, out + static_cast<std::size_t>(params_.count) * width, 0.);
  const ModelView& m = extension_.m;
  int* place = arena_.take<int>(m.nv);  // index of each dof in the path, -1: none
  std::fill(place, place + m.nv, -1);
  for (int i = 0; i < path.n; i++) place[path.dofs[i]] = i;
  for (int k = 0; k < params_.count; k++) {
    for (int c = first_[k]; c < first_[k + 1]; c++) {
      const int column = place[extension_.virtual_dof[c]];
      if (column < 0) continue;
      out[k * width] += scale * path.dlength[column];
      for (int i = 0; path.hessian && i < m_.nv; i++) {
        const int row = place[extension_.real[i]];
        if (row >= 0) out[k * width + 1 + i] += scale * path.hessian[row * path.n + column];
      }
    }
  }
}

void Frames::write_tendon(int tendon, double* out) {
  carry();
  write_path(tendon_path(extension_.m, extension_.d, tendon, arena_), 1, out);
}

void Frames::write_actuator(int actuator, double* out) {
  carry();
  Path* tendons = arena_.take<Path>(m_.ntendon);
  for (int t = 0; t < m_.ntendon; t++) tendons[t].n = -1;
  write_path(transmission_path(extension_.m, extension_.d, actuator, tendons, arena_),
             path_gear(m_, actuator), out);
}

void Frames::differentiate(const StepDifferential& s) {
  if (count() == 0) return;
  const std::size_t size = static_cast<std::size_t>(count()) * m_.nv;
  early_ = arena_.take<double>(size);
  late_ = arena_.zeros<double>(size);
  act_ = arena_.zeros<double>(static_cast<std::size_t>(count()) * m_.na);
  carry();
  require_still_fluid();
  start_forward(s);

  const ModelView& m = extension_.m;
  const DataView& d = extension_.d;
  const double* at = extended(m_, extension_, s.at, arena_);
  fill_residual(m, d, forward_, at, arena_);
  if (has_metric(m)) subtract_free_bias(at, forward_.metric.block, forward_.residual);
  write(forward_.residual, early_);
  write_activations();
  if (s.step.explicit_) return;

  const DofRows late = make_like(m, forward_.residual, arena_);
  const double* w = extended(m_, extension_, s.step.w, arena_);
  if (s.two_systems) {
    inertia_derivative(m, d, forward_.tree, extended(m_, extension_, s.lag, arena_), late, arena_);
  }
  TreeBlock* const* blocks = extended_blocks(m_, extension_, s.step.block, arena_);
  subtract_damping_change(m, d, forward_, blocks, w, /*inverse=*/false, late, arena_);
  if (m.opt.integrator == integrator::kImplicitFast) subtract_free_bias(w, blocks, late);
  write(late, late_);
}

void Frames::add(int k, const ParameterColumns& to) const {
  for (int c = first_[k]; c < first_[k + 1]; c++) {
    for (int i = 0; i < m_.nv; i++) {
      to.early[i] += early_[c * m_.nv + i];
      to.late[i] += late_[c * m_.nv + i];
    }
    for (int i = 0; i < m_.na; i++) to.act[i] += act_[c * m_.na + i];
  }
}

void Frames::sense(const double* driven, double* rows) {
  if (count() == 0) return;
  const ModelView& m = extension_.m;
  const DofRows& da = forward_.residual;
  for (int i = 0; i < m.nv; i++) {
    std::fill(da.row[i], da.row[i] + da.components[da.component[i]].stride, 0.);
  }
  // d(acc) of a parameter goes to the column of the first of its virtual dofs
  for (int k = 0; k < params_.count; k++) {
    if (first_[k] == first_[k + 1]) continue;
    const int column = extension_.virtual_dof[first_[k]];
    for (int i = 0; i < m_.nv; i++) {
      const int dof = extension_.real[i];
      if (da.component[dof] == da.component[column]) da.dq(dof, column) = driven[k * m_.nv + i];
    }
  }
  const std::size_t nx = state_size(m);
  double* C = arena_.take<double>(m.nsensordata * nx);
  mujacobian::sense(m, extension_.d, forward_, {C, nullptr, nullptr}, arena_);
  for (int s = 0; s < m.nsensor; s++) {
    if (is_at_rest(m_, s)) continue;
    for (int r = m.sensor_adr[s]; r < m.sensor_adr[s] + m.sensor_dim[s]; r++)
      for (int k = 0; k < params_.count; k++)
        for (int c = first_[k]; c < first_[k + 1]; c++) {
          rows[r * params_.count + k] += C[r * nx + extension_.virtual_dof[c]];
        }
  }
}

}  // namespace mujacobian
