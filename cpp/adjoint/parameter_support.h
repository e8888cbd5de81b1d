// Lists what prevents derivatives with respect to parameters.
#pragma once

#include <vector>

#include "adjoint/parameter.h"
#include "layout/unsupported.h"

namespace mujacobian {

// Returns the elements of the model because of which derivatives with respect to the parameters are
// not supported, with the reasons, each once. With `order` 2, second derivatives count, too, and
// elements that prevent them only in some states, except for contacts.
std::vector<Unsupported> list_parameters(const ModelView& m, const ParameterList& params,
                                         int order);

}  // namespace mujacobian
