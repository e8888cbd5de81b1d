#include "sensor/contact.h"

#include <algorithm>
#include <cmath>

#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "sensor/frame.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

// Returns the number of each contact's constraint block, -1 for contacts without rows.
int* contact_blocks(Sensing& s) {
  int* index = s.arena.take<int>(s.d.ncon);
  std::fill(index, index + s.d.ncon, -1);
  for (int k = 0; k < s.f.blocks.count; k++) {
    if (s.f.blocks.block[k].geometry) index[s.f.blocks.block[k].id] = k;
  }
  return index;
}

// Returns MuJoCo's force of a contact, which selects the branches of the sensor.
ContactForce stored_force(const DataView& d, const ContactView& c, const Block* block) {
  ContactForce f{};
  if (!block) return f;
  const double* rows = d.efc_force + c.efc_address;
  if (block->type == constraint::kContactPyramidal) {
    for (int k = 1; k < c.dim; k++) {
      const double *edge = rows + 2 * (k - 1), mu = c.friction.v[k - 1];
      f.value[0] += edge[0] + edge[1];
      f.value[k] = mu * (edge[0] - edge[1]);
    }
  } else {
    for (int r = 0; r < c.dim; r++) f.value[r] = rows[r];
  }
  f.value[0] -= c.adhesion;
  return f;
}

ContactSlot make_slot(int spec) {
  static_assert(ContactSlot::kFields == contact_data::kCount);
  constexpr int kSize[contact_data::kCount] = {1, 3, 3, 1, 3, 3, 3, 3, 3};
  ContactSlot slot{{}, 0};
  for (int f = 0; f < contact_data::kCount; f++) {
    slot.start[f] = spec >> f & 1 ? slot.size : -1;
    if (spec >> f & 1) slot.size += kSize[f];
  }
  return slot;
}

bool matches(const ModelView& m, int geom, int type, int id) {
  int body = m.geom_bodyid[geom];
  switch (type) {
    case object::kUnknown:
    case object::kSite:
      return true;
    case object::kGeom:
      return geom == id;
    case object::kBody:
      return body == id;
    default:  // a subtree
      while (body > id) body = m.body_parentid[body];
      return body == id;
  }
}

// Returns 1 if the sensor's objects match the geoms of the contact in this order, -1 if they match
// in the other order, 0 if they do not match.
int match(const Sensing& s, int sensor, const ContactView& c) {
  const ModelView& m = s.m;
  const int type[2] = {m.sensor_objtype[sensor], m.sensor_reftype[sensor]};
  const int id[2] = {m.sensor_objid[sensor], m.sensor_refid[sensor]};
  if (type[0] == object::kSite && !inside_site(m, s.d, id[0], load3(c.pos.v))) return 0;
  bool found[2][2];  // [object of the sensor][geom of the contact]
  for (int o = 0; o < 2; o++) {
    for (int g = 0; g < 2; g++) found[o][g] = matches(m, c.geom.v[g], type[o], id[o]);
    if (!found[o][0] && !found[o][1]) return 0;
  }
  const bool first = type[0] != object::kUnknown, second = type[1] != object::kUnknown;
  if (first && second) return found[0][0] && found[1][1] ? 1 : found[0][1] && found[1][0] ? -1 : 0;
  if (first) return found[0][0] ? 1 : -1;
  if (second) return found[1][1] ? 1 : -1;
  return 1;
}

enum Reduction { kNone, kMinDist, kMaxForce, kNetForce };

// All matching contacts, in the order of the slots.
struct MatchedContacts {
  MatchedContact* contact;
  int count;
};

MatchedContacts find_contacts(Sensing& s, int sensor, int reduction) {
  const int* index = contact_blocks(s);
  MatchedContacts all{s.arena.take<MatchedContact>(s.d.ncon), 0};
  for (int k = 0; k < s.d.ncon; k++) {
    const ContactView c = view_contact(s.d, k);
    if (c.geom.v[0] < 0 || c.geom.v[1] < 0) {
      throw Unsupported(element_name(s.m, object::kSensor, sensor), "it may report a flex contact");
    }
    const int direction = match(s, sensor, c);
    if (direction == 0) continue;
    const Block* block = index[k] < 0 ? nullptr : s.f.blocks.block + index[k];
    MatchedContact& matched = all.contact[all.count++];
    matched = {k, direction < 0, 0, block, index[k], nullptr};
    if (reduction == kMinDist) matched.criterion = c.dist;
    if (reduction == kMaxForce) {
      const Vec3 force = load3(stored_force(s.d, c, block).value);
      matched.criterion = -dot(force, force);
    }
  }
  if (reduction == kMinDist || reduction == kMaxForce) {
    std::sort(all.contact, all.contact + all.count,
              [](const MatchedContact& a, const MatchedContact& b) {
                // tie: order of contacts
                return a.criterion != b.criterion ? a.criterion < b.criterion : a.id < b.id;
              });
  }
  return all;
}

// Finds the motion of the contact with its dofs. A contact without rows gets a block of its own.
void identify(Sensing& s, MatchedContact& matched) {
  if (matched.block) {
    matched.change = s.variations(matched.index);
    return;
  }
  Block* block = s.arena.zeros<Block>(1);
  block->id = matched.id;
  block->type = constraint::kContactElliptic;
  make_contact(s.m, s.d, *block, nullptr, nullptr, s.arena);
  matched.block = block;
  matched.change = contact_variations(s.m, *block, s.arena);
}

// Rows first .. first + 2 of a sensor.
struct Triple {
  SensorRows& rows;
  int first;
  Vec3 sign;  // one per row

  void add_q(int dof, Vec3 x) const {
    rows.q(first, dof) += sign.x * x.x;
    rows.q(first + 1, dof) += sign.y * x.y;
    rows.q(first + 2, dof) += sign.z * x.z;
  }
  void add_v(int dof, Vec3 x) const {
    rows.v(first, dof) += sign.x * x.x;
    rows.v(first + 1, dof) += sign.y * x.y;
    rows.v(first + 2, dof) += sign.z * x.z;
  }
};

Vec3 in_frame(const ContactGeometry& g, Vec3 x) {
  return {dot(g.normal, x), dot(g.tangent[0], x), dot(g.tangent[1], x)};
}

// Relative velocity of the bodies at the contact, in its frame                          (SEN-24)
void add_velocity(Sensing& s, const MatchedContact& matched, bool linear, const Triple& out) {
  const ModelView& m = s.m;
  const ContactGeometry& g = *matched.block->geometry;
  Motion relative{};
  for (int side = 0; side < 2; side++) {
    const int body = m.geom_bodyid[matched.block->contact.geom.v[side]];
    const Vec3 offset = g.position - load3(s.d.subtree_com + 3 * m.body_rootid[body]);
    const Motion v = load_motion(s.d.cvel + 6 * body);
    const double sign = side ? 1 : -1;
    relative = relative + sign * about(v, offset);
    for (int dof = last_dof(m, body); dof >= 0; dof = m.dof_parentid[dof]) {
      const Motion axis = dof_axis(s.d, dof);
      const Motion dq = about(velocity_dq(axis, load_motion(s.d.cdof_dot + 6 * dof), v), offset);
      const Motion dv = about(axis, offset);
      out.add_q(dof, in_frame(g, sign * (linear ? dq.lin : dq.ang)));
      out.add_v(dof, in_frame(g, sign * (linear ? dv.lin : dv.ang)));
    }
  }
  for (int i = 0; i < matched.block->n; i++) {
    const ContactVariation& v = matched.change[i];
    Vec3 change = cross(linear ? relative.lin : relative.ang, v.turn);
    if (linear) change += cross(relative.ang, v.position);
    out.add_q(matched.block->dofs[i], in_frame(g, change));
  }
}

// One contact in the slot that starts at row `first`                                    (SEN-23)
void show(Sensing& s, const ContactSlot& slot, const MatchedContact& matched, int first,
          SensorRows& rows) {
  const Block& b = *matched.block;
  const ContactGeometry& g = *b.geometry;
  const Vec3 kept{1, 1, 1}, mirrored{1, 1, matched.flip ? -1. : 1.};
  const double side = matched.flip ? -1 : 1;
  auto at = [&](int field) { return slot.start[field] < 0 ? -1 : first + slot.start[field]; };

  for (int field : {contact_data::kForce, contact_data::kTorque}) {
    if (at(field) < 0 || matched.index < 0) continue;
    const int from = field == contact_data::kForce ? 0 : 3;
    for (int r = from; r < std::min(b.count, from + 3); r++) {
      double weight[kMaxRows] = {};
      weight[r] = r == from + 2 ? mirrored.z : 1;
      s.add_force(rows, at(field) + r - from, matched.index, weight);
    }
  }
  for (int i = 0; i < b.n; i++) {
    const int dof = b.dofs[i];
    const ContactVariation& v = matched.change[i];
    auto put = [&](int field, Vec3 x) {
      if (at(field) >= 0) Triple{rows, at(field), kept}.add_q(dof, x);
    };
    if (at(contact_data::kDist) >= 0) rows.q(at(contact_data::kDist), dof) += v.distance;
    put(contact_data::kPos, v.position);
    put(contact_data::kNormal, side * cross(v.turn, g.normal));
    put(contact_data::kTangent, side * cross(v.turn, g.tangent[0]));
  }
  for (int field : {contact_data::kLinVel, contact_data::kAngVel}) {
    if (at(field) < 0) continue;
    add_velocity(s, matched, field == contact_data::kLinVel, {rows, at(field), mirrored});
  }
}

// The total wrench of all contacts about their centroid, weighted with the forces       (SEN-25)
struct NetForce {
  Vec3 point, force;
  double weight;
};

NetForce net_force(Sensing& s, const ContactReport& all) {
  NetForce net{};
  for (int k = 0; k < all.count; k++) {
    const MatchedContact& matched = all.contact[k];
    if (matched.index < 0) continue;
    const Force w = s.wrench(matched.index).value;
    const double size = norm(w.lin);
    net.point += size * matched.block->geometry->position;
    net.force += (matched.flip ? -1 : 1) * w.lin;
    net.weight += size;
  }
  net.point = (1 / std::fmax(net.weight, kMinVal)) * net.point;
  return net;
}

// Changes of force, torque and point.
struct NetChange {
  Vec3 force, torque, point;
};

// Writes the rows of the net force of all contacts.                                      (SEN-25)
void show_net(Sensing& s, const ContactReport& all, SensorRows& rows) {
  const ContactSlot& slot = all.slot;
  const NetForce net = net_force(s, all);
  constexpr int kFields[3] = {contact_data::kForce, contact_data::kTorque, contact_data::kPos};
  for (int k = 0; k < all.count; k++) {
    const MatchedContact& matched = all.contact[k];
    if (matched.index < 0 || !matched.block->active) continue;
    const Block& b = *matched.block;
    const BlockWrench& w = s.wrench(matched.index);
    const double sign = matched.flip ? -1 : 1, size = norm(w.value.lin);
    // tie: net force of zero
    const double share = net.weight > kMinVal ? size / net.weight : 0;
    const Vec3 arm = b.geometry->position - net.point;

    // changes of the sum, if the contact's wrench about its position changes by `dw`, its position
    // by `dp`, and the norm of its force by `dsize`
    auto change = [&](Force dw, Vec3 dp, double dsize) {
      NetChange c;
      c.point = share * dp + (share == 0 ? 0 : dsize / net.weight) * arm;
      c.force = sign * dw.lin;
      c.torque = sign * (dw.ang + cross(arm, dw.lin)) - cross(c.point, net.force);
      return c;
    };

    // add the changes to the rows of the fields that are reported
    auto put = [&](NetChange c, auto add) {
      const Vec3 parts[3] = {c.force, c.torque, c.point};
      for (int f = 0; f < 3; f++) {
        if (slot.start[kFields[f]] >= 0) add(slot.start[kFields[f]], parts[f]);
      }
    };

    // with each dof, the contact moves and its force turns; the norm of the force does not change
    for (int i = 0; i < b.n; i++) {
      put(change(w.change[0][i], matched.change[i].position, 0),
          [&](int first, Vec3 x) { Triple{rows, first, {1, 1, 1}}.add_q(b.dofs[i], x); });
    }

    // with the force of each row of the block: weights of the rows for all nine values
    double weight[9][kMaxRows] = {};
    for (int r = 0; r < b.count; r++) {
      const double dsize = size > 0 ? dot(w.value.lin, w.unit[r].lin) / size : 0;
      const NetChange c = change(w.unit[r], {0, 0, 0}, dsize);
      const Vec3 parts[3] = {c.force, c.torque, c.point};
      for (int f = 0; f < 3; f++) {
        weight[3 * f][r] = parts[f].x, weight[3 * f + 1][r] = parts[f].y;
        weight[3 * f + 2][r] = parts[f].z;
      }
    }
    for (int f = 0; f < 9; f++) {
      const int first = slot.start[kFields[f / 3]];
      if (first >= 0) s.add_force(rows, first + f % 3, matched.index, weight[f]);
    }
  }
}

}  // namespace

bool inside_site(const ModelView& m, const DataView& d, int site, Vec3 point) {
  const double* size = m.site_size + 3 * site;
  const Vec3 p =
      transpose_mul(load9(d.site_xmat + 9 * site), point - load3(d.site_xpos + 3 * site));
  const double across = p.x * p.x + p.y * p.y, radius = size[0] * size[0];
  switch (m.site_type[site]) {
    case geom::kSphere:
      // tie: zone of a contact sensor
      return across + p.z * p.z < radius;
    case geom::kCapsule: {
      const double beyond = p.z - std::clamp(p.z, -size[1], size[1]);
      // tie: zone of a contact sensor
      return across + beyond * beyond < radius;
    }
    case geom::kEllipsoid:
      // tie: zone of a contact sensor
      return norm(Vec3{p.x / size[0], p.y / size[1], p.z / size[2]}) < 1;
    case geom::kCylinder:
      // tie: zone of a contact sensor
      return std::abs(p.z) < size[1] && across < radius;
    case geom::kBox:
      // tie: zone of a contact sensor
      return std::abs(p.x) < size[0] && std::abs(p.y) < size[1] && std::abs(p.z) < size[2];
    default:
      return false;
  }
}

bool is_touched(const Sensing& s, int sensor, int k) {
  const ModelView& m = s.m;
  const int site = m.sensor_objid[sensor], body = m.site_bodyid[site];
  const Block& b = s.f.blocks.block[k];
  if (!b.geometry || !b.active) return false;
  const ContactView& c = b.contact;
  const bool second = m.geom_bodyid[c.geom.v[1]] == body;
  if (!second && m.geom_bodyid[c.geom.v[0]] != body) return false;
  // tie: touch without force
  if (stored_force(s.d, c, &b).value[0] <= 0) return false;
  double ray[3];
  store3(ray, (second ? -1 : 1) * load3(c.frame.v));
  const double hit =
      engine().mju_rayGeom(s.d.site_xpos + 3 * site, s.d.site_xmat + 9 * site,
                           m.site_size + 3 * site, c.pos.v, ray, m.site_type[site], nullptr);
  // tie: zone of a touch sensor
  return hit >= 0;
}

bool reports_net(const ModelView& m, int sensor) {
  return m.sensor_intprm[kNSens * sensor + 1] == kNetForce;
}

ContactReport report_contacts(Sensing& s, int sensor) {
  const int* parameters = s.m.sensor_intprm + kNSens * sensor;
  const ContactSlot slot = make_slot(parameters[0]);
  const MatchedContacts all = find_contacts(s, sensor, parameters[1]);
  const bool net = reports_net(s.m, sensor);
  const int slots = net ? all.count : s.m.sensor_dim[sensor] / slot.size;
  const int shown = std::min(slots, all.count);
  for (int k = 0; k < shown; k++) identify(s, all.contact[k]);
  return {slot, net, all.contact, shown};
}

// Sum of the normal forces of the body's contacts whose outward normals meet the site    (SEN-22)
void sense_touch(Sensing& s, int sensor, SensorRows& rows) {
  const double weight[kMaxRows] = {1};
  for (int k = 0; k < s.f.blocks.count; k++) {
    if (is_touched(s, sensor, k)) s.add_force(rows, 0, k, weight);
  }
}

// Reports the contacts one by one in slots, or their net force.
void sense_contact(Sensing& s, int sensor, SensorRows& rows) {
  const ContactReport all = report_contacts(s, sensor);
  if (all.net) return show_net(s, all, rows);
  for (int k = 0; k < all.count; k++) show(s, all.slot, all.contact[k], k * all.slot.size, rows);
}

}  // namespace mujacobian
