// An element that cannot be differentiated exactly, and the reason. The core throws it if the
// element matters in the given state; `support` lists it without throwing. Python raises it as
// UnsupportedFeatureError.
#pragma once

#include <exception>
#include <string>

namespace mujacobian {

struct Unsupported : std::exception {
  std::string element, reason;
  int sensor;  // the sensor without a derivative; negative: the step itself has none
  Unsupported(std::string e, std::string r, int s = -1)
      : element(std::move(e)), reason(std::move(r)), sensor(s) {}
  const char* what() const noexcept override { return reason.c_str(); }
};

}  // namespace mujacobian
