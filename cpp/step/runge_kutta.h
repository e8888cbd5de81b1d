// The derivative of the Runge-Kutta integrator: four evaluations of the forward dynamics, combined
// by the chain rule on the manifold of positions. docs/derivations/integrators.md.
#pragma once

#include <functional>

#include "dynamics/forward.h"
#include "layout/engine.h"
#include "step/transition.h"

namespace mujacobian {

// Extra columns, for parameters that change the acceleration of the stages.
struct StageColumns {
  int count;
  double* out;  // (nx, count): derivatives of the next state
  // returns -dg of a stage, (count, nv)
  std::function<const double*(const DataView& at, const ForwardDynamics& forward)> at;
};

inline constexpr int kStages = 4;
inline constexpr double kNextStage[kStages - 1] = {0.5, 0.5, 1};  // stage i+1 from stage i
inline constexpr double kStageWeight[kStages] = {1 / 6., 1 / 3., 1 / 3., 1 / 6.};

// A vector over the dofs or activations, and its derivative with respect to all inputs of the step.
// The derivative has a row per entry and the columns (q, v, act, ctrl, applied force, extra).
struct Varying {
  int rows;
  double* value;
  double* change;
};

// All quantities of a step, for its second derivative.
struct RungeKuttaRecord {
  struct Stage {
    OwnedData data;  // null in the first stage
    DataView at;
    ForwardDynamics forward;          // its residual is the derivative of the acceleration
    Varying position, velocity, act;  // the values of positions are not recorded
    Varying turn;                     // from the initial position; not in the first stage
  };
  Stage stage[kStages];
  int last;            // the stage whose lengths and speeds the next activations use
  Varying turn, mean;  // change of the position in the step, and mean rates of activations
  int width;           // number of columns
};

// The function `transition` for the integrator RK4. `extra` may be null.
void runge_kutta(const ModelView& m, const DataView& d, const Outputs& out,
                 const StageColumns* extra, Arena& arena);

// Runs a step, with the columns of the applied force if `forces` is set, and records it. `extra`
// may be null.
void record_runge_kutta(const ModelView& m, const DataView& d, bool forces,
                        const StageColumns* extra, RungeKuttaRecord& record, Arena& arena);

// Returns whether the rate of a rotation since the initial position is Jr^-1 v, as since
// MuJoCo 4.0, or the velocity v itself.
bool rates_are_turned();

// Returns whether the dof is a rotation of a ball or free joint.
bool is_rotation(const ModelView& m, int dof);

}  // namespace mujacobian
