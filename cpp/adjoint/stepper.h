// Batches of rollouts of one model. The mjData, the scratch memory and the threads last from call
// to call, because to make them takes as long as many steps.
//
// The functions serve calls in which everything is as it should be. They return false if an input
// is not finite, a rollout diverges, a step has no derivative, or a derivative overflows or
// explodes. The caller then runs the same work through Python, which reports it in full.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "adjoint/trajectory.h"
#include "layout/engine.h"

namespace mujacobian {

// The inputs of n rollouts of T steps. Null: as in the first state.
struct RolloutInputs {
  int n, T;
  const double* first;   // (nstate), mjSTATE_INTEGRATION of all rollouts; null: mj_resetData
  const double* state;   // (n, nq + nv + na), replaces (qpos, qvel, act) of it
  const double* ctrl;    // (n, T, nu)
  const double* force;   // (n, T, nv), qfrc_applied
  const double* wrench;  // (n, T, 6 nbody), xfrc_applied
  const double* mocap;   // (n, T, nmocap, 7), poses of mocap bodies
};

// The results of a simulation.
struct RolloutResults {
  double* states;   // (n, T + 1, nq + nv + na)
  double* sensors;  // (n, T, ns)
  double* kept;     // (n, T, nstate), mjSTATE_INTEGRATION before every step
};

// Derivatives of a scalar with respect to the results; null: zero.
struct RolloutCotangents {
  const double* states;   // (n, T + 1, nq + nv + na)
  const double* sensors;  // (n, T, ns)
};

// Derivatives of the scalar with respect to the inputs, in their shapes; null: not computed.
struct RolloutGradients {
  double *state, *ctrl, *force, *wrench, *mocap;
};

// Differentiated steps of a batch, from `simulate` for `pull_back`.
struct Tape {
  std::deque<KeptTrajectory> rollouts;
};

class Stepper {
 public:
  explicit Stepper(const void* model) : model_(model) {}
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  const void* model() const { return model_; }

  // Simulates, and fills the tape if it is not null, with the columns of qfrc_applied if `forces`
  // is true.
  bool simulate(const RolloutInputs& in, const RolloutResults& out, Tape* tape, bool forces,
                int threads);

  // Reverse mode. `states` and `kept` are results of `simulate`; `tape` may be null.
  bool pull_back(const RolloutInputs& in, const double* states, const double* kept,
                 const RolloutCotangents& given, const RolloutGradients& out, const Tape* tape,
                 int threads);

  // Forward mode: writes the changes of states and sensors (null: not computed) for changes of the
  // first states and of the controls (null: zero).
  bool push(const RolloutInputs& in, const double* states, const double* kept, const double* moved,
            const double* moved_ctrl, double* d_states, double* d_sensors, int threads);

  // A tape for a batch; null if keeping its steps would take too much memory or is not possible.
  std::unique_ptr<Tape> take_tape(int n, int T);
  void give_back(std::unique_ptr<Tape> tape);

 private:
  // Memory of one thread.
  struct Workspace {
    OwnedData data;
    Arena arena;
    std::vector<double> given, norms, mocap;
  };
  using Work = std::function<bool(int k, Workspace& space)>;

  // Calls work(k, workspace) for k = 0 .. n-1 in threads, until it returns false or throws. Returns
  // whether all calls returned true. `cost` is the time of a step of this work.
  bool each(int n, int T, int threads, std::atomic<double>& cost, const Work& work);
  std::unique_ptr<Workspace> take();
  void give_back(std::unique_ptr<Workspace> space);

  const void* model_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
  std::vector<std::unique_ptr<Tape>> tapes_;
  std::string sizes_;  // of the model, for which the workspaces were made
  std::atomic<double> simulation_cost_{0}, gradient_cost_{0}, push_cost_{0};
};

}  // namespace mujacobian
