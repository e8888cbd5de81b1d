// Second derivatives of sensors, contracted with their cotangents.
// docs/derivations/second_order.md.
#pragma once

#include "layout/views.h"

namespace mujacobian {

// Returns whether a value of the sensor has a cotangent, in the vector `sensors` (nsensordata),
// that is not zero.
bool has_cotangent(const ModelView& m, int sensor, const double* sensors);

// Returns why second derivatives of the sensor are not supported, null if they are.
const char* sensor_curvature_refusal(const ModelView& m, int sensor);

}  // namespace mujacobian
