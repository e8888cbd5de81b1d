// Instruments at a site: gyro, velocimeter, accelerometer, magnetometer. Also the accelerations of
// other frames.
#include "layout/enums.h"
#include "sensor/frame.h"
#include "sensor/type.h"

namespace mujacobian {
namespace {

Frame site_frame(Sensing& s, int sensor) {
  return make_frame(s, object::kSite, s.m.sensor_objid[sensor]);
}

// The site's velocity in its own axes                                                    (SEN-7)
void sense_site_velocity(Sensing& s, int sensor, SensorRows& rows) {
  const bool linear = s.m.sensor_type[sensor] == sensor::kVelocimeter;
  const Frame site = site_frame(s, sensor);
  const Motion v = frame_velocity(s, site);
  for (int i = 0; i < site.n; i++) {
    Motion dq = frame_velocity_dq(s, site, i), dv = frame_velocity_dv(s, site, site.dofs[i]);
    Vec3 change = linear ? dq.lin : dq.ang;
    change += cross(linear ? v.lin : v.ang, site.turned[i]);
    rows.add_q(site.dofs[i], transpose_mul(site.axes, change));
    rows.add_v(site.dofs[i], transpose_mul(site.axes, linear ? dv.lin : dv.ang));
  }
}

// Linear or angular acceleration of a frame; `local`: in the axes of the frame            (SEN-8)
void sense_acceleration(Sensing& s, const Frame& frame, bool linear, bool local, SensorRows& rows) {
  if (frame.last < 0) return;  // a constant
  const MotionSweep& sweep = s.motion();
  const int body = frame.point.body;
  const Motion v = load_motion(s.d.cvel + 6 * body), a = sweep.acceleration[body];
  const Vec3 value = linear ? point_motion(s.d, sweep, frame.point).a : a.ang;
  auto turn = [&](Vec3 x) { return local ? transpose_mul(frame.axes, x) : x; };

  for (int i = 0; i < frame.n; i++) {
    const int dof = frame.dofs[i];
    Motion dv{}, da{};
    if (carries(s, frame, dof)) {
      const Motion axis = dof_axis(s.d, dof), axis_dot = load_motion(s.d.cdof_dot + 6 * dof);
      dv = velocity_dq(axis, axis_dot, v);
      da = acceleration_dq(axis, axis_dot, sweep.rates[dof], v, a);
    }
    Vec3 change = da.ang;
    if (linear) {
      change = point_motion_change(v, a, frame.point.offset, dv, da, frame.moved[i]).a;
    }
    if (local) change += cross(value, frame.turned[i]);
    rows.add_q(dof, turn(change));
  }
  for (int dof = frame.last; dof >= 0; dof = s.m.dof_parentid[dof]) {
    const Motion axis = dof_axis(s.d, dof);
    Vec3 dv = linear ? point_motion_dv(s.d, sweep, frame.point, dof).a
                     : acceleration_dv(axis, sweep.rates[dof], v).ang;
    rows.add_v(dof, turn(dv));
    rows.add_acceleration(turn(linear ? at_point(axis, frame.point.offset) : axis.ang), dof);
  }
}

// A constant field in the site's axes
void sense_field(Sensing& s, int sensor, SensorRows& rows) {
  const Frame site = site_frame(s, sensor);
  const Vec3 field = load3(s.m.opt.magnetic.v);
  for (int i = 0; i < site.n; i++) {
    rows.add_q(site.dofs[i], transpose_mul(site.axes, cross(field, site.turned[i])));
  }
}

}  // namespace

void sense_inertial(Sensing& s, int sensor, SensorRows& rows) {
  const int type = s.m.sensor_type[sensor];
  switch (type) {
    case sensor::kGyro:
    case sensor::kVelocimeter:
      return sense_site_velocity(s, sensor, rows);
    case sensor::kAccelerometer:
      return sense_acceleration(s, site_frame(s, sensor), true, true, rows);
    case sensor::kMagnetometer:
      return sense_field(s, sensor, rows);
    default: {
      const Frame frame = make_frame(s, s.m.sensor_objtype[sensor], s.m.sensor_objid[sensor]);
      return sense_acceleration(s, frame, type == sensor::kFrameLinAcc, false, rows);
    }
  }
}

}  // namespace mujacobian
