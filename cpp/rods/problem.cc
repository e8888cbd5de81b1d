#include "rods/problem.h"

#include <algorithm>

#include "rods/algebra.h"

namespace mujacobian::rods {
namespace {

// Append the slots that a material point depends on
void list(const Model& m, const MaterialPoint& p, std::vector<int>& slots) {
  for (int k = 0; k < 2; k++) {
    if (p.point[k] >= 0) slots.push_back(m.point_slot[p.point[k]]);
  }
  if (p.frame >= 0) slots.push_back(m.frame_slot[p.frame]);
}

}  // namespace

void add_elements(const Problem& p, const State& q, Sum& sum) {
  add_edges(p, q, sum);
  add_bends(p, q, sum);
  add_springs(p, q, sum);
  add_welds(p, q, sum);
  add_cables(p, q, sum);
  add_contacts(p, q, sum);
}

Problem::Problem(const Model& m, const State& previous_state, const State& previous_step,
                 const Inputs& given)
    : model(m), previous(previous_state), step(previous_step), inputs(given) {
  pull.resize(m.moment.size());
  for (size_t i = 0; i < pull.size(); i++) pull[i] = frame_pull(*this, static_cast<int>(i));
  for (const Edge& e : m.edges) lengths.push_back(norm(previous.x[e.end] - previous.x[e.start]));
  for (const Bend& b : m.bends) curvatures.push_back(darboux(m, b, previous));
  for (const Contact& c : m.contacts) grips.push_back(grip(*this, c));
}

Bars::Bars(const Model& m)
    : previous(m.slots()),
      step(m.slots()),
      mass(m.mass.size()),
      drag(m.mass.size()),
      moment(m.moment.size()),
      spin_drag(m.moment.size()),
      length(m.edges.size()),
      stretch(m.edges.size()),
      shear(m.edges.size()),
      stretch_damping(m.edges.size()),
      bend(m.bends.size()),
      bend_damping(m.bends.size()),
      attachment(m.attachments()),
      contact(m.surfaces.size()),
      friction(m.surfaces.size()),
      forces(nullptr),
      torques(nullptr),
      tensions(nullptr),
      rest(nullptr),
      targets(nullptr) {}

std::vector<int> slots_of(const Model& m, const Contact& c) {
  const Surface& s = m.surfaces[c.surface];
  std::vector<int> slots;
  list(m, c.sample, slots);
  if (s.body_point >= 0) slots.push_back(m.point_slot[s.body_point]);
  if (s.body_frame >= 0) slots.push_back(m.frame_slot[s.body_frame]);
  return slots;
}

std::vector<std::pair<int, int>> couplings(const Model& m) {
  std::vector<std::pair<int, int>> all;
  std::vector<int> slots;
  // couple all pairs of slots of one element
  auto couple = [&] {
    for (int a : slots)
      for (int b : slots) all.emplace_back(a, b);
    slots.clear();
  };
  // rods
  for (const Edge& e : m.edges) {
    slots = {m.point_slot[e.start], m.point_slot[e.end], m.frame_slot[e.frame]};
    couple();
  }
  for (const Bend& b : m.bends) {
    for (int edge : {b.first, b.second}) {
      if (edge >= 0) slots.push_back(m.frame_slot[m.edges[edge].frame]);
    }
    couple();
  }
  // attachments and cables
  for (const Spring& s : m.springs) {
    list(m, s.first, slots);
    list(m, s.second, slots);
    couple();
  }
  for (const Weld& w : m.welds) {
    slots = {m.frame_slot[w.first]};
    if (w.second >= 0) slots.push_back(m.frame_slot[w.second]);
    couple();
  }
  for (const Cable& c : m.cables) {
    for (size_t k = 0; k + 1 < c.path.size(); k++) {
      list(m, c.path[k], slots);
      list(m, c.path[k + 1], slots);
      couple();
    }
  }
  // contacts
  for (const Contact& c : m.contacts) {
    slots = slots_of(m, c);
    couple();
  }
  return all;
}

double stored_energy(const Model& m, const State& q, const Inputs& inputs) {
  Problem standing(m, q, q, inputs);  // nothing moves, so there is no damping and no friction
  Sum sum;
  add_elements(standing, q, sum);
  return sum.energy;
}

void pull_back(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  pull_back_points(p, q, z, bars);
  pull_back_frames(p, q, z, bars);
  pull_back_edges(p, q, z, bars);
  pull_back_bends(p, q, z, bars);
  pull_back_springs(p, q, z, bars);
  pull_back_welds(p, q, z, bars);
  pull_back_cables(p, q, z, bars);
  pull_back_contacts(p, q, z, bars);
}

}  // namespace mujacobian::rods
