// Checks whether models, states and sensors are supported.
#pragma once

#include <vector>

#include "layout/unsupported.h"
#include "layout/views.h"

namespace mujacobian {

// Returns all elements of the model that are not supported in any state, with the reasons.
std::vector<Unsupported> list_unsupported(const ModelView& m);

// The user callbacks whose derivatives the caller adds.
struct KnownCallbacks {
  bool control = false, passive = false;  // mjcb_control, mjcb_passive
};

// Throws Unsupported if A and B of this model cannot be exact. Called before mj_forward.
void require_model(const ModelView& m, KnownCallbacks known = {});

// Returns whether the model has an actuator or, with `sensors`, a sensor whose history couples
// several steps.
bool has_histories(const ModelView& m, bool sensors);

// Throws Unsupported if there is such an actuator, or such a sensor that is wanted. One step has a
// derivative, in which the history is constant.
void require_no_history(const ModelView& m, bool sensors, const unsigned char* wanted = nullptr);

// Throws Unsupported if histories of the sensors cannot be open.
void require_open_histories(const ModelView& m);

// Throws std::domain_error with the name of the field if MuJoCo cannot step this state.
void require_state(const ModelView& m, const DataView& d);

// Both checks for inverse dynamics at the qacc in `d`.
void require_inverse(const ModelView& m, const DataView& d);

// Throws Unsupported if a contact without constraint rows exerts a force (adhesion across a gap).
void require_rows(const ModelView& m, const DataView& d);

// Throws Unsupported with the name of the first sensor that is wanted and not supported. `wanted`
// is (nsensor); null means all sensors.
void require_sensors(const ModelView& m, const unsigned char* wanted = nullptr);

}  // namespace mujacobian
