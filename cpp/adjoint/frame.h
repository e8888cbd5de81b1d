// Frames among the parameters: those of bodies, joints and mocap bodies.
#pragma once

#include "adjoint/parameter.h"
#include "adjoint/virtual_dof.h"

namespace mujacobian {

inline bool is_frame(int kind) {
  return kind >= Parameter::kBodyPosition && kind <= Parameter::kMocapRotation;
}

// MuJoCo reports no acceleration of the sensor's object, not even that of gravity: until 4.0 so it
// is for what cannot move.
bool is_at_rest(const ModelView& m, int sensor);

class Frames {
 public:
  // Those among the parameters, and what carries them.
  Frames(const ModelView& m, const DataView& d, const ParameterList& params, Arena& arena);

  // Find the columns of all of them. Throws Unsupported for what else sees a frame.
  void differentiate(const StepDifferential& s);

  // Add the columns of parameter k, which is a frame.
  void add(int k, const ParameterColumns& to) const;

  // Write how the length and the moments of a tendon or actuator change with every parameter that
  // is a frame, (parameters, 1 + nv).
  void write_tendon(int tendon, double* out);
  void write_actuator(int actuator, double* out);

  // Add to `rows`, (ns, parameters), what the sensors see of the frames; `driven` (parameters, nv)
  // is d(acc) of every parameter. After `differentiate` at the acceleration.
  void sense(const double* driven, double* rows);

 private:
  int count() const { return first_[params_.count]; }
  void carry();
  void write_path(const Path& path, double scale, double* out) const;
  void require_still_fluid() const;
  void start_forward(const StepDifferential& s);
  void subtract_free_bias(const double* w, TreeBlock* const* blocks, const DofRows& residual);
  void write(const DofRows& from, double* to) const;
  void write_activations();

  const ModelView& m_;
  const DataView& d_;
  const ParameterList& params_;
  Arena& arena_;
  int* first_;  // of each parameter, its first virtual dof; the number of all behind the last
  VirtualDof* virtual_dofs_;
  Extension extension_{};
  ForwardDynamics forward_{};                                   // of the extended model
  double *early_ = nullptr, *late_ = nullptr, *act_ = nullptr;  // columns of each virtual dof
};

}  // namespace mujacobian
