#include "bindings/worlds.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "adjoint/given_contact.h"
#include "adjoint/worlds.h"
#include "bindings/adjoint.h"
#include "bindings/errors.h"

namespace mujacobian {
namespace {

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int32_t, nb::c_contig, nb::device::cpu>;
using Outcomes = nb::ndarray<std::int32_t, nb::c_contig, nb::device::cpu>;
using Hashes = nb::ndarray<std::uint64_t, nb::c_contig, nb::device::cpu>;

// The address of the first number of an array, after a check of its size; null for None.
template <class A>
auto* data(const A& array, const char* name, std::size_t size) {
  if (array.size() != size) {
    raise_argument(std::string(name) + " must have " + std::to_string(size) + " numbers, got " +
                   std::to_string(array.size()));
  }
  return array.data();
}
template <class A>
auto data(const std::optional<A>& array, const char* name, std::size_t size)
    -> decltype(data(*array, name, size)) {
  return array ? data(*array, name, size) : nullptr;
}

// The worlds with the Python objects that own their memory.
struct WorldsObject {
  std::vector<nb::object> models;
  std::vector<Numbers> values;
  std::vector<std::vector<Doubles>> targets;
  std::unique_ptr<Worlds> core;

  // values: of each field, (worlds, size); targets: each field in the model of each thread.
  WorldsObject(std::vector<nb::object> all, std::vector<Numbers> given,
               std::vector<std::vector<Doubles>> fields)
      : models(std::move(all)), values(std::move(given)), targets(std::move(fields)) {
    std::vector<const void*> addresses;
    for (const nb::object& model : models) addresses.push_back(model_address(model));
    std::vector<WorldField> list;
    for (std::size_t k = 0; k < values.size(); k++) {
      WorldField field{values[k].data(), static_cast<int>(targets[k][0].size()), {}};
      for (const Doubles& target : targets[k]) field.target.push_back(target.data());
      list.push_back(std::move(field));
    }
    core = std::make_unique<Worlds>(std::move(addresses), std::move(list));
  }

  void pull_back(const Numbers& start, const Parameters& parameters, const Doubles& state,
                 const Doubles& ctrl, const Doubles& force, const std::optional<Doubles>& wrench,
                 const std::optional<Doubles>& center, const Doubles& params,
                 const std::optional<Doubles>& actuation, const std::optional<Hashes>& pairs,
                 const std::optional<Numbers>& contacts, const std::optional<Integers>& geoms,
                 const std::optional<Integers>& first, const std::optional<Doubles>& d_contacts,
                 int number) {
    const ModelView m = view_model(core->model());
    const std::size_t n = start.shape(0), total = contacts ? contacts->shape(0) : 0;
    const std::size_t nstate = engine().mj_stateSize(core->model(), engine().integration_spec);
    const std::vector<Parameter> list = read(m, parameters);
    const WorldInputs in{static_cast<int>(n), data(start, "start", n * nstate),
                         data(contacts, "contacts", total * kContactFields),
                         data(geoms, "geoms", total * 3), data(first, "first", n + 1)};
    const WorldCotangents out{data(state, "state", n * state_size(m)),
                              data(ctrl, "ctrl", n * m.nu),
                              data(force, "force", n * m.nv),
                              data(wrench, "wrench", n * m.nbody * 6),
                              data(center, "center", n * m.nbody * 3),
                              data(params, "params", n * list.size()),
                              data(d_contacts, "d_contacts", total * kContactNumbers),
                              data(actuation, "actuation", n * m.nv),
                              data(pairs, "pairs", n)};
    std::optional<BatchFailure> failure;
    run([&] { failure = core->pull_back(in, view(list), out); });
    raise_failure(failure, n, number);
    report_notices(models[0]);
  }

  void step(const Numbers& start, const Doubles& next, const Outcomes& outcome, int number) {
    const std::size_t n = start.shape(0);
    const std::size_t size = n * engine().mj_stateSize(core->model(), engine().integration_spec);
    const double* from = data(start, "start", size);
    double* to = data(next, "next", size);
    std::int32_t* outcomes = data(outcome, "outcome", n);
    std::optional<BatchFailure> failure;
    run([&] { failure = core->step(static_cast<int>(n), from, to, outcomes); });
    raise_failure(failure, n, number);
  }

 private:
  static void raise_failure(const std::optional<BatchFailure>& failure, std::size_t n, int number) {
    if (!failure) return;
    std::string where = "step " + std::to_string(number) + ": ";
    if (n > 1) where = "world " + std::to_string(failure->index) + ", " + where;
    raise(failure->error, where);
  }
};

}  // namespace

void bind_worlds(nb::module_& module) {
  using nb::arg;
  module.def("pair_hash", &pair_hash, arg("geom0"), arg("geom1"));
  module.attr("CONTACT_FIELDS") = kContactFields;
  module.attr("CONTACT_NUMBERS") = kContactNumbers;
  module.attr("STEP_DIVERGED") = kDiverged;
  module.attr("STEP_FULL") = kFull;
  nb::class_<WorldsObject>(module, "Worlds")
      .def(nb::init<std::vector<nb::object>, std::vector<Numbers>,
                    std::vector<std::vector<Doubles>>>(),
           arg("models"), arg("values"), arg("targets"))
      .def("pull_back", &WorldsObject::pull_back, arg("start"), arg("parameters"), arg("state"),
           arg("ctrl"), arg("force"), arg("wrench").none(), arg("center").none(), arg("params"),
           arg("actuation").none(), arg("pairs").none(), arg("contacts").none(),
           arg("geoms").none(), arg("first").none(), arg("d_contacts").none(), arg("number"))
      .def("step", &WorldsObject::step, arg("start"), arg("next"), arg("outcome"), arg("number"));
}

}  // namespace mujacobian
