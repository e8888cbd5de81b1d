#include "primitives.h"

NB_MODULE(primitives, m) {
  mujacobian::bind_spatial(m);
  mujacobian::bind_number(m);
  mujacobian::bind_linear(m);
  mujacobian::bind_quadratic(m);
  mujacobian::bind_contact(m);
}
