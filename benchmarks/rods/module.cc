// The core of mujacobian.rods once more, with the coordinates of the file that it is linked with.
#include "bindings/rods.h"

NB_MODULE(RODS_MODULE, module) { mujacobian::bind_rods(module); }
