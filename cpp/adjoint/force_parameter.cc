#include "adjoint/column.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "smooth/law.h"
#include "smooth/passive.h"
#include "smooth/tendon.h"
#include "smooth/unsupported.h"
#include "spatial/rotation.h"

namespace mujacobian {
namespace {

bool knows_paths(const ModelView& m) { return m.opt.integrator != integrator::kEuler; }

// Without any damping Euler's method is explicit, and with the least damping it is not.
void require_damped(const StepDifferential& s) {
  if (!s.step.explicit_) return;
  throw Unsupported(
      "damping as a parameter",
      "no dof is damped, where Euler's method changes its form: give one some damping");
}

// Values that the components 0, 1, 2 of an affine law multiply.
double affine_factor(const ModelView& m, const DataView& d, int actuator, int component) {
  const int out = m.actuator_outadr[actuator];
  return component == 0 ? 1 : component == 1 ? d.actuator_length[out] : d.actuator_velocity[out];
}

}  // namespace

const char* actuator_parameter_refusal(const ModelView& m, const Parameter& p) {
  const int type =
      p.kind == Parameter::kGain ? m.actuator_gaintype[p.id] : m.actuator_biastype[p.id];
  const int affine = p.kind == Parameter::kGain ? gain::kAffine : bias::kAffine;
  const bool fixed = p.kind == Parameter::kGain && type == gain::kFixed && p.component == 0;
  if (wrap_period(m, p.id) > 0) return "gain and bias of a servo on a rotation as parameters";
  if (fixed || (type == affine && p.component < 3)) return nullptr;
  return p.kind == Parameter::kGain ? "this component of its gain as a parameter"
                                    : "this component of its bias as a parameter";
}

// Force along a path, and the damping that it adds to the matrix of the implicit integrators:
//   early = m force,   late = -h D w = h damping m (m . w)                                  (PAR-5)
void ForceColumns::add_path(const Path& path, double force, double damping,
                            const unsigned char* frozen, const Column& column) const {
  for (int a = 0; a < path.n; a++) {
    const int i = path.dofs[a];
    if (!(frozen && frozen[i])) column.early[i] += path.moment[a] * force;
    if (damping == 0) continue;
    double rate = 0;
    for (int b = 0; b < path.n; b++) {
      if (in_damping(m_, s_.forward.tree, s_.step.block, i, path.dofs[b])) {
        rate += path.moment[b] * s_.step.w[path.dofs[b]];
      }
    }
    column.late[i] += m_.opt.timestep * damping * path.moment[a] * rate;
  }
}

void ForceColumns::add_damping(int dof, const Column& column) const {
  if (!dampers_enabled(m_)) return;
  column.early[dof] -= d_.qvel[dof];
  if (m_.opt.integrator == integrator::kEuler && m_.opt.disableflags & disable::kEulerDamp) return;
  require_damped(s_);
  column.late[dof] -= m_.opt.timestep * s_.step.w[dof];
}

void ForceColumns::add_stiffness(int joint, const Column& column) const {
  if (!springs_enabled(m_)) return;
  int qadr = m_.jnt_qposadr[joint], dof = m_.jnt_dofadr[joint], type = m_.jnt_type[joint];
  const double *qpos = d_.qpos + qadr, *rest = m_.qpos_spring + qadr;
  if (is_plastic(m_.jnt_plasticadr, joint)) rest = d_.plastic + m_.jnt_plasticadr[joint];
  if (type == joint::kSlide || type == joint::kHinge) {
    column.early[dof] -= qpos[0] - rest[0];
    return;
  }
  if (type == joint::kFree) {
    store3(column.early + dof, load3(column.early + dof) - (load3(qpos) - load3(rest)));
    qpos += 3, rest += 3, dof += 3;
  }
  store3(column.early + dof, load3(column.early + dof) - quaternion_difference(qpos, rest));
}

void ForceColumns::add_tendon(const Parameter& p, const Column& column) const {
  PathForce f{};
  const Path path = tendon_path(m_, d_, p.id, arena_);
  if (p.kind == Parameter::kTendonDamping) {
    if (!dampers_enabled(m_)) return;
    return add_path(path, -d_.ten_velocity[p.id], knows_paths(m_) ? -1 : 0, nullptr, column);
  }
  if (!springs_enabled(m_)) return;
  const double* rest = m_.tendon_lengthspring + 2 * p.id;
  if (is_plastic(m_.tendon_plasticadr, p.id)) {
    if (p.kind == Parameter::kTendonRestLength) return;  // the rest length is a state
    rest = d_.plastic + m_.tendon_plasticadr[p.id];
  }
  const double length = d_.ten_length[p.id];
  const int side = length > rest[1] ? 1 : length < rest[0] ? 0 : -1;
  if (side < 0) return;
  if (p.kind == Parameter::kTendonStiffness) {
    return add_path(path, rest[side] - length, 0, nullptr, column);
  }
  if (p.component != side || !tendon_force(m_, d_, p.id, path, f)) return;
  add_path(path, -f.dlength, 0, nullptr, column);
}

void ForceColumns::add_actuator(const Parameter& p, const Column& column) {
  if (actuators_.count < 0) actuators_ = actuator_forces(m_, d_, arena_);
  for (int k = 0; k < actuators_.count; k++) {
    const ActuatorForce& f = actuators_.force[k];
    if (f.share != 0 && f.actuator == p.id) {
      throw Unsupported(element_name(m_, object::kActuator, p.id),
                        "its gain and bias as parameters beyond the force range of its tendon");
    }
    if (f.actuator != p.id) continue;
    const double input = p.kind == Parameter::kGain ? gain_input(m_, d_, p.id) : 1;
    const double gear = path_gear(m_, p.id);
    const double force = gear * f.slope * input * affine_factor(m_, d_, p.id, p.component);
    const double damping =
        knows_paths(m_) && p.component == 2 ? gear * gear * f.in_metric * input : 0;
    add_path(f.law.path, force, damping, s_.forward.paths.actuation.frozen, column);
  }
}

void ForceColumns::add(const Parameter& p, const Column& column) {
  switch (p.kind) {
    case Parameter::kDamping:
      return add_damping(p.id, column);
    case Parameter::kStiffness:
      return add_stiffness(p.id, column);
    case Parameter::kSpringReference: {
      // the spring's force depends on q - rest
      if (!springs_enabled(m_) || is_plastic(m_.jnt_plasticadr, p.id)) return;
      const int q = m_.jnt_qposadr[p.id];
      column.early[m_.jnt_dofadr[p.id]] +=
          joint_stiffness(m_, p.id).slope(d_.qpos[q] - m_.qpos_spring[q]);
      return;
    }
    case Parameter::kGain:
    case Parameter::kBias:
      return add_actuator(p, column);
    default:
      return add_tendon(p, column);
  }
}

}  // namespace mujacobian
