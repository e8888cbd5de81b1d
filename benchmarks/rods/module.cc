// A second core of mujacobian.rods, with the coordinates of the chart.cc that it is linked with.
#include "bindings/rods.h"

NB_MODULE(RODS_MODULE, module) { mujacobian::bind_rods(module); }
