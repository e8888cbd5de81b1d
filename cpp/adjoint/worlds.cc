#include "adjoint/worlds.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "adjoint/given_contact.h"
#include "adjoint/trajectory.h"
#include "layout/enums.h"
#include "layout/interrupt.h"
#include "layout/sleep.h"
#include "step/pool.h"
#include "step/support.h"

namespace mujacobian {
namespace {

// Sets the contacts of one world. Rows of the frame are the normal and two tangents.
void read_contacts(const WorldInputs& in, int world, std::vector<ContactView>& to) {
  to.clear();
  for (int k = in.first[world]; k < in.first[world + 1]; k++) {
    const double* from = in.contacts + static_cast<std::ptrdiff_t>(k) * kContactFields;
    auto read = [&](double* numbers, int count) {
      std::memcpy(numbers, from, count * sizeof(double));
      from += count;
    };
    ContactView c{};
    read(&c.dist, 1), read(c.pos.v, 3), read(c.frame.v, 9), read(&c.includemargin, 1);
    read(c.friction.v, 5), read(c.solref.v, 2), read(c.solreffriction.v, 2), read(c.solimp.v, 5);
    c.dim = in.geoms[3 * k];
    for (int side = 0; side < 2; side++) {
      c.geom.v[side] = in.geoms[3 * k + 1 + side];
      c.flex.v[side] = -1;
    }
    c.efc_address = -1;
    to.push_back(c);
  }
}

// Throws if MuJoCo dropped contacts or constraints since `before`.
void require_room(const DataView& before, const DataView& after) {
  for (int k : {warning::kContactFull, warning::kConstraintFull}) {
    if (after.warning.v[k].number == before.warning.v[k].number) continue;
    throw std::runtime_error(
        "MuJoCo C has no room for all contacts or constraints, so it dropped some. Newton has no"
        " option for the memory of MuJoCo C: let fewer shapes collide");
  }
}

bool any_full(const DataView& d) {
  return d.warning.v[warning::kContactFull].number || d.warning.v[warning::kConstraintFull].number;
}

std::uint64_t hash_pairs(const DataView& d) {
  std::uint64_t sum = 0;
  for (int k = 0; k < d.ncon; k++) {
    const ContactView c = view_contact(d, k);
    if (c.dist < c.includemargin) sum += pair_hash(c.geom.v[0], c.geom.v[1]);
  }
  return sum;
}

// Pulls cotangents of the torques of wrenches back to the centers of mass at which the forces act,
// in the frames of the bodies.                                                           (NWT-18)
void pull_centers(const ModelView& m, const DataView& d, const double* wrench, double* center) {
  for (int b = 1; b < m.nbody; b++) {
    const Vec3 force = load3(d.xfrc_applied + 6 * b), torque = load3(wrench + 6 * b + 3);
    store3(center + 3 * b, transpose_mul(load9(d.xmat + 9 * b), cross(force, torque)));
  }
}

template <class T>
T* row(T* array, std::ptrdiff_t k, std::ptrdiff_t size) {
  return array ? array + k * size : nullptr;
}

}  // namespace

// Multiplication by a large odd number spreads the bits (Fibonacci hashing).
std::uint64_t pair_hash(int geom0, int geom1) {
  const auto [low, high] = std::minmax(geom0, geom1);
  std::uint64_t x = (static_cast<std::uint64_t>(low) << 32) + static_cast<std::uint64_t>(high) + 1;
  x *= 0x9E3779B97F4A7C15u;
  return x ^ (x >> 29);
}

void* Worlds::load(int thread, int world, const double* start) {
  const void* model = models_[thread];
  for (const WorldField& field : fields_) {
    std::memcpy(field.target[thread],
                field.values + static_cast<std::ptrdiff_t>(world) * field.size,
                field.size * sizeof(double));
  }
  OwnedData& data = spaces_[thread].data;
  if (!data) data = make_data(model);
  const int nstate = engine().mj_stateSize(model, engine().integration_spec);
  engine().mj_setState(model, data.get(), row(start, world, nstate), engine().integration_spec);
  return data.get();
}

void Worlds::pull_world(int thread, int world, const WorldInputs& in, const ParameterList& params,
                        const WorldCotangents& out) {
  const void* model = models_[thread];
  const int nx = state_size(view_model(model));
  double* cotangent = out.state + static_cast<std::ptrdiff_t>(world) * nx;
  if (std::all_of(cotangent, cotangent + nx, [](double x) { return x == 0; })) return;

  void* data = load(thread, world, in.start);
  const ModelView m = without_sleep(view_model(model));  // after its options have been set
  Workspace& space = spaces_[thread];
  const DataView before = view_data(data);
  require_state(m, before);
  if (in.contacts) {
    read_contacts(in, world, space.contacts);
    forward_with_contacts(model, data, space.contacts);
  } else {
    forward(model, data);
  }
  DataView d = view_data(data);
  d.given_contacts = in.contacts != nullptr;
  require_room(before, d);
  require_awake(m, d);
  if (out.pairs) out.pairs[world] = hash_pairs(d);
  if (out.actuation) {
    std::memcpy(row(out.actuation, world, m.nv), d.qfrc_actuator, m.nv * sizeof(double));
  }

  // its cotangents
  std::vector<double> next(cotangent, cotangent + nx);
  space.arena.reset();
  double* force = row(out.force, world, m.nv);
  vjp(m, d, {next.data(), nullptr}, params,
      {cotangent, row(out.ctrl, world, m.nu), force, row(out.params, world, params.count),
       in.contacts ? row(out.contacts, in.first[world], kContactNumbers) : nullptr},
      space.arena);
  if (!out.wrench) return;
  double* wrench = row(out.wrench, world, 6 * m.nbody);
  pull_wrenches(m, d, force, wrench, space.arena);
  if (out.center) pull_centers(m, d, wrench, row(out.center, world, 3 * m.nbody));
}

std::optional<BatchFailure> Worlds::for_each(int n, const std::function<void(int, int)>& work) {
  std::atomic<int> next{0}, last{n};
  std::mutex mutex;
  std::optional<BatchFailure> failure;
  auto some = [&](int thread) {
    for (int world = next++; world < last; world = next++) {
      try {
        if (thread == 0) poll_interrupt();
        work(thread, world);
      } catch (const std::exception&) {
        const std::lock_guard lock(mutex);
        // the memory of MuJoCo may be in any state after an error
        spaces_[thread].data.reset();
        if (failure && failure->index < world) continue;
        failure = BatchFailure{world, std::current_exception()};
        last = world;
      }
    }
  };
  run_shared(some, std::min(n, static_cast<int>(models_.size())));
  return failure;
}

std::optional<BatchFailure> Worlds::pull_back(const WorldInputs& in, const ParameterList& params,
                                              const WorldCotangents& out) {
  require_model(without_sleep(view_model(model())));
  return for_each(in.n, [&](int thread, int world) { pull_world(thread, world, in, params, out); });
}

std::optional<BatchFailure> Worlds::step(int n, const double* start, double* next,
                                         std::int32_t* outcome) {
  const int spec = engine().integration_spec, nstate = engine().mj_stateSize(model(), spec);
  return for_each(n, [&](int thread, int world) {
    const void* model = models_[thread];
    void* data = load(thread, world, start);
    DataView after;
    const bool regular = mujacobian::step(model, data, after);
    engine().mj_getState(model, data, row(next, world, nstate), spec);
    outcome[world] = !regular ? kDiverged : any_full(after) ? kFull : kRegular;
    if (outcome[world] != kRegular) reset(model, data);  // clear the warnings
  });
}

}  // namespace mujacobian
