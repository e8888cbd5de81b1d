// Quadratic programs: cpp/constraint/qcqp.h and cpp/control/box_qp.h.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

#include "arrays.h"
#include "constraint/qcqp.h"
#include "control/box_qp.h"
#include "primitives.h"

namespace mujacobian {
namespace {

// A problem of the noslip solver with its solution.
class Cone {
 public:
  Cone(Matrix A, Vector b, Vector mu, double r)
      : mu_(mu.data(), mu.data() + mu.size()),
        solution_(solve_qcqp(size(b), A.data(), b.data(), mu_.data(), r, arena_)) {}

  std::vector<double> x() const { return {solution_.x, solution_.x + solution_.n}; }
  bool singular() const { return solution_.singular; }
  bool on_edge() const { return solution_.on_edge; }
  int count() const { return solution_.count; }
  std::vector<double> differentiate(Matrix dA, Vector db, double dr) const {
    std::vector<double> dx(solution_.n);
    differentiate_qcqp(solution_, dA.data(), db.data(), dr, dx.data());
    return dx;
  }

 private:
  Arena arena_;
  std::vector<double> mu_;
  Qcqp solution_;
};

// Solve in place, from the guess x. Returns whether it was solved, the components that are free,
// and the factor of H over them.
std::tuple<bool, std::vector<int>, std::vector<std::vector<double>>> box_qp(Matrix H, Vector g,
                                                                            Vector lower,
                                                                            Vector upper,
                                                                            Vector x) {
  Arena arena;
  BoxSolution s{};
  const bool solved = solve_box_qp(H.data(), stride(H), g.data(), lower.data(), upper.data(),
                                   size(g), x.data(), s, arena);
  std::vector<std::vector<double>> factor;
  for (int r = 0; r < s.free_count; r++) {
    factor.emplace_back(s.factor + r * s.stride, s.factor + r * s.stride + r + 1);
  }
  return {solved, {s.free, s.free + s.free_count}, factor};
}

}  // namespace

void bind_quadratic(nanobind::module_& m) {
  namespace nb = nanobind;
  nb::class_<Cone>(m, "Cone")
      .def(nb::init<Matrix, Vector, Vector, double>())
      .def_prop_ro("x", &Cone::x)
      .def_prop_ro("singular", &Cone::singular)
      .def_prop_ro("on_edge", &Cone::on_edge)
      .def_prop_ro("count", &Cone::count)
      .def("differentiate", &Cone::differentiate);
  m.def("solve_box_qp", box_qp);
}

}  // namespace mujacobian
