#include "adjoint/parameter.h"

#include <cstring>

#include "adjoint/column.h"
#include "adjoint/frame.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// Adds the columns of single parameters, or of the inertia of a body.
class SingleColumns {
 public:
  SingleColumns(const ModelView& m, const DataView& d, const StepDifferential& s,
                const ParameterList& params, Arena& arena)
      : params_(params), x_(m, d, s, arena), frames_(m, d, params, arena) {
    frames_.differentiate(s);
  }

  // Adds the columns of parameter k.
  void add(int k, const ParameterColumns& to) {
    const Parameter& p = params_.item[k];
    if (family_of(p) == Family::kFrame) return frames_.add(k, to);
    const auto add = functions_of(family_of(p)).add;
    if (!add) return;
    const Column column = start(to);
    add(x_, p, column);
    finish(column);
  }

  // Adds the columns of all components of a body's inertia at once.
  void add_inertia(int body, const double* components, const ParameterColumns& to) {
    const Column column = start(to);
    add_inertial(x_.m, x_.s, x_.passes(), body, components, column);
    finish(column);
  }

 private:
  Column start(const ParameterColumns& to) {
    const int nv = x_.m.nv;
    if (!has_metric(x_.m)) return {to.early, to.late};
    if (!corrects_rows(x_.m, x_.d, x_.s.forward)) return {to.early, to.early};
    return {to.early, to.early, x_.arena.zeros<double>(nv), x_.arena.zeros<double>(nv)};
  }
  void finish(const Column& column) {
    if (!column.inertia) return;
    add_effective_diagonal(x_.m, x_.d, x_.s.forward.blocks, column.inertia, column.added,
                           column.early, x_.arena);
  }

  const ParameterList& params_;
  ColumnContext x_;
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

const Passes& ColumnContext::passes() {
  if (!passes_.early.motion.acceleration) passes_ = make_passes(m, d, s, arena);
  return passes_;
}

const ActuatorForces& ColumnContext::actuators() {
  if (actuators_.count < 0) actuators_ = actuator_forces(m, d, arena);
  return actuators_;
}

void require_single_dof(const ModelView& m, const Parameter& p, const char* reason) {
  if (m.jnt_type[p.id] == joint::kHinge || m.jnt_type[p.id] == joint::kSlide) return;
  throw Unsupported(element_name(m, object::kJoint, p.id), reason);
}

void require_parameters(const ModelView& m, const ParameterList& params) {
  if (params.count == 0) return;
  if (m.opt.noslip_iterations > 0) {
    throw Unsupported("option noslip_iterations",
                      "derivatives with respect to parameters are not supported with it");
  }
  for (int k = 0; k < params.count; k++) {
    const Parameter& p = params.item[k];
    if (const auto require = functions_of(family_of(p)).require) require(m, p);
  }
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
