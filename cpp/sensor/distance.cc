#include "sensor/distance.h"

#include <utility>

#include "contact/collider.h"
#include "contact/wrench.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

// The nearest pair of geoms, in the order of their types.
struct Nearest {
  int geom[2];   // -1: none within the cutoff
  bool swapped;  // the first geom is the sensor's second
  double distance;
  Vec3 point[2];
};

struct Range {
  int first, count;
};

Range geoms_of(const ModelView& m, int type, int id) {
  if (type == object::kBody) return {m.body_geomadr[id], m.body_geomnum[id]};
  return {id, 1};
}

Nearest find_nearest(const Sensing& s, int sensor) {
  const ModelView& m = s.m;
  const Range from = geoms_of(m, m.sensor_objtype[sensor], m.sensor_objid[sensor]);
  const Range to = geoms_of(m, m.sensor_reftype[sensor], m.sensor_refid[sensor]);
  const double cutoff = m.sensor_cutoff[sensor];
  Nearest nearest{{-1, -1}, false, cutoff, {}};
  for (int a = from.first; a < from.first + from.count; a++) {
    for (int b = to.first; b < to.first + to.count; b++) {
      double x[6];
      const double distance = converged_distance(m, s.d, a, b, cutoff, x);
      // tie: nearest of several geoms
      if (!(distance < nearest.distance)) continue;
      nearest = {{a, b}, m.geom_type[a] > m.geom_type[b], distance, {load3(x), load3(x + 3)}};
    }
  }
  if (nearest.swapped) {
    std::swap(nearest.geom[0], nearest.geom[1]);
    std::swap(nearest.point[0], nearest.point[1]);
  }
  return nearest;
}

// Returns the pair as a contact, whose normal points from the first geom to the second.
ContactView as_contact(const Nearest& nearest) {
  ContactView pair{};
  pair.dist = nearest.distance;
  store3(pair.pos.v, 0.5 * (nearest.point[0] + nearest.point[1]));
  store3(pair.frame.v, (1 / nearest.distance) * (nearest.point[1] - nearest.point[0]));
  for (int side = 0; side < 2; side++) pair.geom.v[side] = nearest.geom[side];
  return pair;
}

// Largest sine of the angle between an axis and a normal at which they count as parallel.
constexpr double kLevel = 1e-9;

// Returns whether a dof rotates parallel features relative to each other, except about the normal
// of a face.
bool tilts(Parallel parallel, const ContactDofs& c, int k, Vec3 normal) {
  if (parallel == Parallel::kNone || c.sign(k) == 0) return false;
  const Vec3 w = c.axis[k].ang;
  const double least = kLevel * norm(w);
  return norm(w) > 0 && (parallel == Parallel::kLines || norm(cross(w, normal)) > least);
}

// Rows first .. first + 2
void put(SensorRows& rows, int first, int dof, Vec3 x) {
  rows.q(first, dof) += x.x, rows.q(first + 1, dof) += x.y, rows.q(first + 2, dof) += x.z;
}

// Throws Unsupported for a sensor.
[[noreturn]] void refuse(const ModelView& m, int sensor, const std::string& reason) {
  throw Unsupported(element_name(m, object::kSensor, sensor), reason);
}

}  // namespace

double NearestPair::towards() const {
  // tie: distance of zero
  return (swapped ? -1 : 1) * (contact.dist < 0 ? -1 : 1);
}

NearestPair nearest_pair(const Sensing& s, int sensor) {
  const ModelView& m = s.m;
  const Nearest nearest = find_nearest(s, sensor);
  NearestPair pair{};
  if (nearest.geom[0] < 0) return pair;
  if (nearest.distance == 0) refuse(m, sensor, "its geoms touch without depth");
  pair.found = true, pair.swapped = nearest.swapped;
  pair.contact = as_contact(nearest);
  if (!identify_nearest(converged_model(m), s.d, pair.contact, pair.geometry)) {
    refuse(m, sensor,
           "no features reproduce the nearest points of " +
               element_name(m, object::kGeom, nearest.geom[0]) + " and " +
               element_name(m, object::kGeom, nearest.geom[1]));
  }
  const int type = m.sensor_type[sensor];
  if (type != sensor::kGeomDist) pair.parallel = parallel_features(m, s.d, pair.contact);
  if (pair.parallel != Parallel::kNone && type == sensor::kGeomFromTo) {
    refuse(m, sensor, "the nearest points of parallel features are not unique");
  }
  return pair;
}

// (SEN-28)
void sense_distance(Sensing& s, int sensor, SensorRows& rows) {
  const NearestPair pair = nearest_pair(s, sensor);
  if (!pair.found) return;
  const int type = s.m.sensor_type[sensor];
  const ContactGeometry& g = pair.geometry;
  const ContactDofs c = contact_dofs(s.m, s.d, pair.contact, s.arena);
  for (int k = 0; k < c.n; k++) {
    if (tilts(pair.parallel, c, k, g.normal)) {
      refuse(s.m, sensor, "its normal is not differentiable where parallel features tilt");
    }
    const ContactVariation v = vary(g, c, k);
    const Vec3 dn = cross(v.turn, g.normal);
    if (type == sensor::kGeomDist) {
      rows.q(0, c.dofs[k]) += v.distance;
    } else if (type == sensor::kGeomNormal) {
      put(rows, 0, c.dofs[k], pair.towards() * dn);
    } else {
      const Vec3 half = 0.5 * (v.distance * g.normal + g.distance * dn);
      put(rows, pair.swapped ? 3 : 0, c.dofs[k], v.position - half);
      put(rows, pair.swapped ? 0 : 3, c.dofs[k], v.position + half);
    }
  }
}

}  // namespace mujacobian
