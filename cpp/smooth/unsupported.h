// What cannot be differentiated exactly: the element's name and the reason. Thrown when the element
// matters in the state at hand, listed by `support` otherwise.
#pragma once

#include <string>

namespace mujacobian {

struct Unsupported {
  std::string element, reason;
};

}  // namespace mujacobian
