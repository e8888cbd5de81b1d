// What is differentiated exactly and what is refused by name.
#pragma once

#include <vector>

#include "layout/unsupported.h"
#include "layout/views.h"

namespace mujacobian {

// Everything in the model that is not covered, whatever the state.
std::vector<Unsupported> list_unsupported(const ModelView& m);

// Throw Unsupported if A and B of this model cannot be exact; called before mj_forward.
void require_model(const ModelView& m);

// Throw std::domain_error that names the field if the state is not one that MuJoCo can step.
void require_state(const ModelView& m, const DataView& d);

// The same two for inverse dynamics at the qacc in `d`.
void require_inverse(const ModelView& m, const DataView& d);

// Throw Unsupported if something about the active constraint rows as a whole is not covered.
void require_rows(const ModelView& m, const DataView& d);

// Throw Unsupported naming the first sensor that is wanted, (nsensor) or null: all, and not
// covered.
void require_sensors(const ModelView& m, const unsigned char* wanted = nullptr);

}  // namespace mujacobian
