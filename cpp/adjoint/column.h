// Columns of single parameters, by where they enter: inertia, forces, constraint rows.
#pragma once

#include "adjoint/parameter.h"

namespace mujacobian {

// The two columns of one parameter, over all dofs, to which is added.
struct Column {
  double *early, *late;
};

// Inertia of bodies and dofs, and gravity.
class InertialColumns {
 public:
  InertialColumns(const ModelView& m, const DataView& d, const StepDifferential& s, Arena& arena)
      : m_(m), d_(d), s_(s), arena_(arena) {}
  void add(const Parameter& p, const Column& column);

 private:
  // A motion of all bodies that inertia resists, and how much it weighs.
  struct Case {
    const double* velocity;  // cvel
    const Motion* acceleration;
    double weight;
  };
  void prepare();
  void add_body(const Case& motion, int body, int component, double* column) const;

  const ModelView& m_;
  const DataView& d_;
  const StepDifferential& s_;
  Arena& arena_;
  bool prepared_ = false;
  Case early_{}, late_[3]{};
  int late_count_ = 0;
};

// Springs, dampers and actuators.
class ForceColumns {
 public:
  ForceColumns(const ModelView& m, const DataView& d, const StepDifferential& s, Arena& arena)
      : m_(m), d_(d), s_(s), arena_(arena) {}
  void add(const Parameter& p, const Column& column);

 private:
  void add_damping(int dof, const Column& column) const;
  void add_stiffness(int joint, const Column& column) const;
  void add_tendon(const Parameter& p, const Column& column) const;
  void add_actuator(const Parameter& p, const Column& column);
  void add_path(const Path& path, double force, double damping, const unsigned char* frozen,
                const Column& column) const;

  const ModelView& m_;
  const DataView& d_;
  const StepDifferential& s_;
  Arena& arena_;
  ActuatorForces actuators_{nullptr, -1};
};

// Why an actuator's gain or bias is not a parameter, null if it is.
const char* actuator_parameter_refusal(const ModelView& m, const Parameter& p);

// Dry friction, and what contacts take from their geoms.
void add_row_parameter(const ModelView& m, const DataView& d, const StepDifferential& s,
                       const Parameter& p, const Column& column);

}  // namespace mujacobian
