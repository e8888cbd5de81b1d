// One step of many worlds, and reverse mode through it. All worlds have the same model, except for
// the numbers of some of its fields.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "adjoint/product.h"
#include "layout/engine.h"
#include "step/batch.h"

namespace mujacobian {

// A field of the model that differs between worlds.
struct WorldField {
  const double* values;  // (worlds, size)
  int size;
  std::vector<double*> target;  // the field in the model of each thread
};

// The inputs of a step: mjSTATE_INTEGRATION of each world and, if the caller gives them, contacts.
struct WorldInputs {
  int n;
  const double* start;        // (n, nstate)
  const double* contacts;     // (total, kContactFields); null: MuJoCo finds its own
  const std::int32_t* geoms;  // (total, 3): dimension and two geoms of each contact
  const std::int32_t* first;  // (n + 1): first contact of each world
};

// dist, pos (3), frame (9), includemargin, friction (5), solref (2), solreffriction (2), solimp (5)
inline constexpr int kContactFields = 28;

// Cotangents per world, (n, ...); they are zero on entry, except for `state`.
struct WorldCotangents {
  double* state;  // (nx), of the next state on entry, of the state on return
  double *ctrl, *force;
  double* wrench;     // (nbody, 6); null: not computed
  double* center;     // (nbody, 3), of the points at which wrenches act; null: not computed
  double* params;     // (parameters)
  double* contacts;   // (total, kContactNumbers)
  double* actuation;  // (nv), qfrc_actuator of the step, which is no cotangent; null: not wanted
  // Sum over all active contacts of pair_hash, from which the caller learns if they are those of
  // another simulator.
  std::uint64_t* pairs;
};

// The outcomes of a step: MuJoCo may detect NaN or diverging values, or have no room for all
// contacts or constraints.
inline constexpr std::int32_t kRegular = 0, kDiverged = 1, kFull = 2;

// Returns a hash of a pair of geoms, whose order does not matter. Python computes the same.
std::uint64_t pair_hash(int geom0, int geom1);

// The models of all threads and their memory.
class Worlds {
 public:
  // The caller keeps the models and the fields alive.
  Worlds(std::vector<const void*> models, std::vector<WorldField> fields)
      : models_(std::move(models)), fields_(std::move(fields)), spaces_(models_.size()) {}

  const void* model() const { return models_[0]; }

  // Worlds whose cotangent is zero are skipped. Returns the failure with the lowest index, if any.
  std::optional<BatchFailure> pull_back(const WorldInputs& in, const ParameterList& params,
                                        const WorldCotangents& out);

  // Takes a step of n worlds from `start` to `next`, both mjSTATE_INTEGRATION of each world, and
  // sets the outcome of each world.
  std::optional<BatchFailure> step(int n, const double* start, double* next, std::int32_t* outcome);

 private:
  // Memory of one thread.
  struct Workspace {
    OwnedData data;
    Arena arena;
    std::vector<ContactView> contacts;
    std::vector<double> force;
  };

  // Calls work(thread, world) for n worlds, in all threads.
  std::optional<BatchFailure> for_each(int n, const std::function<void(int, int)>& work);

  // Sets the numbers of a world in the model of a thread, and its state. Returns the mjData.
  void* load(int thread, int world, const double* start);

  void pull_world(int thread, int world, const WorldInputs& in, const ParameterList& params,
                  const WorldCotangents& out);

  std::vector<const void*> models_;
  std::vector<WorldField> fields_;
  std::vector<Workspace> spaces_;
};

}  // namespace mujacobian
