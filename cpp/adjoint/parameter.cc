#include "adjoint/parameter.h"

namespace mujacobian {

ParameterColumns parameter_columns(const ModelView&, const DataView&, const StepDifferential&,
                                   const ParameterList&, Arena&) {
  return {0, nullptr, nullptr};
}

void require_parameters(const ModelView&, const ParameterList&, const double*) {}

}  // namespace mujacobian
