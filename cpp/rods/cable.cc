// Potentials of cables: tension times length.
#include "rods/algebra.h"
#include "rods/lever.h"
#include "rods/problem.h"

namespace mujacobian::rods {
namespace {

// Vector between two consecutive points of a cable
Levers piece(const Problem& p, const Cable& c, size_t k, const State& q) {
  Levers w(p.model, q);
  w.add(c.path[k + 1], 1);
  w.add(c.path[k], -1);
  return w;
}

}  // namespace

void add_cables(const Problem& p, const State& q, Sum& sum) {
  if (!p.inputs.tensions) return;
  for (size_t i = 0; i < p.model.cables.size(); i++) {
    const Cable& c = p.model.cables[i];
    const double tension = p.inputs.tensions[i];
    for (size_t k = 0; k + 1 < c.path.size(); k++) {
      Levers w = piece(p, c, k, q);
      const double length = norm(w.value());
      sum.add(tension * length);
      Vec3 along = (1 / length) * w.value();
      Mat3 across = difference(identity3(), outer(along, along));
      w.add_to(sum, tension * along, (tension / length) * across);  // (ROD-19)
    }
  }
}

void pull_back_cables(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  if (!bars.tensions) return;
  for (size_t i = 0; i < p.model.cables.size(); i++) {
    const Cable& c = p.model.cables[i];
    for (size_t k = 0; k + 1 < c.path.size(); k++) {
      Levers w = piece(p, c, k, q);
      bars.tensions[i] += dot(w.motion(z), w.value()) / norm(w.value());
    }
  }
}

}  // namespace mujacobian::rods
