#include "bindings/control.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "bindings/errors.h"
#include "control/backward.h"
#include "control/planner.h"
#include "linear/lanes.h"

namespace mujacobian {
namespace {

// Returns (first knot that is not convex or -1, expected linear change, expected quadratic change).
std::tuple<int, double, double> backward_into(nb::handle A, nb::handle B, nb::handle gradient,
                                              nb::handle hessian, nb::handle controls,
                                              nb::handle lower, nb::handle upper,
                                              const std::string& regularization, double mu,
                                              nb::handle scale, nb::handle steps, nb::handle gains,
                                              nb::handle values, nb::handle gaps) {
  const Py_ssize_t T = size_of(controls), nu = size_of(lower);
  const Py_ssize_t nx = size_of(nb::object(A[0])), nz = nx + nu, stride = round_to_lanes(nz);
  Array a(A, "A", {T, nx, nx}, false), b(B, "B", {T, nx, nu}, false),
      g(gradient, "gradient", {T, nz}, false), h(hessian, "hessian", {T, nz, stride}, false),
      u(controls, "controls", {T, nu}, false), lo(lower, "lower", {nu}, false),
      hi(upper, "upper", {nu}, false), k(steps, "steps", {T - 1, nu}, true),
      K(gains, "gains", {T - 1, nu, nx}, true), v(values, "values", {T, nx}, true),
      f(gaps, "gaps", {T, nx}, false), factors(scale, "scale", {nu}, false);
  const Regularization kind = regularization == "control" ? Regularization::kControl
                              : regularization == "state" ? Regularization::kState
                                                          : Regularization::kNone;
  int knot = -1;
  BackwardPass pass{k.data(), K.data(), v.data(), {0, 0}};
  run([&] {
    thread_local Arena arena;
    arena.reset();
    knot = pass_backward(
        {static_cast<int>(T), static_cast<int>(nx), static_cast<int>(nu), a.data(), b.data(),
         g.data(), h.data(), u.data(), lo.data(), hi.data(), kind, mu, factors.data(), f.data()},
        pass, arena);
  });
  return {knot, pass.expected[0], pass.expected[1]};
}

// The arrays of a policy, which stay alive during the call.
struct PolicyArrays {
  Py_ssize_t n;
  Array times, states, controls, gains;
  bool is_linear;

  PolicyArrays(const ModelView& m, nb::handle arrays)
      : n(size_of(arrays[0])),
        times(arrays[0], "times", {n}, false),
        states(arrays[1], "states", {n, m.nq + m.nv + m.na}, false),
        controls(arrays[2], "controls", {n, m.nu}, false),
        gains(arrays[3], "gains", {n, m.nu, state_size(m)}, false),
        is_linear(nb::cast<bool>(arrays[4])) {
    if (!n) raise_argument("a policy needs at least one knot");
  }

  Policy view() const {
    return {static_cast<int>(n), times.data(), states.data(),
            controls.data(),     gains.data(), is_linear};
  }
};

// The arrays of a task: (start, offsets, weights, lower, upper).
struct TaskArrays {
  Py_ssize_t T;
  Array start, offsets, weights, lower, upper;

  TaskArrays(const ModelView& m, const CostRows& cost, nb::handle arrays)
      : T(size_of(arrays[1])),
        start(arrays[0], "start", {engine().mj_stateSize(m.address, engine().integration_spec)},
              false),
        offsets(arrays[1], "offsets", {T, cost.count()}, false),
        weights(arrays[2], "weights", {T, static_cast<Py_ssize_t>(cost.terms.size())}, false),
        lower(arrays[3], "lower", {m.nu}, false),
        upper(arrays[4], "upper", {m.nu}, false) {}

  Task view(const void* model, const CostRows& cost) const {
    return {model,          &cost,          static_cast<int>(T),         start.data(),
            offsets.data(), weights.data(), {lower.data(), upper.data()}};
  }
};

// (rows, controls, sensors, qacc, norms), each with `n` knots in front.
struct KnotArrays {
  Array rows, controls, sensors, qacc, norms;

  KnotArrays(const ModelView& m, const CostRows& cost, Py_ssize_t n, nb::handle arrays)
      : rows(arrays[0], "rows", {n, engine().mj_stateSize(m.address, engine().integration_spec)},
             true),
        controls(arrays[1], "controls", {n, m.nu}, true),
        sensors(arrays[2], "sensors", {n, m.nsensordata}, true),
        qacc(arrays[3], "qacc", {n, m.nv}, true),
        norms(arrays[4], "norms", {n, static_cast<Py_ssize_t>(cost.terms.size())}, true) {}

  Knots view() const {
    return {rows.data(), controls.data(), sensors.data(), qacc.data(), norms.data()};
  }
};

// (A, B, C, D, gradient, hessian)
struct ExpansionArrays {
  Array A, B, C, D, gradient, hessian;

  ExpansionArrays(const CostRows& c, Py_ssize_t T, nb::handle arrays)
      : A(arrays[0], "A", {T, c.nx, c.nx}, true),
        B(arrays[1], "B", {T, c.nx, c.nu}, true),
        C(arrays[2], "C", {T, c.ns, c.nx}, true),
        D(arrays[3], "D", {T, c.ns, c.nu}, true),
        gradient(arrays[4], "gradient", {T, c.nz()}, true),
        hessian(arrays[5], "hessian", {T, c.nz(), round_to_lanes(c.nz())}, true) {}

  Expansion view() const {
    return {{A.data(), B.data(), C.data(), D.data(), nullptr, nullptr},
            gradient.data(),
            hessian.data()};
  }
};

// A planner and its model, which it keeps alive.
struct BoundPlanner {
  nb::object object;
  const void* model;
  ModelView m;
  std::unique_ptr<Planner> planner;

  BoundPlanner(nb::object model_object, const CostRows& cost, const std::string& backend,
               double eps, bool warm_start, int threads, bool may_refuse)
      : object(model_object), model(model_address(model_object)), m(view_model(model)) {
    run([&] {
      planner = std::make_unique<Planner>(model, cost, backend_kind(backend), eps, warm_start,
                                          threads, may_refuse);
    });
  }

  // The knot or candidate at which the last call failed; -1: none.
  int failed() const { return planner->failure() ? planner->failure()->index : -1; }

  void raise_failure(const std::string& what) const {
    const auto& failure = planner->failure();
    if (!failure) return;
    const bool is_place = failure->index >= 0;
    raise(failure->error, is_place ? what + std::to_string(failure->index) + ": " : "");
  }
};

// Returns (number of knots, whether it diverged, cost, first knot without a derivative or -1).
std::tuple<int, bool, double, int> follow_into(BoundPlanner& self, nb::handle task,
                                               nb::handle policy, double feedback, int shift,
                                               nb::handle knots, nb::handle expansion, bool keep) {
  const CostRows& cost = self.planner->cost();
  TaskArrays t(self.m, cost, task);
  PolicyArrays p(self.m, policy);
  KnotArrays k(self.m, cost, t.T, knots);
  ExpansionArrays e(cost, t.T, expansion);
  Rolled rolled{};
  run([&] {
    self.planner->begin(t.T, shift);
    rolled = self.planner->follow(t.view(self.model, cost), p.view(), feedback, k.view(), e.view(),
                                  keep);
  });
  if (self.failed() < 0) self.raise_failure("");
  report_notices(self.object);
  return {rolled.taken, rolled.is_bad, rolled.cost, self.failed()};
}

// Simulates each knot from its row, and writes the gaps. Returns the cost.
double shoot_into(BoundPlanner& self, nb::handle task, nb::handle rows, nb::handle knots,
                  nb::handle gaps) {
  const CostRows& cost = self.planner->cost();
  TaskArrays t(self.m, cost, task);
  KnotArrays k(self.m, cost, t.T, knots);
  Array x(rows, "rows", {t.T, engine().mj_stateSize(self.model, engine().integration_spec)}, false),
      f(gaps, "gaps", {t.T, cost.nx}, true);
  double total = 0;
  run([&] { total = self.planner->shoot(t.view(self.model, cost), x.data(), k.view(), f.data()); });
  self.raise_failure("knot ");
  return total;
}

// Returns the first knot without a derivative or -1.
int differentiate_into(BoundPlanner& self, nb::handle task, nb::handle knots, nb::handle expansion,
                       bool keep) {
  const CostRows& cost = self.planner->cost();
  TaskArrays t(self.m, cost, task);
  KnotArrays k(self.m, cost, t.T, knots);
  ExpansionArrays e(cost, t.T, expansion);
  run([&] {
    self.planner->begin(t.T, 0);
    self.planner->differentiate(t.view(self.model, cost), k.view(), e.view(), keep);
  });
  if (self.failed() < 0) self.raise_failure("");
  report_notices(self.object);
  return self.failed();
}

// Writes `hessian` (T, nz, padded) plus the curvature of steps, sensors and rows to `curved`.
// Returns the first knot without a second derivative or -1.
int add_curvature_into(BoundPlanner& self, nb::handle task, nb::handle knots, nb::handle values,
                       nb::handle hessian, nb::handle C, nb::handle D, nb::handle curved) {
  const CostRows& cost = self.planner->cost();
  TaskArrays t(self.m, cost, task);
  KnotArrays k(self.m, cost, t.T, knots);
  Array v(values, "values", {t.T, cost.nx}, false),
      h(hessian, "hessian", {t.T, cost.nz(), round_to_lanes(cost.nz())}, false),
      sx(C, "C", {t.T, cost.ns, cost.nx}, false), su(D, "D", {t.T, cost.ns, cost.nu}, false),
      c(curved, "curved", {t.T, cost.nz(), round_to_lanes(cost.nz())}, true);
  run([&] {
    self.planner->add_curvature(t.view(self.model, cost), k.view(),
                                {v.data(), h.data(), sx.data(), su.data()}, c.data());
  });
  if (self.failed() < 0) self.raise_failure("");
  return self.failed();
}

// Returns (number of knots, whether it diverged, cost) of every candidate.
std::vector<std::tuple<int, bool, double>> search_into(BoundPlanner& self, nb::handle task,
                                                       nb::handle sizes, nb::handle accept,
                                                       double most, nb::handle states,
                                                       nb::handle controls, nb::handle steps,
                                                       nb::handle gains, nb::handle knots,
                                                       nb::handle gaps) {
  const CostRows& cost = self.planner->cost();
  const ModelView& m = self.m;
  TaskArrays t(m, cost, task);
  const Py_ssize_t n = size_of(sizes), T = t.T;
  Array a(sizes, "sizes", {n}, false), c(accept, "accept", {n}, false),
      x(states, "states", {T, m.nq + m.nv + m.na}, false),
      u(controls, "controls", {T, m.nu}, false), s(steps, "steps", {T - 1, m.nu}, false),
      g(gains, "gains", {T - 1, m.nu, cost.nx}, false), f(gaps, "gaps", {T, cost.nx}, false);
  KnotArrays k(m, cost, n * T, knots);
  std::vector<Rolled> results(n);
  run([&] {
    self.planner->search(t.view(self.model, cost),
                         {static_cast<int>(n), a.data(), c.data(), most, x.data(), u.data(),
                          s.data(), g.data(), f.data()},
                         k.view(), results.data());
  });
  self.raise_failure("candidate ");
  std::vector<std::tuple<int, bool, double>> out;
  for (const Rolled& r : results) out.emplace_back(r.taken, r.is_bad, r.cost);
  return out;
}

// Steps the caller's data under a policy, and returns the number of steps.
int follow_policy(nb::handle model, nb::handle data, nb::handle policy, nb::handle lower,
                  nb::handle upper, nb::handle times, nb::handle states, nb::handle controls,
                  nb::handle sensors) {
  const Pair pair(model, data);
  const ModelView m = view_model(pair.model);
  const Py_ssize_t n = size_of(times);
  PolicyArrays p(m, policy);
  Array lo(lower, "lower", {m.nu}, false), hi(upper, "upper", {m.nu}, false),
      t(times, "times", {n}, true), x(states, "states", {n, m.nq + m.nv + m.na}, true),
      u(controls, "controls", {n, m.nu}, true), s(sensors, "sensors", {n, m.nsensordata}, true);
  int taken = 0;
  run([&] {
    taken = follow(pair.model, pair.data, p.view(), {lo.data(), hi.data()}, static_cast<int>(n),
                   t.data(), x.data(), u.data(), s.data());
  });
  return taken;
}

// Writes the controls of a policy at times (n) and states (n, nq + nv + na).
void policy_into(nb::handle model, nb::handle policy, nb::handle lower, nb::handle upper,
                 nb::handle times, nb::handle states, double feedback, nb::handle controls) {
  const ModelView m = view_model(model_address(model));
  const Py_ssize_t n = size_of(times), width = m.nq + m.nv + m.na;
  PolicyArrays p(m, policy);
  Array lo(lower, "lower", {m.nu}, false), hi(upper, "upper", {m.nu}, false),
      t(times, "times", {n}, false), x(states, "states", {n, width}, false),
      u(controls, "controls", {n, m.nu}, true);
  run([&] {
    Arena arena;
    for (Py_ssize_t k = 0; k < n; k++) {
      evaluate_policy(m, p.view(), {lo.data(), hi.data()}, t.data()[k], x.data() + k * width,
                      feedback, u.data() + k * m.nu, arena);
    }
  });
}

}  // namespace

void bind_control(nb::module_& module) {
  using nb::arg;
  nb::class_<BoundPlanner>(module, "Planner")
      .def(nb::init<nb::object, const CostRows&, const std::string&, double, bool, int, bool>(),
           arg("model").none(), arg("cost"), arg("backend"), arg("eps"), arg("warm_start"),
           arg("threads"), arg("may_refuse"))
      .def("raise_failure", &BoundPlanner::raise_failure, arg("what"))
      .def_prop_rw(
          "may_refuse", [](const BoundPlanner& self) { return self.planner->may_refuse(); },
          [](BoundPlanner& self, bool value) { self.planner->set_may_refuse(value); })
      .def("refused",
           [](const BoundPlanner& self) {
             std::vector<int> knots = self.planner->refused();
             std::sort(knots.begin(), knots.end());
             return knots;
           })
      .def("broken",
           [](const BoundPlanner& self) {
             std::vector<int> knots = self.planner->broken();
             std::sort(knots.begin(), knots.end());
             return knots;
           })
      .def("left_out",
           [](const BoundPlanner& self) {
             std::vector<LeftOut> found = self.planner->left_out();
             std::sort(found.begin(), found.end(), [](const LeftOut& a, const LeftOut& b) {
               return std::pair(a.knot, a.sensor) < std::pair(b.knot, b.sensor);
             });
             std::vector<std::tuple<int, std::string, std::string>> out;
             for (const LeftOut& one : found) out.emplace_back(one.knot, one.element, one.reason);
             return out;
           })
      .def("sensors",
           [](const BoundPlanner& self) {
             const std::vector<unsigned char>& read = self.planner->sensors();
             return std::vector<bool>(read.begin(), read.end());
           })
      .def("derivative_seconds",
           [](BoundPlanner& self) { return self.planner->derivative_seconds(); })
      .def("follow_into", &follow_into, arg("task"), arg("policy"), arg("feedback"), arg("shift"),
           arg("knots"), arg("expansion"), arg("keep"))
      .def("differentiate_into", &differentiate_into, arg("task"), arg("knots"), arg("expansion"),
           arg("keep"))
      .def("add_curvature_into", &add_curvature_into, arg("task"), arg("knots"), arg("values"),
           arg("hessian"), arg("C"), arg("D"), arg("curved"))
      .def("search_into", &search_into, arg("task"), arg("sizes"), arg("accept"), arg("most"),
           arg("states"), arg("controls"), arg("steps"), arg("gains"), arg("knots"),
           arg("gaps") = nb::none())
      .def("shoot_into", &shoot_into, arg("task"), arg("rows"), arg("knots"), arg("gaps"));
  module.def("backward_into", &backward_into, arg("A"), arg("B"), arg("gradient"), arg("hessian"),
             arg("controls"), arg("lower"), arg("upper"), arg("regularization"), arg("mu"),
             arg("scale"), arg("steps"), arg("gains"), arg("values") = nb::none(),
             arg("gaps") = nb::none());
  module.def("follow_policy", &follow_policy, arg("model").none(), arg("data").none(),
             arg("policy"), arg("lower"), arg("upper"), arg("times"), arg("states"),
             arg("controls"), arg("sensors"));
  module.def("policy_into", &policy_into, arg("model").none(), arg("policy"), arg("lower"),
             arg("upper"), arg("times"), arg("states"), arg("feedback"), arg("controls"));
  module.def("difference_count", [] { return difference_count().load(); });
  module.def("count_differences", [](int n) { difference_count() += n; }, arg("n"));
}

}  // namespace mujacobian
