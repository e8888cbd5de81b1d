#include "adjoint/parameter.h"

#include <cstring>

#include "adjoint/column.h"
#include "adjoint/frame.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// Throws for geoms on which something other than contacts depends: fluids, tendons that wrap, and
// adhesion.
void require_geom(const ModelView& m, const Parameter& p) {
  const int type = m.geom_type[p.id];
  const bool sized = type == geom::kSphere || type == geom::kCapsule || type == geom::kCylinder ||
                     type == geom::kBox;
  if (p.kind == Parameter::kGeomSize && !sized) {
    throw Unsupported(
        element_name(m, object::kGeom, p.id),
        "only sizes of spheres, capsules, cylinders and boxes are supported as parameters");
  }
  if (m.opt.density > 0 || m.opt.viscosity > 0) {
    throw Unsupported(element_name(m, object::kGeom, p.id),
                      "its shape is not supported as a parameter in a fluid");
  }
  for (int t = 0; t < m.ntendon; t++) {
    if (!tendon_wraps(m, t)) continue;
    throw Unsupported(element_name(m, object::kTendon, t),
                      "it wraps, so that poses and sizes of geoms are not supported as parameters");
  }
  for (int a = 0; a < m.nactuator; a++) {
    if (m.actuator_trntype[a] != transmission::kBody) continue;
    throw Unsupported(
        element_name(m, object::kActuator, a),
        "it acts on contacts, so that poses and sizes of geoms are not supported as parameters");
  }
}

// Throws for the inertia of a body that fluids or gravity compensation read, too.
void require_inertia(const ModelView& m, const Parameter& p) {
  if (m.opt.density > 0 || m.opt.viscosity > 0) {
    throw Unsupported(element_name(m, object::kBody, p.id),
                      "its inertia is not supported as a parameter in a fluid");
  }
  if (m.body_gravcomp[p.id] != 0) {
    throw Unsupported(element_name(m, object::kBody, p.id),
                      "its inertia is not supported as a parameter with gravity compensation");
  }
}

void require_single_dof(const ModelView& m, const Parameter& p, const char* reason) {
  if (m.jnt_type[p.id] == joint::kHinge || m.jnt_type[p.id] == joint::kSlide) return;
  throw Unsupported(element_name(m, object::kJoint, p.id), reason);
}

void require_limit(const ModelView& m, const Parameter& p) {
  if (p.kind == Parameter::kLimitSolref && has_metric(m)) {
    throw Unsupported(
        element_name(m, object::kJoint, p.id),
        "the solref of its limit is not supported as a parameter with the discrete integrator");
  }
  require_single_dof(m, p, "limits of a joint with several dofs are not supported as parameters");
}

// Throws if the parameter is not supported in this model.
void require_parameter(const ModelView& m, const Parameter& p) {
  const bool exact = m.opt.enableflags & enable::kDiagExact;
  switch (family_of(p)) {
    case Family::kInertia:
      require_inertia(m, p);
      [[fallthrough]];
    case Family::kArmature:
      if (!exact) return;
      throw Unsupported("option diagexact", "inertial parameters are not supported with it");
    case Family::kGravity:
      if (!m.flg_gravcomp) return;
      throw Unsupported("option gravity",
                        "it is not supported as a parameter with gravity compensation");
    case Family::kSpring:
      if (p.kind == Parameter::kStiffness) return;
      return require_single_dof(
          m, p, "the rest position of a joint with several dofs is not supported as a parameter");
    case Family::kLimit:
      return require_limit(m, p);
    case Family::kActuator:
      if (const char* reason = actuator_parameter_refusal(m, p)) {
        throw Unsupported(element_name(m, object::kActuator, p.id), reason);
      }
      return;
    case Family::kEquality:
      if (!exact) return;
      throw Unsupported(element_name(m, kind_of(p).element, p.id),
                        "an equality reads its value at qpos0, which is not supported as a "
                        "parameter with diagexact");
    case Family::kContact:
    case Family::kGeom:
      if (has_metric(m)) {
        throw Unsupported("integrator discrete",
                          "parameters of contacts and geoms are not supported with it");
      }
      if (family_of(p) == Family::kGeom) require_geom(m, p);
      if (!exact) return;
      throw Unsupported("option diagexact",
                        "parameters of contacts and geoms are not supported with it");
    case Family::kDamper:
    case Family::kTendon:
    case Family::kFrictionLoss:
    case Family::kWeight:
    case Family::kFrame:
    case Family::kInertialFrame:
      return;
  }
}

// Adds the columns of single parameters, or of the inertia of a body.
class SingleColumns {
 public:
  SingleColumns(const ModelView& m, const DataView& d, const StepDifferential& s,
                const ParameterList& params, Arena& arena)
      : m_(m),
        d_(d),
        s_(s),
        params_(params),
        arena_(arena),
        force_(m, d, s, arena),
        frames_(m, d, params, arena) {
    frames_.differentiate(s);
  }

  // Adds the columns of parameter k.
  void add(int k, const ParameterColumns& to) {
    const Parameter& p = params_.item[k];
    const Column column = start(to);
    switch (family_of(p)) {
      case Family::kInertia: {
        double unit[10] = {};
        unit[p.component] = 1;
        add_inertial(m_, s_, passes(), p.id, unit, column);
        break;
      }
      case Family::kArmature:
        add_armature(s_, p.id, column);
        break;
      case Family::kGravity:
        add_gravity(m_, d_, p.component, column);
        break;
      case Family::kDamper:
        force_.add_damping(p.id, column);
        break;
      case Family::kSpring:
        force_.add_spring(p, column);
        break;
      case Family::kTendon:
        force_.add_tendon(p, column);
        break;
      case Family::kActuator:
        force_.add_actuator(p, column);
        break;
      case Family::kFrictionLoss:
        add_friction_loss(d_, s_, p, column);
        break;
      case Family::kContact:
        add_contact_parameter(m_, d_, s_, p, column);
        break;
      case Family::kLimit:
        add_limit(m_, d_, s_, p, column);
        break;
      case Family::kWeight:
      case Family::kEquality:
        add_constant(m_, d_, s_, p, column, arena_);
        break;
      case Family::kFrame:
        frames_.add(k, to);
        break;
      case Family::kInertialFrame:
        return;  // no effect on a step
      case Family::kGeom:
        add_geom(m_, d_, s_, p, column, arena_);
        break;
    }
    finish(column);
  }

  // Adds the columns of all components of a body's inertia at once.
  void add_inertia(int body, const double* components, const ParameterColumns& to) {
    const Column column = start(to);
    add_inertial(m_, s_, passes(), body, components, column);
    finish(column);
  }

 private:
  Column start(const ParameterColumns& to) {
    if (!has_metric(m_)) return {to.early, to.late};
    if (!corrects_rows(m_, d_, s_.forward)) return {to.early, to.early};
    return {to.early, to.early, arena_.zeros<double>(m_.nv), arena_.zeros<double>(m_.nv)};
  }
  void finish(const Column& column) {
    if (!column.inertia) return;
    add_effective_diagonal(m_, d_, s_.forward.blocks, column.inertia, column.added, column.early,
                           arena_);
  }

  const Passes& passes() {
    if (!passes_.early.acceleration) passes_ = make_passes(m_, d_, s_, arena_);
    return passes_;
  }

  const ModelView& m_;
  const DataView& d_;
  const StepDifferential& s_;
  const ParameterList& params_;
  Arena& arena_;
  Passes passes_{};
  ForceColumns force_;
  Frames frames_;
};

ParameterColumns take_columns(const ModelView& m, int count, Arena& arena) {
  if (count == 0) return {0, nullptr, nullptr, nullptr};
  const std::size_t size = static_cast<std::size_t>(count) * m.nv;
  return {count, arena.zeros<double>(size), arena.zeros<double>(size),
          arena.zeros<double>(static_cast<std::size_t>(count) * m.na)};
}

// Returns the end of the components of one body's inertia that begin at p; p if p is something
// else.
int end_of_inertia(const ParameterList& params, int p) {
  int end = p;
  while (end < params.count && family_of(params.item[end]) == Family::kInertia &&
         params.item[end].id == params.item[p].id) {
    end++;
  }
  return end;
}

bool is_zero(const double* x, int n) {
  for (int k = 0; k < n; k++) {
    if (x[k] != 0) return false;
  }
  return true;
}

void add_scaled(const ModelView& m, const ParameterColumns& to, double scale,
                const ParameterColumns& from) {
  for (int i = 0; i < m.nv; i++) {
    to.early[i] += scale * from.early[i];
    to.late[i] += scale * from.late[i];
  }
  for (int i = 0; i < m.na; i++) to.act[i] += scale * from.act[i];
}

}  // namespace

void require_parameters(const ModelView& m, const ParameterList& params) {
  if (params.count == 0) return;
  if (m.opt.noslip_iterations > 0) {
    throw Unsupported("option noslip_iterations",
                      "derivatives with respect to parameters are not supported with it");
  }
  for (int k = 0; k < params.count; k++) require_parameter(m, params.item[k]);
}

ParameterColumns parameter_columns(const ModelView& m, const DataView& d, const StepDifferential& s,
                                   const ParameterList& params, Arena& arena) {
  const ParameterColumns columns = take_columns(m, params.count, arena);
  SingleColumns single(m, d, s, params, arena);
  for (int k = 0; k < params.count; k++) single.add(k, columns.at(m, k));
  return columns;
}

ParameterColumns directed_columns(const ModelView& m, const DataView& d, const StepDifferential& s,
                                  const ParameterList& params, const double* const* directions,
                                  int count, Arena& arena) {
  const ParameterColumns columns = take_columns(m, params.count ? count : 0, arena);
  SingleColumns single(m, d, s, params, arena);
  const ParameterColumns one = take_columns(m, 1, arena);
  for (int p = 0; p < params.count;) {
    // columns are linear in the inertia of a body: sum its components, then add one column
    const int end = end_of_inertia(params, p);
    for (int k = 0; end > p && columns.count && k < count; k++) {
      if (!directions[k] || is_zero(directions[k] + p, end - p)) continue;
      double inertia[10] = {};
      for (int q = p; q < end; q++) inertia[params.item[q].component] += directions[k][q];
      single.add_inertia(params.item[p].id, inertia, columns.at(m, k));
    }
    if (end > p) {
      p = end;
      continue;
    }
    std::memset(one.early, 0, m.nv * sizeof(double));
    std::memset(one.late, 0, m.nv * sizeof(double));
    std::memset(one.act, 0, m.na * sizeof(double));
    single.add(p, one);
    for (int k = 0; k < count; k++) {
      if (directions[k] && directions[k][p] != 0) {
        add_scaled(m, columns.at(m, k), directions[k][p], one);
      }
    }
    p++;
  }
  return columns;
}

}  // namespace mujacobian
