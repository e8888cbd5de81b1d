// Many steps: simulating them, and pulling the derivative of a scalar back through them.
#pragma once

#include <vector>

#include "adjoint/product.h"
#include "step/batch.h"

namespace mujacobian {

// Append the poses of all mocap bodies: of each its position, then rotations in its frame.
void append_mocap(const ModelView& m, std::vector<Parameter>& params);

// What is applied in every step, rows of T; null: as in the first state.
struct Inputs {
  const double* ctrl;    // (T, nu)
  const double* force;   // (T, nv), qfrc_applied
  const double* wrench;  // (T, 6 nbody), xfrc_applied
  const double* mocap;   // (T, 7 nmocap), positions of all mocap bodies, then their quaternions
};

// What is kept of a simulation; null: nothing.
struct Record {
  double* start;  // (ceil(T / every), nstate) mjSTATE_INTEGRATION before every `every`-th step
  int every;
  double* states;   // (T + 1, nq + nv + na)
  double* sensors;  // (T, ns)
};

// Simulate T steps from `state` (mjSTATE_INTEGRATION). Returns the number of steps before MuJoCo
// found the state bad and reset it, T if it never did.
int simulate(const void* model, void* data, const double* state, int T, const Inputs& inputs,
             const Record& record);

// Derivatives of a scalar with respect to what a simulation computes, rows of T; null: zero.
struct TrajectoryCotangent {
  const double* states;   // (T, nx), of the state before each step
  const double* sensors;  // (T, ns)
};

// The same with respect to the inputs; null: not wanted.
struct TrajectoryPullback {
  double* ctrl;    // (T, nu)
  double* force;   // (T, nv)
  double* wrench;  // (T, 6 nbody)
  double* mocap;   // (T, 6 nmocap), of each mocap body its position, then rotations in its frame
  double* params;  // one per parameter, to which is added
  double* norms;   // (T), of the cotangent of the state before each step
};

// `start` (T, nstate) as `simulate` records it for every step. `cotangent` (nx) is that of the
// state after the last step on entry, and of the state before the first one on return. Returns the
// step that failed, if any.
std::optional<BatchFailure> pull_back(const void* model, void* data, const double* start, int T,
                                      const TrajectoryCotangent& given, const ParameterList& params,
                                      const TrajectoryPullback& out, double* cotangent);

// Changes of a trajectory with its first state and with parameters, `count` of them; null: none of
// them, or not wanted. Steps are rows, of `count` rows each.
struct Sensitivity {
  int count;
  const double* params;   // (count, parameters), directions
  double* states;         // (T + 1, count, nx); the first row is given
  double* sensors;        // (T, count, ns)
  const double* weights;  // (ns), zero for sensors that are not asked for; null: all are
};

// Both at once: `simulate`, whose number of steps is `taken`, and `push_forward`, at the price of
// one mj_step for both.
std::optional<BatchFailure> simulate_and_push(const void* model, void* data, const double* state,
                                              int T, const Inputs& inputs, const Record& record,
                                              const ParameterList& params, const Sensitivity& along,
                                              int& taken);

// `start` as above. Returns the step that failed, if any.
std::optional<BatchFailure> push_forward(const void* model, void* data, const double* start, int T,
                                         const ParameterList& params, const Sensitivity& along);

}  // namespace mujacobian
