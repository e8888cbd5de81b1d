// Actuator transmissions as paths: joints, tendons, sites, slider-cranks and adhesive bodies.
// docs/derivations/transmissions.md.
#pragma once

#include "contact/wrench.h"
#include "tree/path.h"

namespace mujacobian {

// Returns the path of an actuator with one output. Its moments include the gear, except on a
// tendon, where the path is that of the tendon. `tendon_paths` caches the paths of tendons (n < 0:
// not computed yet).
Path transmission_path(const ModelView& m, const DataView& d, int actuator, Path* tendon_paths,
                       Arena& arena);

// The contacts of an adhesive body, including contacts in the gap, and the dofs that move them.
struct AdhesiveContacts {
  int count;
  const ContactDofs* chain;
  const ContactGeometry* geometry;
  int n;
  const int *dofs, *local;  // the dofs, and their indices in this list
};
AdhesiveContacts adhesive_contacts(const ModelView& m, const DataView& d, int body, Arena& arena);

// The three outputs of an orientation servo, for the orientation of a frame relative to another
// one.
struct OrientationPath {
  Path axis[3];           // moments about the axes of the moving frame, all over the same dofs
  const double* tangent;  // (3, n): rotation of this frame relative to the other, in its own axes
};
OrientationPath orientation_path(const ModelView& m, const DataView& d, int actuator, Arena& arena);

// Returns the reason why the transmission is not supported, or null.
const char* transmission_refusal(const ModelView& m, int actuator);

}  // namespace mujacobian
