// Simulations of many steps, and their derivatives in reverse and forward mode.
#pragma once

#include <deque>
#include <vector>

#include "adjoint/product.h"
#include "layout/notice.h"
#include "step/batch.h"

namespace mujacobian {

// Appends the poses of all mocap bodies: the position of each, then rotations in its frame.
void append_mocap(const ModelView& m, std::vector<Parameter>& params);

// The inputs of every step; null: as in the first state.
struct Inputs {
  const double* ctrl;    // (T, nu)
  const double* force;   // (T, nv), qfrc_applied
  const double* wrench;  // (T, 6 nbody), xfrc_applied
  const double* mocap;   // (T, 7 nmocap), positions of all mocap bodies, then their quaternions
  const double* state = nullptr;  // (nq + nv + na), replaces that of the first state
};

// The results of a simulation; null: not recorded.
struct Record {
  double* start;  // (ceil(T / every), nstate) mjSTATE_INTEGRATION before every `every`-th step
  int every;
  double* states;   // (T + 1, nq + nv + na)
  double* sensors;  // (T, ns)
};

// Simulates T steps from `state` (mjSTATE_INTEGRATION; null: as after mj_resetData). Returns the
// number of steps before MuJoCo detected NaN or diverging values and reset the state, otherwise T.
int simulate(const void* model, void* data, const double* state, int T, const Inputs& inputs,
             const Record& record);

// At most so many steps are kept at a time. Each takes about 100 kB.
inline constexpr int kMostKeptSteps = 512;

// Steps that have been differentiated, while a simulation ran or before second derivatives, and the
// notices of a simulation about them.
struct KeptTrajectory {
  KeptTrajectory() = default;
  KeptTrajectory(const KeptTrajectory&) = delete;
  KeptTrajectory& operator=(const KeptTrajectory&) = delete;

  // Forgets the steps, and keeps the memory for others.
  void clear() {
    for (KeptStep& step : steps) step.clear();
  }

  std::deque<KeptStep> steps;
  Notices found;
};

// The same, and also differentiates every step, with the columns of qfrc_applied if `forces` is
// true. A step without an exact derivative is not kept, so that pull_back throws its error.
int simulate(const void* model, void* data, const double* state, int T, const Inputs& inputs,
             const Record& record, bool forces, KeptTrajectory& kept);

// Derivatives of a scalar with respect to the results of a simulation; null: zero.
struct TrajectoryCotangent {
  const double* states;   // (T, nx), of the state before each step
  const double* sensors;  // (T, ns)
};

// Derivatives of the scalar with respect to the inputs; null: not computed.
struct TrajectoryPullback {
  double* ctrl;    // (T, nu)
  double* force;   // (T, nv)
  double* wrench;  // (T, 6 nbody)
  double* mocap;   // (T, 6 nmocap): position of each mocap body, then rotations in its frame
  double* params;  // one per parameter; the derivative is added to it
  double* norms;   // (T): norms of the cotangents of the states before each step
};

// Reverse mode through T steps. `start` (T, nstate) is what `simulate` records with every = 1.
// `cotangent` (nx) belongs to the state after the last step on entry, and to the state before the
// first step on return. Steps in `kept`, which may be null, are not evaluated again, except for
// sensors and parameters. Returns the step that failed, if any.
std::optional<BatchFailure> pull_back(const void* model, void* data, const double* start, int T,
                                      const TrajectoryCotangent& given, const ParameterList& params,
                                      const TrajectoryPullback& out, double* cotangent,
                                      const KeptTrajectory* kept, Arena& arena);

// `count` changes of a trajectory with its first state and with parameters. Null: zero, or not
// computed.
struct Sensitivity {
  int count;
  const double* params;   // (count, parameters), directions
  double* states;         // (T + 1, count, nx); the caller sets the first row
  double* sensors;        // (T, count, ns)
  const double* weights;  // (ns), zero for sensors that are not needed; null: all are needed
};

// Runs `simulate` and `push_forward` together, with one mj_step per step for both. `taken` is the
// number of steps. Returns the step that failed, if any.
std::optional<BatchFailure> simulate_and_push(const void* model, void* data, const double* state,
                                              int T, const Inputs& inputs, const Record& record,
                                              const ParameterList& params, const Sensitivity& along,
                                              int& taken);

// Forward mode through T steps. `start` is as for pull_back. Returns the step that failed, if any.
std::optional<BatchFailure> push_forward(const void* model, void* data, const double* start, int T,
                                         const ParameterList& params, const Sensitivity& along);

// Parameters that change along a direction, one number each; null: none of them changes.
struct ParameterDirection {
  ParameterList list;
  const double* along;
};

// The steps that `push_direction` keeps for `pull_back_twice` and for other directions.
struct Keeping {
  KeptTrajectory* steps = nullptr;  // receives them, unless it has them; null: none are kept
  int most = 0;                     // at most so many, the last ones
  const double* sensors = nullptr;  // (T, ns), cotangents in `pull_back_twice`; null: zero
};

// Writes the change of every state, `states` (T + 1, nx), for a change of the first state, which
// the caller sets, of the controls, `ctrl` (T, nu), and of parameters. `start` is as for pull_back.
// Returns the step that failed, if any.
std::optional<BatchFailure> push_direction(const void* model, void* data, const double* start,
                                           int T, const double* ctrl,
                                           const ParameterDirection& params, double* states,
                                           double* sensors, const Keeping& keeping, Arena& arena);

// The derivative of `pull_back` along a direction.
struct TrajectoryDirection {
  const double* states;   // (T, nx), change of the state before each step: from push_direction
  const double* ctrl;     // (T, nu), change of the controls
  const double* changes;  // (T, nx), change of the cotangent of each state alone
  ParameterDirection params;
};

// The derivatives with respect to parameters, and their changes; they are added.
struct ParameterProducts {
  double *first, *second;
};

// Reverse mode through T steps, twice. `cotangent` (nx) and its change `change` (nx) belong to the
// state after the last step on entry, and to the state before the first step on return. Writes the
// change of the derivative with respect to the controls, `ctrl` (T, nu), and the norms of the
// changes, `norms` (T). With parameters, also writes `params`. Steps in `kept`, which may be null,
// are not evaluated again, except for some sensors. Returns the step that failed, if any. (HVP-2)
std::optional<BatchFailure> pull_back_twice(const void* model, void* data, const double* start,
                                            int T, const TrajectoryCotangent& given,
                                            const TrajectoryDirection& along, double* ctrl,
                                            double* norms, const ParameterProducts& params,
                                            double* cotangent, double* change,
                                            const KeptTrajectory* kept);

// Pulls the cotangent y of the forces on the dofs back to xfrc_applied, (nbody, 6). A wrench acts
// as J^T (force, torque) at the center of mass of its body. Its cotangent is the motion of that
// point under joint velocities y. (ADJ-5)
void pull_wrenches(const ModelView& m, const DataView& d, const double* y, double* out,
                   Arena& arena);

}  // namespace mujacobian
