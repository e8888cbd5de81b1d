#include "rods/problem.h"

#include <algorithm>
#include <cmath>

#include "rods/algebra.h"
#include "rods/lever.h"

namespace mujacobian::rods {
void add_elements(const Problem& p, const State& q, Sum& sum) {
  add_edges(p, q, sum);
  add_bends(p, q, sum);
  add_springs(p, q, sum);
  add_welds(p, q, sum);
  add_cables(p, q, sum);
  add_contacts(p, q, sum);
  add_segments(p, q, sum);
}

Scheme Scheme::at(const Model& m, int step) {
  if (m.order == 0) return rest();
  // backward Euler, which also begins a simulation by BDF2
  if (m.order == 1 || step == 0) return {1, {2, -1, 0, 0}, 1, {1, 0}, {1, 0}, false};
  Scheme s{9.0 / 4, {}, 3.0 / 2, {4.0 / 3, -1.0 / 3}, {2, -1}, false};
  if (step == 1) {
    s.past = {20.0 / 9, -13.0 / 9, 2.0 / 9, 0};
  } else if (step == 2) {
    s.past = {24.0 / 9, -21.0 / 9, 6.0 / 9, 0};
  } else {
    s.past = {24.0 / 9, -22.0 / 9, 8.0 / 9, -1.0 / 9};
  }
  return s;
}

Scheme Scheme::rest() { return {0, {1, 0, 0, 0}, 0, {1, 0}, {1, 0}, true}; }

Problem::Problem(const Model& m, const Scheme& weights, const Past& states, const Inputs& given)
    : model(m),
      scheme(weights),
      past(states),
      previous(*states[0]),
      inputs(given),
      rate(weights.rate / m.timestep),
      ahead(m.mass.size()),
      lagging(m.mass.size()),
      pull(m.moment.size()),
      leverage(m.moment.size()),
      lengths(m.edges.size()),
      curvatures(m.bends.size()) {
  for (int j = 0; j < kPast; j++) {
    if (scheme.past[j] == 0) continue;
    for (size_t i = 0; i < ahead.size(); i++) ahead[i] += scheme.past[j] * past[j]->x[i];
  }
  for (size_t i = 0; i < pull.size(); i++) {
    pull[i] = frame_pull(*this, static_cast<int>(i));
    leverage[i] = std::sqrt(inner(pull[i], pull[i]));
  }
  for (int j = 0; j < 2; j++) {
    const double weight = scheme.lag[j];
    const State& q = *past[j];
    if (weight == 0) continue;
    for (size_t i = 0; i < lagging.size(); i++) lagging[i] += weight * q.x[i];
    for (size_t i = 0; i < lengths.size(); i++) {
      lengths[i] += weight * norm(q.x[m.edges[i].end] - q.x[m.edges[i].start]);
    }
    for (size_t i = 0; i < curvatures.size(); i++) {
      curvatures[i] += weight * darboux(m, m.bends[i], q);
    }
  }
  for (const Contact& c : m.contacts) grips.push_back(grip(*this, c));
  if (!scheme.is_static) pinches = rods::pinches(m, previous);
}

Bars::Bars(const Model& m)
    : past{},
      ambient(m.moment.size()),
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
      contact(m.contact_kinds()),
      friction(m.contact_kinds()),
      forces(nullptr),
      torques(nullptr),
      tensions(nullptr),
      rest(nullptr),
      targets(nullptr) {}

std::vector<int> slots_of(const Model& m, const Contact& c) {
  const Surface& s = m.surfaces[c.surface];
  std::vector<int> slots;
  list_slots(m, c.sample, slots);
  if (s.body_point >= 0) slots.push_back(m.point_slot[s.body_point]);
  if (s.body_frame >= 0) slots.push_back(m.frame_slot[s.body_frame]);
  for (int frame : c.rolling) {
    if (frame >= 0) slots.push_back(m.frame_slot[frame]);
  }
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
    list_slots(m, s.first, slots);
    list_slots(m, s.second, slots);
    couple();
  }
  for (const Weld& w : m.welds) {
    slots = {m.frame_slot[w.first]};
    if (w.second >= 0) slots.push_back(m.frame_slot[w.second]);
    couple();
  }
  for (const Cable& c : m.cables) {
    for (size_t k = 0; k + 1 < c.path.size(); k++) {
      list_slots(m, c.path[k], slots);
      list_slots(m, c.path[k + 1], slots);
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
  Problem standing(m, Scheme::rest(), {&q, &q, &q, &q}, inputs);
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
  pull_back_segments(p, q, z, bars);
}

}  // namespace mujacobian::rods
