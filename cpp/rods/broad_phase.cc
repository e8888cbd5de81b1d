#include "rods/broad_phase.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "rods/lever.h"
#include "rods/problem.h"

namespace mujacobian::rods {
namespace {

constexpr double kHalfTurn = 3.14159265358979323846;

struct Bounds {
  std::array<double, 3> low, high;
};

Bounds bounds_of(const Segment& s, const State& q, double scale) {
  Bounds box;
  double a[3], b[3];
  store3(a, position(s.start, q)), store3(b, position(s.end, q));
  for (int k = 0; k < 3; k++) {
    box.low[k] = std::min(a[k], b[k]) - scale * s.radius;
    box.high[k] = std::max(a[k], b[k]) + scale * s.radius;
  }
  return box;
}

// Returns the axis along which the boxes are spread most
int widest_axis(const std::vector<Bounds>& boxes) {
  std::array<double, 3> spread;
  for (int k = 0; k < 3; k++) {
    double sum = 0, squares = 0;
    for (const Bounds& box : boxes) {
      const double center = 0.5 * (box.low[k] + box.high[k]);
      sum += center, squares += center * center;
    }
    spread[k] = squares - sum * sum / static_cast<double>(boxes.size());
  }
  return static_cast<int>(std::max_element(spread.begin(), spread.end()) - spread.begin());
}

bool overlap(const Bounds& a, const Bounds& b) {
  for (int k = 0; k < 3; k++) {
    if (a.low[k] > b.high[k] || b.low[k] > a.high[k]) return false;
  }
  return true;
}

// Whether the two segments can touch. Those of a body cannot, and those of a rod only if the rod
// between them is long enough for half a turn about a touching point.                   (ROD-48)
bool may_touch(const Bundle& bundle, const Segment& a, const Segment& b) {
  if (bundle.is_divided && a.group == b.group) return false;
  if (a.owner != b.owner) return true;
  const double apart = std::max(b.begin - a.finish, a.begin - b.finish);
  const double around = a.loop - std::max(b.finish - a.begin, a.finish - b.begin);
  const double between = std::min(apart, around);
  return between >= 0.5 * kHalfTurn * (a.radius + b.radius);
}

}  // namespace

std::vector<Pair> near_pairs(const Model& m, const State& q, double scale) {
  std::vector<Pair> pairs;
  for (const Bundle& bundle : m.bundles) {
    std::vector<Bounds> boxes;
    for (const Segment& s : bundle.segments) boxes.push_back(bounds_of(s, q, scale));
    const int axis = widest_axis(boxes);
    std::vector<int> order(boxes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int i, int j) { return boxes[i].low[axis] < boxes[j].low[axis]; });
    for (size_t i = 0; i < order.size(); i++) {
      const Bounds& box = boxes[order[i]];
      for (size_t j = i + 1; j < order.size(); j++) {
        if (boxes[order[j]].low[axis] > box.high[axis]) break;
        const Segment& a = bundle.segments[std::min(order[i], order[j])];
        const Segment& b = bundle.segments[std::max(order[i], order[j])];
        if (overlap(box, boxes[order[j]]) && may_touch(bundle, a, b)) {
          pairs.push_back({&bundle, &a, &b});
        }
      }
    }
  }
  return pairs;
}

std::vector<int> slots_of(const Model& m, const Pair& pair) {
  std::vector<int> slots;
  for (const Segment* s : {pair.first, pair.second}) {
    list_slots(m, s->start, slots);
    slots.push_back(m.frame_slot[s->frame]);
  }
  return slots;
}

}  // namespace mujacobian::rods
