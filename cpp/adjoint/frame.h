// Parameters that are frames (Family::kFrame): of bodies, joints and mocap bodies.
#pragma once

#include "adjoint/parameter.h"
#include "adjoint/virtual_dof.h"

namespace mujacobian {

// Returns whether MuJoCo reports zero for an acceleration sensor, without gravity. Versions before
// 4.0 do this for objects that cannot move.
bool is_at_rest(const ModelView& m, int sensor);

class Frames {
 public:
  // Finds the frames among the parameters, and their virtual dofs.
  Frames(const ModelView& m, const DataView& d, const ParameterList& params, Arena& arena);

  // Computes the columns of all frames. Throws Unsupported if a term that depends on a frame is not
  // supported.
  void differentiate(const StepDifferential& s);

  // Adds the columns of parameter k, which is a frame.
  void add(int k, const ParameterColumns& to) const;

  // Writes the derivatives of the length and the moments of a tendon or actuator with respect to
  // all parameters, (parameters, 1 + nv). Rows of parameters that are no frames are zero.
  void write_tendon(int tendon, double* out);
  void write_actuator(int actuator, double* out);

  // Adds the derivatives of the sensors with respect to frames to `rows`, (ns, parameters).
  // `driven` (parameters, nv) is d(acc) of every parameter. Call `differentiate` at the
  // acceleration before.
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
  int* first_;  // first virtual dof of each parameter; the last entry is the number of all
  VirtualDof* virtual_dofs_;
  Extension extension_{};
  ForwardDynamics forward_{};                                   // of the extended model
  double *early_ = nullptr, *late_ = nullptr, *act_ = nullptr;  // columns of each virtual dof
};

}  // namespace mujacobian
