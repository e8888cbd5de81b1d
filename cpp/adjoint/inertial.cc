#include <cmath>

#include "adjoint/column.h"
#include "layout/enums.h"
#include "smooth/velocity.h"

namespace mujacobian {
namespace {

Vec3 base_acceleration(const ModelView& m) {
  return m.opt.disableflags & disable::kGravity ? Vec3{0, 0, 0} : -load3(m.opt.gravity.v);
}

// A motion about the reference point of the body's tree, in the body's frame about its origin.
Motion in_body(const ModelView& m, const DataView& d, int body, Motion v) {
  Vec3 offset = load3(d.xpos + 3 * body) - load3(d.subtree_com + 3 * m.body_rootid[body]);
  Mat3 frame = load9(d.xmat + 9 * body);
  return {transpose_mul(frame, v.ang), transpose_mul(frame, at_point(v, offset))};
}

// Place of a component (mass, mass * com, inertia) in MuJoCo's packed inertia.
int packed_place(int component) {
  return component == 0 ? 9 : component < 4 ? 5 + component : component - 4;
}

}  // namespace

void InertialColumns::prepare() {
  if (prepared_) return;
  prepared_ = true;
  early_ = {d_.cvel, sweep_motion(m_, d_, s_.at, base_acceleration(m_), arena_).acceleration, -1};

  // M enters after d(acc) with a - w                                                       (PAR-2)
  const DataView resting = at_rest(m_, d_, arena_);
  late_[late_count_++] = {resting.cvel,
                          sweep_motion(m_, resting, s_.lag, {0, 0, 0}, arena_).acceleration, -1};

  // so does h (dc/dv) w where the integrator knows the bias c, by the bilinear identity     (PAR-3)
  if (!s_.step.block) return;
  double speed = 0, size = 0;
  for (int i = 0; i < m_.nv; i++) {
    speed = std::fmax(speed, std::abs(d_.qvel[i]));
    size = std::fmax(size, std::abs(s_.step.w[i]));
  }
  if (size == 0) return;
  const double scale = (speed > 0 ? speed : 1) / size;
  for (double sign : {1.0, -1.0}) {
    double* velocity = arena_.take<double>(m_.nv);
    for (int i = 0; i < m_.nv; i++) velocity[i] = d_.qvel[i] + sign * scale * s_.step.w[i];
    const DataView moving = at_velocity(m_, d_, velocity, arena_);
    late_[late_count_++] = {moving.cvel,
                            sweep_motion(m_, moving, nullptr, {0, 0, 0}, arena_).acceleration,
                            -sign * m_.opt.timestep / (2 * scale)};
  }
}

// Add weight S . (I A + V x* I V) for the unit inertia of a component                       (PAR-1)
void InertialColumns::add_body(const Case& motion, int body, int component, double* column) const {
  double unit[10] = {};
  unit[packed_place(component)] = 1;
  const Inertia inertia{unit};
  const Motion v = in_body(m_, d_, body, load_motion(motion.velocity + 6 * body));
  const Motion a = in_body(m_, d_, body, motion.acceleration[body]);
  const Force force = inertia * a + cross(v, inertia * v);
  for (int i = last_dof(m_, body); i >= 0; i = m_.dof_parentid[i]) {
    column[i] += motion.weight * dot(in_body(m_, d_, body, load_motion(d_.cdof + 6 * i)), force);
  }
}

void InertialColumns::add(const Parameter& p, const Column& column) {
  if (p.kind == Parameter::kArmature) {
    column.early[p.id] -= s_.at[p.id];
    column.late[p.id] -= s_.lag[p.id];
    return;
  }
  if (p.kind == Parameter::kGravity) {
    // the world accelerates by -gravity: -dg is the weight of everything below each dof     (PAR-4)
    if (m_.opt.disableflags & disable::kGravity) return;
    const Vec3 up{p.component == 0 ? 1.0 : 0, p.component == 1 ? 1.0 : 0,
                  p.component == 2 ? 1.0 : 0};
    for (int i = 0; i < m_.nv; i++) {
      const Inertia below{d_.crb + 10 * m_.dof_bodyid[i]};
      column.early[i] += dot(load_motion(d_.cdof + 6 * i), below * Motion{{0, 0, 0}, up});
    }
    return;
  }
  prepare();
  add_body(early_, p.id, p.component, column.early);
  add_body(late_[0], p.id, p.component, column.late);
  const int dof = last_dof(m_, p.id);
  const bool bias = s_.step.block && dof >= 0 && s_.step.block[m_.dof_treeid[dof]];
  for (int k = 1; bias && k < late_count_; k++) add_body(late_[k], p.id, p.component, column.late);
}

}  // namespace mujacobian
