// Second derivatives of sensors, contracted with their cotangents.
// docs/derivations/second_order.md.
#pragma once

#include "second_order/forms.h"

namespace mujacobian {

// Returns why the second derivative of a sensor that reads the solution of the constraint solver is
// not supported with the options of the model, if a constraint acts, or null.
const char* solution_refusal(const ModelView& m, int sensor);

// Returns whether a value of the sensor has a cotangent, in the vector `sensors` (nsensordata),
// that is not zero.
bool has_cotangent(const ModelView& m, int sensor, const double* sensors);

// Returns, per sensor, whether it has a cotangent; null if none has. `sensors` may be null.
const unsigned char* weighted_sensors(const ModelView& m, const double* sensors, Arena& arena);

// Why second derivatives of force and torque sensors are not supported in some states.
inline constexpr const char* kTendonOfSubtree =
    "second derivatives of spatial tendons that leave its subtree";

// Returns why second derivatives of the sensor are not supported, null if they are.
const char* sensor_curvature_refusal(const ModelView& m, int sensor);

// Adds the second derivatives of the sensors at fixed acceleration, contracted with their
// cotangents, to the forms and to the lists `cross` and `sliding`, and the derivative of the
// contraction with respect to the acceleration to `through_acceleration` (nv). `d` is solved if
// sensors read the solution. Throws Unsupported if a sensor has no second derivative in this state.
void add_sensor_curvatures(const ModelView& m, const DataView& d, const StepDifferential& s,
                           const double* sensors, const StepForms& forms,
                           double* through_acceleration, const CrossTerm*& cross,
                           const SlidingRows*& sliding, Arena& arena);

}  // namespace mujacobian
