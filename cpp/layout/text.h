// Numbers in messages. Small and large numbers are in scientific notation.
#pragma once

#include <cstdio>
#include <string>

namespace mujacobian {

inline std::string in_words(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

}  // namespace mujacobian
