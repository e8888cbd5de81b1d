#include "second_order/sensor.h"

namespace mujacobian {

bool has_cotangent(const ModelView& m, int sensor, const double* sensors) {
  for (int k = m.sensor_adr[sensor]; k < m.sensor_adr[sensor] + m.sensor_dim[sensor]; k++) {
    if (sensors[k] != 0) return true;
  }
  return false;
}

const char* sensor_curvature_refusal(const ModelView&, int) {
  return "second derivatives of sensors";
}

}  // namespace mujacobian
