#include "layout/enums.h"
#include "sensor/type.h"
#include "spatial/quaternion.h"

namespace mujacobian {

// Positions and velocities of joints. MuJoCo reports the normalized quaternion of a ball. With the
// tangent w in the frame of the body, d quat = quat (0, w) / 2.                           (SEN-1)
void sense_joint(Sensing& s, int sensor, SensorRows& rows) {
  const ModelView& m = s.m;
  const DataView& d = s.d;
  const int joint = m.sensor_objid[sensor], dof = m.jnt_dofadr[joint];
  switch (m.sensor_type[sensor]) {
    case sensor::kJointPos:
      rows.q(0, dof) = 1;
      break;
    case sensor::kJointVel:
      rows.v(0, dof) = 1;
      break;
    case sensor::kBallAngVel:
      for (int r = 0; r < 3; r++) rows.v(r, dof + r) = 1;
      break;
    case sensor::kBallQuat: {
      const Quaternion q = normalized(load_quaternion(d.qpos + m.jnt_qposadr[joint]));
      for (int k = 0; k < 3; k++) {
        double change[4];
        store_quaternion(change,
                         q * Quaternion{0, {0.5 * (k == 0), 0.5 * (k == 1), 0.5 * (k == 2)}});
        for (int r = 0; r < 4; r++) rows.q(r, dof + k) = change[r];
      }
      break;
    }
  }
}

}  // namespace mujacobian
