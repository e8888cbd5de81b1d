// Virtual dofs for frame parameters. A change of the frame of a body, joint or mocap body moves the
// subtree below it exactly as an extra dof would. The model is therefore extended by one dof for
// each direction of a frame, with zero velocity and infinite inertia. All derivatives with respect
// to dofs then hold for frames, too. docs/derivations/parameters.md.
#pragma once

#include "layout/arena.h"
#include "layout/views.h"
#include "spatial/vector.h"

namespace mujacobian {

// A motion of a body and its subtree, about the reference point of the body's tree. If it comes
// before the dofs of the body, it moves their axes, too.
struct VirtualDof {
  int body;
  bool before;
  Motion axis;
};

// Views of the extended model.
struct Extension {
  ModelView m;
  DataView d;
  const int* real;         // number of each dof of the model in the extended model
  const int* virtual_dof;  // number of each virtual dof in the extended model
};

Extension extend(const ModelView& m, const DataView& d, const VirtualDof* virtual_dofs, int count,
                 Arena& arena);

// Returns a vector over the dofs of the model as a vector over the dofs of the extended model.
// Virtual dofs are zero.
double* extended(const ModelView& m, const Extension& e, const double* from, Arena& arena);

}  // namespace mujacobian
