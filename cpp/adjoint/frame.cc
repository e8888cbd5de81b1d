// Frames of bodies and joints as parameters: a change of a frame carries everything below it along,
// as a dof would that never moves by itself.
#include "adjoint/column.h"
#include "constraint/shift.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "smooth/composite.h"
#include "smooth/tendon.h"
#include "smooth/unsupported.h"
#include "spatial/quaternion.h"

namespace mujacobian {
namespace {

// A motion, about the reference point of the body's tree, that carries the body and all below it;
// the dofs of the body itself are carried too if it comes before them.
struct FrameMotion {
  int body;
  bool before;
  Motion axis;
};

// A rotation about a point of space.
Motion turn_about(Vec3 axis, Vec3 point, Vec3 reference) {
  return {axis, cross(axis, reference - point)};
}

// The motions that a unit change of the parameter is made of; returns their number. (PAR-12)
int frame_motions(const ModelView& m, const DataView& d, const Parameter& p, FrameMotion out[2]) {
  const bool of_joint = p.kind == Parameter::kJointPosition || p.kind == Parameter::kJointAxis;
  const int body = of_joint ? m.jnt_bodyid[p.id] : p.id, parent = m.body_parentid[body];
  const Vec3 reference = load3(d.subtree_com + 3 * m.body_rootid[body]);
  const Mat3 outer = load9(d.xmat + 9 * parent), after = load9(d.xmat + 9 * body);
  const Mat3 before = outer * rotation(normalized(load_quaternion(m.body_quat + 4 * body)));
  const Vec3 origin = load3(d.xpos + 3 * parent) + outer * load3(m.body_pos + 3 * body);
  const Vec3 e = unit3(p.component);
  switch (p.kind) {
    case Parameter::kBodyPosition:
      out[0] = {body, true, {{0, 0, 0}, outer * e}};
      return 1;
    case Parameter::kBodyRotation:
      out[0] = {body, true, turn_about(before * e, origin, reference)};
      return 1;
    case Parameter::kJointPosition:
      // the anchor moves, and the body is as far from it as before
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
      out[1] = {body, false,
                turn_about(-(after * turn), slides ? load3(d.xpos + 3 * body) : anchor, reference)};
      return 2;
    }
  }
}

// -dg of inverse dynamics, as for a dof: the motion before it gives S' and S''         (ID-9,
// ID-10)
void add_inertial_frame(const ModelView& m, const Pass& pass, const Composite* composite,
                        const FrameMotion& f, const bool* below, double* column) {
  const int from = f.before ? m.body_parentid[f.body] : f.body;
  const Motion velocity = load_motion(pass.d.cvel + 6 * from);
  const Motion dot_axis = cross(velocity, f.axis);
  const Motion second = cross(pass.acceleration[from], f.axis) + cross(velocity, dot_axis);
  const Inertia inertia{pass.d.crb + 10 * f.body};
  const Force force = inertia * second + apply_rate(composite[f.body], dot_axis.ang) +
                      cross(f.axis, composite[f.body].force);
  for (int i = last_dof(m, from); i >= 0; i = m.dof_parentid[i]) {
    column[i] += pass.weight * dot(load_motion(pass.d.cdof + 6 * i), force);
  }
  for (int i = 0; i < m.nv; i++) {
    const int body = m.dof_bodyid[i];
    if (!below[body] || (body == f.body && !f.before)) continue;
    const Motion axis = load_motion(pass.d.cdof + 6 * i);
    const Inertia moved{pass.d.crb + 10 * body};
    column[i] += pass.weight * (dot(second, moved * axis) +
                                dot(dot_axis.ang, apply_rate_transposed(composite[body], axis)));
  }
}

// The body and everything that hangs on it.
const bool* bodies_below(const ModelView& m, int body, Arena& arena) {
  bool* below = arena.zeros<bool>(m.nbody);
  below[body] = true;
  for (int b = body + 1; b < m.nbody; b++) below[b] = below[m.body_parentid[b]];
  return below;
}

// What the shift does to the rows of a contact; `carries_axis(dof)` says that it carries a dof's
// axis along. (PAR-13)
template <class F>
void add_shifted(const ModelView& m, const DataView& d, const Block& b, const BlockMotion& motion,
                 const ContactShift& shift, F carries_axis, double* column) {
  const ContactChange change = shift_contact(m, d, b, motion, shift);
  const ContactDofs& c = *b.chain;
  const Force turned = moved_wrench(change.wrench, shift.variation);
  const Force beyond = turned - cross(shift.axis, change.wrench);
  for (int k = 0; k < b.n; k++) {
    double sum = 0;
    for (int r = 0; r < b.count; r++) {
      double df = b.force[r] * change.dlogD;
      for (int t = 0; t < b.count; t++) df -= b.hessian[r * b.count + t] * change.rho[t];
      sum += b.J[r * b.stride + k] * df;
    }
    const bool with = c.moves[k] & shift.carries && carries_axis(c.dofs[k]);
    column[c.dofs[k]] += sum + c.sign(k) * dot(c.axis[k], with ? beyond : turned);
  }
}

void add_contacts(const ModelView& m, const DataView& d, const StepDifferential& s,
                  const FrameMotion& f, const bool* below, double* column, Arena& arena) {
  const Blocks& blocks = s.forward.blocks;
  const BlockMotion motion = block_motion(m, d, blocks, s.forward.solved, arena);
  const int from = f.before ? m.body_parentid[f.body] : f.body;
  const Motion dot_axis = cross(load_motion(d.cvel + 6 * from), f.axis);
  const Motion rate = cross(motion.moved[from], f.axis);
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (!b.geometry || !b.active || b.n == 0) continue;
    const ContactDofs& c = *b.chain;
    ContactShift shift{};
    Motion moved[2] = {};
    for (int side = 0; side < 2; side++) {
      if (!below[c.body[side]]) continue;
      shift.carries |= 1 << side;
      shift.axis = moved[side] = about(f.axis, c.offset[side]);
      shift.rate = about(rate, c.offset[side]);
      shift.dot_axis = about(dot_axis, c.offset[side]);
    }
    if (!shift.carries) continue;
    shift.variation = vary(*b.geometry, moved);
    auto carries_axis = [&](int dof) {
      const int body = m.dof_bodyid[dof];
      return below[body] && (f.before || body != f.body);
    };
    add_shifted(m, d, b, motion, shift, carries_axis, column);
  }
}

bool any_below(const ModelView& m, const bool* below, const double* values, int width) {
  for (int k = 0; k < width * m.nbody; k++) {
    if (below[k / width] && values[k] != 0) return true;
  }
  return false;
}

// What else would see the frame.
void require_frame(const ModelView& m, const DataView& d, const StepDifferential& s, int body,
                   const bool* below) {
  const std::string name = element_name(m, object::kBody, body);
  if (m.opt.density > 0 || m.opt.viscosity > 0) {
    throw Unsupported(name, "its frame as a parameter in a fluid");
  }
  if (any_below(m, below, m.body_gravcomp, 1)) {
    throw Unsupported(name, "its frame as a parameter with gravity compensation");
  }
  if (any_below(m, below, d.xfrc_applied, 6)) {
    throw Unsupported(name, "its frame as a parameter with forces applied to bodies");
  }
  for (int t = 0; t < m.ntendon; t++) {
    if (tendon_is_fixed(m, t)) continue;
    throw Unsupported(element_name(m, object::kTendon, t), "frames of bodies as parameters");
  }
  for (int a = 0; a < m.nactuator; a++) {
    const int trn = m.actuator_trntype[a];
    if (trn == transmission::kJoint || trn == transmission::kTendon) continue;
    throw Unsupported(element_name(m, object::kActuator, a), "frames of bodies as parameters");
  }
  for (int k = 0; k < s.forward.blocks.count; k++) {
    const Block& b = s.forward.blocks.block[k];
    if (b.type != constraint::kEquality || m.eq_type[b.id] > equality::kWeld) continue;
    throw Unsupported(element_name(m, object::kEquality, b.id), "frames of bodies as parameters");
  }
}

}  // namespace

void add_frame(const ModelView& m, const DataView& d, const StepDifferential& s,
               const Passes& passes, const Parameter& p, const Column& column, Arena& arena) {
  FrameMotion motions[2];
  const int count = frame_motions(m, d, p, motions);
  for (int k = 0; k < count; k++) {
    const FrameMotion& f = motions[k];
    const bool* below = bodies_below(m, f.body, arena);
    require_frame(m, d, s, f.body, below);
    auto add = [&](const Pass& pass, double* to) {
      const Composite* composite = composites(m, pass.d, pass.acceleration, arena);
      add_inertial_frame(m, pass, composite, f, below, to);
    };
    add(passes.early, column.early);
    add_contacts(m, d, s, f, below, column.early, arena);
    for (int n = 0; n < passes.count(in_block(m, s, f.body)); n++) add(passes.late[n], column.late);
  }
}

void add_geom(const ModelView& m, const DataView& d, const StepDifferential& s, const Parameter& p,
              const Column& column, Arena& arena) {
  const Blocks& blocks = s.forward.blocks;
  const BlockMotion motion = block_motion(m, d, blocks, s.forward.solved, arena);
  const Vec3 e = unit3(p.component);
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (!b.geometry || !b.active) continue;
    for (int side = 0; side < 2; side++) {
      if (b.contact.geom.v[side] != p.id) continue;
      ContactShift shift{};
      Motion moved[2] = {};
      if (p.kind == Parameter::kGeomRadius) {
        // the surface comes nearer by one, the contact half of that
        const Vec3 outward = side ? -b.geometry->between() : b.geometry->between();
        shift.variation = {-1, 0.5 * outward, {0, 0, 0}};
      } else if (p.kind == Parameter::kGeomPosition) {
        moved[side].lin = load9(d.xmat + 9 * m.geom_bodyid[p.id]) * e;
        shift.variation = vary(*b.geometry, moved);
      } else {
        moved[side] = turn_about(load9(d.geom_xmat + 9 * p.id) * e, load3(d.geom_xpos + 3 * p.id),
                                 b.geometry->position);
        shift.variation = vary(*b.geometry, moved);
      }
      add_shifted(m, d, b, motion, shift, [](int) { return false; }, column.early);
    }
  }
}

}  // namespace mujacobian
