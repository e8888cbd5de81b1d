// What cannot be differentiated exactly: the element's name and the reason. Thrown when the element
// matters in the state at hand, listed by `support` otherwise.
#pragma once

#include <exception>
#include <string>

namespace mujacobian {

struct Unsupported : std::exception {
  std::string element, reason;
  Unsupported(std::string e, std::string r) : element(std::move(e)), reason(std::move(r)) {}
  const char* what() const noexcept override { return reason.c_str(); }
};

}  // namespace mujacobian
