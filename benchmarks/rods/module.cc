// The core of mujacobian.rods once more, with the coordinates of the file that it is linked with,
// and how long its assembly takes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <ctime>

#include "bindings/rods.h"
#include "rods/problem.h"

namespace nb = nanobind;
using mujacobian::load3;
using mujacobian::load9;
using namespace mujacobian::rods;  // NOLINT: this file is about nothing else

namespace {

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

State read(const Numbers& x, const Numbers& R) {
  State q;
  for (size_t i = 0; i < x.size(); i += 3) q.x.push_back(load3(x.data() + i));
  for (size_t i = 0; i < R.size(); i += 9) q.R.push_back(load9(R.data() + i));
  return q;
}

// CPU time: other processes do not count
double seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

// Seconds per gradient and Hessian at (x, R), in a step that begins with `previous` and `step`, and
// per factorization and solution
nb::tuple time_iteration(const Model& m, const Numbers& previous_x, const Numbers& previous_R,
                         const Numbers& step_x, const Numbers& step_R, const Numbers& rest,
                         const Numbers& x, const Numbers& R, int repeats) {
  State previous = read(previous_x, previous_R), step = read(step_x, step_R), q = read(x, R);
  Problem problem(m, previous, step, {nullptr, nullptr, nullptr, rest.data(), nullptr});
  Tangent gradient(m.slots()), direction(m.slots());
  Skyline hessian(m.slots(), couplings(m));
  Factor factor(hessian);
  const std::vector<char> fixed = m.fixed();
  Sum sum;
  sum.gradient = &gradient;
  sum.hessian = &hessian;
  double begin = seconds();
  for (int k = 0; k < repeats; k++) evaluate(problem, q, sum);
  const double assembly = (seconds() - begin) / repeats;
  begin = seconds();
  for (int k = 0; k < repeats; k++) {
    factor.compute(hessian, fixed, 0, true);
    direction = gradient;
    factor.solve(direction);
  }
  return nb::make_tuple(assembly, (seconds() - begin) / repeats);
}

}  // namespace

NB_MODULE(RODS_MODULE, module) {
  mujacobian::bind_rods(module);
  module.def("time_iteration", &time_iteration);
}
