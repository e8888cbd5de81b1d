// VirtualDofs: dofs that never move. A frame of the model that can be changed (that of a mocap
// body, of a body, of a joint) carries everything below it along, as a dof would. So the model is
// extended by one dof for each way a frame can move, at rest and with infinite inertia, and
// everything that is known about dofs is known about frames. docs/derivations/parameters.md.
#pragma once

#include "layout/arena.h"
#include "layout/views.h"
#include "spatial/vector.h"

namespace mujacobian {

// A motion, about the reference point of the body's tree, that carries the body and all below it;
// the dofs of the body itself are carried too if it comes before them.
struct VirtualDof {
  int body;
  bool before;
  Motion axis;
};

// Views of the extended model.
struct Extension {
  ModelView m;
  DataView d;
  const int* real;         // what number each dof of the model has in the extended one
  const int* virtual_dof;  // the dof that each virtual dof is
};

Extension extend(const ModelView& m, const DataView& d, const VirtualDof* virtual_dofs, int count,
                 Arena& arena);

// `from`, a vector over the dofs of the model, over those of the extended one: zero for virtual
// dofs.
double* extended(const ModelView& m, const Extension& e, const double* from, Arena& arena);

}  // namespace mujacobian
