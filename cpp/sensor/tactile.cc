// Tactile sensors: the depth of every vertex of a mesh in the geoms that its body touches, and the
// speeds at which the vertex slides along two tangents.                                 (SEN-33)
#include <algorithm>
#include <cmath>

#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "sensor/distance_field.h"
#include "sensor/frame.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

// A geom with the velocity of its body at its center, and the derivatives of that velocity with
// respect to the positions and velocities of the frame's dofs.
struct MovingGeom {
  int geom;
  Frame frame;
  Motion velocity;
  Motion *dq, *dv;

  // Motion of a point of the geom at `arm` from the center, with dof i.
  Vec3 moved(int i, Vec3 arm) const { return frame.moved[i] + cross(frame.turned[i], arm); }
};

MovingGeom make_geom(Sensing& s, int geom) {
  MovingGeom g{geom, make_frame(s, object::kGeom, geom), {}, nullptr, nullptr};
  g.velocity = frame_velocity(s, g.frame);
  g.dq = s.arena.take<Motion>(g.frame.n);
  g.dv = s.arena.take<Motion>(g.frame.n);
  for (int i = 0; i < g.frame.n; i++) {
    g.dq[i] = frame_velocity_dq(s, g.frame, i);
    g.dv[i] = frame_velocity_dv(s, g.frame, g.frame.dofs[i]);
  }
  return g;
}

// The geoms whose distance fields the sensor reads, without repetition.
struct Touched {
  int n;
  MovingGeom* geom;
};

Touched find_touched(Sensing& s, int sensor) {
  const ModelView& m = s.m;
  const int body = m.body_weldid[m.geom_bodyid[m.sensor_refid[sensor]]];
  Touched touched{0, s.arena.take<MovingGeom>(2 * static_cast<std::size_t>(s.d.ncon))};
  const auto add = [&](int geom) {
    MovingGeom* const end = touched.geom + touched.n;
    const auto is_same = [&](const MovingGeom& g) { return g.geom == geom; };
    if (std::any_of(touched.geom, end, is_same) || !has_distance_field(m, geom)) return;
    touched.geom[touched.n++] = make_geom(s, geom);
  };
  for (int k = 0; k < s.d.ncon; k++) {
    const int* id = contact_geoms(s.d, k);
    if (id[0] < 0 || id[1] < 0) {
      throw Unsupported(element_name(m, object::kSensor, sensor), "it may touch a flex");
    }
    if (m.body_weldid[m.geom_bodyid[id[0]]] == body) add(id[1]);
    if (m.body_weldid[m.geom_bodyid[id[1]]] == body) add(id[0]);
  }
  return touched;
}

// A vertex of the mesh.
struct Taxel {
  Vec3 arm;       // from the center of the geom of the sensor
  Vec3 along[2];  // directions fixed to the geom, in which it measures speeds
  int row;        // of its depth
  int stride;     // from one channel to the next
  int channels;
};

// d(depth) = -n . (dx - dy), where y is the point of the other geom at the taxel
void add_depth(const MovingGeom& own, const MovingGeom& other, const Taxel& t, Vec3 slope,
               SensorRows& rows) {
  const Vec3 arm = own.frame.position + t.arm - other.frame.position;
  for (int i = 0; i < own.frame.n; i++) {
    rows.q(t.row, own.frame.dofs[i]) -= dot(slope, own.moved(i, t.arm));
  }
  for (int i = 0; i < other.frame.n; i++) {
    rows.q(t.row, other.frame.dofs[i]) += dot(slope, other.moved(i, arm));
  }
}

// |t . (velocity of the taxel - that of the other geom at the taxel)|                     (SEN-34)
void add_speeds(const MovingGeom& own, const MovingGeom& other, const Taxel& t, SensorRows& rows) {
  const Vec3 arm = own.frame.position + t.arm - other.frame.position;
  const Vec3 relative = at_point(own.velocity, t.arm) - at_point(other.velocity, arm);
  for (int c = 1; c < t.channels; c++) {
    const double speed = dot(relative, t.along[c - 1]);
    // tie: taxel that does not slide
    const Vec3 e = double((speed > 0) - (speed < 0)) * t.along[c - 1];
    const int row = t.row + c * t.stride;
    for (int i = 0; i < own.frame.n; i++) {
      const Vec3 turn = own.frame.turned[i];
      const Vec3 change = at_point(own.dq[i], t.arm) + cross(own.velocity.ang, cross(turn, t.arm)) -
                          cross(other.velocity.ang, own.moved(i, t.arm));
      rows.q(row, own.frame.dofs[i]) += dot(e, change + cross(relative, turn));
      rows.v(row, own.frame.dofs[i]) += dot(e, at_point(own.dv[i], t.arm));
    }
    for (int i = 0; i < other.frame.n; i++) {
      const Vec3 change =
          at_point(other.dq[i], arm) - cross(other.velocity.ang, other.frame.moved[i]);
      rows.q(row, other.frame.dofs[i]) -= dot(e, change);
      rows.v(row, other.frame.dofs[i]) -= dot(e, at_point(other.dv[i], arm));
    }
  }
}

Vec3 load_floats(const float* x) { return {x[0], x[1], x[2]}; }

}  // namespace

void sense_tactile(Sensing& s, int sensor, SensorRows& rows) {
  const ModelView& m = s.m;
  const int mesh = m.sensor_objid[sensor], geom = m.sensor_refid[sensor];
  const int vertices = m.mesh_vertnum[mesh];
  const Touched touched = find_touched(s, sensor);
  if (touched.n == 0) return;
  const MovingGeom own = make_geom(s, geom);
  FieldValue* field = s.arena.take<FieldValue>(touched.n);

  // the mesh has a normal, or a normal and two tangents, per vertex
  const bool has_tangents = m.mesh_normalnum[mesh] == 3 * vertices;
  const float* vertex = m.mesh_vert + 3 * m.mesh_vertadr[mesh];
  const float* normal = m.mesh_normal + 3 * m.mesh_normaladr[mesh];

  for (int j = 0; j < vertices; j++) {
    Taxel taxel{own.frame.axes * load_floats(vertex + 3 * j),
                {},
                j,
                vertices,
                has_tangents ? rows.dim() / vertices : 1};
    for (int k = 0; k < 2 && has_tangents; k++) {
      taxel.along[k] = own.frame.axes * load_floats(normal + 9 * j + 3 * (k + 1));
    }

    // the field of each geom in world axes, and the depth in the deepest one
    double depth = 0;
    for (int g = 0; g < touched.n; g++) {
      const Frame& other = touched.geom[g].frame;
      const Vec3 arm = own.frame.position + taxel.arm - other.position;
      field[g] = distance_field(m, touched.geom[g].geom, transpose_mul(other.axes, arm));
      field[g].gradient = other.axes * field[g].gradient;
      depth = std::max(depth, -field[g].distance);
    }

    // tie: taxel on a surface
    if (!(depth > 0)) continue;

    // tie: taxel equally deep in two geoms
    int deepest = 0;
    for (int g = 0; g < touched.n; g++) deepest += field[g].distance == -depth;
    for (int g = 0; g < touched.n; g++) {
      const MovingGeom& other = touched.geom[g];
      if (field[g].distance == -depth) {
        add_depth(own, other, taxel, (1.0 / deepest) * field[g].gradient, rows);
      }
      if (field[g].distance < 0) add_speeds(own, other, taxel, rows);
    }
  }
}

}  // namespace mujacobian
