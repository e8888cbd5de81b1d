// The sensor plugin mujoco.sensor.touch_grid: forces of contacts in the bins of a spherical grid
// around a site. The bin of a contact is part of the branch.                              (SEN-31)
#include <algorithm>
#include <cmath>
#include <numbers>
#include <sstream>
#include <vector>

#include "layout/engine.h"
#include "sensor/frame.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

// The grid of one plugin.
struct TouchGrid {
  std::vector<double> edges[2];  // of azimuth and elevation, ascending, in rad

  int bins() const { return static_cast<int>((edges[0].size() - 1) * (edges[1].size() - 1)); }
};

// Returns the two numbers of an attribute.
void read_pair(const ModelView& m, int plugin, const char* attribute, double value[2]) {
  std::istringstream text(plugin_attribute(m, plugin, attribute));
  text >> value[0] >> value[1];
}

TouchGrid make_grid(const ModelView& m, int plugin) {
  double size[2] = {}, view[2] = {};
  read_pair(m, plugin, "size", size);
  read_pair(m, plugin, "fov", view);
  const double gamma = std::strtod(plugin_attribute(m, plugin, "gamma"), nullptr);
  TouchGrid grid;
  for (int k = 0; k < 2; k++) {
    const int bins = static_cast<int>(size[k]);
    // the same rounding errors as in the plugin, so that a contact is in the same bin
    double at = -1;
    const double increment = 2.0 / bins, scale = view[k] * std::numbers::pi / 180;
    for (int i = 0; i <= bins; i++, at += increment) {
      const double bent = gamma == 0 ? at : gamma * std::pow(at, 5) + (1 - gamma) * at;
      grid.edges[k].push_back(bent * scale);
    }
  }
  return grid;
}

// Returns the bin of a point in the frame of the site, -1 if it is outside of the grid.
int bin_of(const TouchGrid& grid, Vec3 p) {
  const double angle[2] = {std::atan2(p.x, -p.z),
                           std::atan2(p.y, std::sqrt(p.x * p.x + p.z * p.z))};
  int place[2];
  for (int k = 0; k < 2; k++) {
    const std::vector<double>& edges = grid.edges[k];
    // tie: edge of a bin
    const auto upper = std::lower_bound(edges.begin(), edges.end(), angle[k]);
    if (upper == edges.begin() || upper == edges.end()) return -1;
    place[k] = static_cast<int>(upper - edges.begin()) - 1;
  }
  return place[1] * static_cast<int>(grid.edges[0].size() - 1) + place[0];
}

// Returns the sign with which the plugin reports the force on the second body. It is the force on
// the body of the site, except that older releases take the sign from the order of the bodies.
double site_side(const ModelView& m, int parent, const int body[2]) {
  if (engine().version >= kMuJoCo400) return m.body_weldid[body[1]] == parent ? 1 : -1;
  return parent < std::max(body[0], body[1]) ? -1 : 1;
}

// The force or torque of a contact in world axes, and its part per row of the block.
struct ContactVector {
  Vec3 value{0, 0, 0};
  Vec3 unit[kMaxRows] = {};
};

ContactVector contact_vector(const Block& b, bool torque) {
  const ContactGeometry& g = *b.geometry;
  const Vec3 axes[3] = {g.normal, g.tangent[0], g.tangent[1]};
  const ContactForce force = contact_force(b);
  ContactVector v;
  for (int r = torque ? 3 : 0; r < std::min(b.count, torque ? 6 : 3); r++) {
    v.unit[r] = axes[r % 3];
    v.value += force.value[r] * axes[r % 3];
  }
  return v;
}

// Adds the derivative of sign e . v to a row, with e an axis of the site and v a vector of the
// contact of block k.
void add_component(Sensing& s, const Frame& frame, int k, const ContactVector& v, Vec3 e,
                   double sign, SensorRows& rows, int row) {
  const Block& b = s.f.blocks.block[k];
  const ContactVariation* change = s.variations(k);
  for (int i = 0; i < b.n; i++) {
    rows.q(row, b.dofs[i]) += sign * dot(e, cross(change[i].turn, v.value));
  }
  for (int i = 0; i < frame.n; i++) {
    rows.q(row, frame.dofs[i]) += sign * dot(cross(frame.turned[i], e), v.value);
  }
  double weight[kMaxRows] = {};
  for (int r = 0; r < b.count; r++) weight[r] = sign * dot(e, v.unit[r]);
  s.add_force(rows, row, k, weight);
}

}  // namespace

void sense_touch_grid(Sensing& s, int sensor, SensorRows& rows) {
  const ModelView& m = s.m;
  const int site = m.sensor_objid[sensor], parent = m.body_weldid[m.site_bodyid[site]];
  const Frame frame = make_frame(s, object::kSite, site);
  const TouchGrid grid = make_grid(m, m.sensor_plugin[sensor]);
  const int channels = rows.dim() / grid.bins();
  for (int k = 0; k < s.f.blocks.count; k++) {
    const Block& b = s.f.blocks.block[k];
    if (!b.geometry || !b.active) continue;
    const int body[2] = {m.geom_bodyid[b.contact.geom.v[0]], m.geom_bodyid[b.contact.geom.v[1]]};
    if (m.body_weldid[body[0]] != parent && m.body_weldid[body[1]] != parent) continue;
    const Vec3 from = load3(b.contact.pos.v) - frame.position;
    const int bin = bin_of(grid, transpose_mul(frame.axes, from));
    if (bin < 0) continue;
    const double sign = site_side(m, parent, body);
    for (int c = 0; c < channels; c++) {
      constexpr int kAxis[3] = {2, 0, 1};  // normal first: z, x, y
      const ContactVector v = contact_vector(b, c >= 3);
      add_component(s, frame, k, v, column(frame.axes, kAxis[c % 3]), sign, rows,
                    c * grid.bins() + bin);
    }
  }
}

}  // namespace mujacobian
