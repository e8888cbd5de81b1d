// Touch and contact sensors.
#include "sensor/contact.h"

#include <algorithm>

#include "constraint/block_sum.h"
#include "constraint/contact.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "second_order/pair.h"
#include "second_order/sensor_form.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

// Adds the second derivatives of the product of the forces of block k with weights that are
// constant, or the rows of a velocity `fixed` that is fixed in the world.                 (HSE-15)
void add_forces(Sensing& s, int k, const double* weights, Vec3 fixed, SensorForm& form) {
  const Block& b = s.f.blocks.block[k];
  if (!b.active) return;
  double rows[kMaxRows];
  for (int r = 0; r < b.count; r++) rows[r] = -weights[r];
  form.add_block_acceleration(b, rows);
  add_contact_hessian(s.m, s.d, b, s.block_motion(), {rows, nullptr, -fixed}, form.forms().early,
                      form.sliding(), s.arena);
}

// The weights of one slot: fields that are not reported have none.
class SlotWeights {
 public:
  SlotWeights(const ContactSlot& slot, const double* weights) : slot_(slot), weights_(weights) {}

  double scalar(int field) const {
    return slot_.start[field] < 0 ? 0 : weights_[slot_.start[field]];
  }
  Vec3 vector(int field) const {
    return slot_.start[field] < 0 ? Vec3{0, 0, 0} : load3(weights_ + slot_.start[field]);
  }
  // Returns whether something else than forces is reported.
  bool moves() const {
    for (int f = contact_data::kDist; f < ContactSlot::kFields; f++) {
      if (slot_.start[f] >= 0) return true;
    }
    return false;
  }

 private:
  const ContactSlot& slot_;
  const double* weights_;
};

// Returns the vector with these components in the frame of a contact.
Vec3 in_world(const ContactGeometry& g, Vec3 x) {
  return x.x * g.normal + x.y * g.tangent[0] + x.z * g.tangent[1];
}

// Adds the second derivatives of a function of a contact, and of the power of a wrench that is
// fixed to its frame with the velocity of the bodies. The dofs may belong to several components.
// (HSE-16)
void add_contact_function(Sensing& s, const Block& b, const ContactFunction& f, Force wrench,
                          SensorForm& form) {
  constexpr auto q = DofVariable::kPosition, v = DofVariable::kVelocity;
  const ContactDofs& c = *b.chain;
  const ContactMap map = vary_units(*b.geometry, c.all_moves);
  PairMotion p;
  p.rate = s.arena.zeros<double>(6 * c.stride), p.moved = s.arena.take<double>(6 * c.stride);
  for (int side = 0; side < 2; side++) {
    p.y[side] = about(load_motion(s.d.cvel + 6 * c.body[side]), c.offset[side]);
  }
  fix_wrench(map, c.all_moves, wrench, p);
  for (int k = 0; k < c.n; k++) set_rate(c, k, load_motion(s.d.cdof_dot + 6 * c.dofs[k]), p);
  move_pair(c, p);
  double* half = s.arena.zeros<double>(matrix_size(b));
  double* turned = s.arena.zeros<double>(matrix_size(b));
  add_pair_hessian(s.m, c, &p, 1,
                   power_curvature(s.m, s.d, *b.geometry, map, c.all_moves, &p, 1, f), half,
                   s.arena);
  turn_wrench(s.m, c, map, wrench, turned, s.arena);
  add_half(c, half, form);
  for (int i = 0; i < c.n; i++)
    for (int k = 0; k < c.n; k++) {
      form.add({v, c.dofs[i]}, {q, c.dofs[k]}, turned[i * c.stride + k]);
    }
}

// One contact in a slot.
void add_slot(Sensing& s, int sensor, const MatchedContact& matched, const SlotWeights& weights,
              SensorForm& form) {
  const Block& b = *matched.block;
  const ContactGeometry& g = *b.geometry;
  const double side = matched.flip ? -1 : 1;
  auto mirrored = [&](int field) {
    const Vec3 x = weights.vector(field);
    return Vec3{x.x, x.y, side * x.z};
  };
  if (matched.index >= 0) {
    double rows[kMaxRows];
    store3(rows, mirrored(contact_data::kForce)), store3(rows + 3, mirrored(contact_data::kTorque));
    add_forces(s, matched.index, rows, {0, 0, 0}, form);
  }
  if (b.n == 0 || !weights.moves()) return;
  if (const char* reason = curvature_refusal(g)) {
    throw Unsupported(element_name(s.m, object::kSensor, sensor), reason);
  }
  ContactFunction f{};
  f.slope.distance = weights.scalar(contact_data::kDist);
  f.slope.position = weights.vector(contact_data::kPos);
  f.add_turned(g.normal, side * weights.vector(contact_data::kNormal));
  f.add_turned(g.tangent[0], side * weights.vector(contact_data::kTangent));
  const Force wrench{in_world(g, mirrored(contact_data::kAngVel)),
                     in_world(g, mirrored(contact_data::kLinVel))};
  add_contact_function(s, b, f, wrench, form);
}

// The net force of all contacts.
void add_net(Sensing& s, const ContactReport& all, const SlotWeights& weights, SensorForm& form) {
  const Vec3 weight = weights.vector(contact_data::kForce);
  for (int k = 0; k < all.count; k++) {
    const MatchedContact& matched = all.contact[k];
    if (matched.index < 0) continue;
    const Vec3 fixed = (matched.flip ? -1 : 1) * weight;
    double rows[kMaxRows] = {};
    for (int r = 0; r < std::min(matched.block->count, 3); r++) {
      rows[r] = dot(contact_axis(*matched.block->geometry, r), fixed);
    }
    add_forces(s, matched.index, rows, fixed, form);
  }
}

}  // namespace

const char* contact_curvature_refusal(const ModelView& m, int sensor) {
  if (!reports_net(m, sensor)) return nullptr;
  const int spec = m.sensor_intprm[kNSens * sensor];
  const bool about = (spec >> contact_data::kTorque & 1) || (spec >> contact_data::kPos & 1);
  return about ? "second derivatives of the centroid of contacts" : nullptr;
}

void add_touch_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const double rows[kMaxRows] = {weights[0]};
  for (int k = 0; k < s.f.blocks.count; k++) {
    if (is_touched(s, sensor, k)) add_forces(s, k, rows, {0, 0, 0}, form);
  }
}

void add_contact_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form) {
  const ContactReport all = report_contacts(s, sensor);
  if (all.net) return add_net(s, all, {all.slot, weights}, form);
  for (int k = 0; k < all.count; k++) {
    add_slot(s, sensor, all.contact[k], {all.slot, weights + k * all.slot.size}, form);
  }
}

}  // namespace mujacobian
