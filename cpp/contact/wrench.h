// A wrench that is fixed to the frame of a contact and acts between its two bodies: how the
// generalized force J^T W changes with the configuration. docs/derivations/constraints.md.
#pragma once

#include "contact/geometry.h"
#include "layout/arena.h"
#include "layout/topology.h"

namespace mujacobian {

// The dofs that move one or both bodies of a contact.
struct ContactDofs {
  int n;
  const int* dofs;             // increasing
  const unsigned char* moves;  // bit 0: body 0, bit 1: body 1
  int all_moves;               // the bits of any dof
  const Motion* axis;          // about the contact
  int body[2];
  Vec3 offset[2];  // of the contact from the reference point of each body's tree

  // the axes by component, (12, n): six rows for the dofs that move body 0, zero for others, then
  // the same for body 1
  int stride;
  const double* axes;

  // a positive motion of dof k moves body 1 away from body 0 by +1, or closer by -1; a dof that
  // moves both changes nothing
  double sign(int k) const { return moves[k] == 3 ? 0 : moves[k] == 2 ? 1 : -1; }
};

ContactDofs contact_dofs(const ModelView& m, const DataView& d, const ContactView& contact,
                         Arena& arena);

// How the contact moves with dof k.
ContactVariation vary(const ContactGeometry& geometry, const ContactDofs& c, int k);

// The dofs among those of c whose motion selects the twin of the contact, or does not; the others
// do not move anything.
ContactDofs select_dofs(const ContactGeometry& geometry, const ContactDofs& c, bool twin,
                        Arena& arena);

// Calls visit(dofs, map) so that each dof meets the map of the features that its motion selects.
template <class Visit>
void visit_maps(const ContactGeometry& geometry, const ContactDofs& c, Arena& arena,
                Visit&& visit) {
  if (!geometry.has_twin) return visit(c, vary_units(geometry, c.all_moves));
  visit(select_dofs(geometry, c, false, arena), vary_units(geometry, c.all_moves));
  visit(select_dofs(geometry, c, true, arena), vary_units(twin_of(geometry), c.all_moves));
}

// Change of a wrench about the contact that is fixed to its frame.                       (ROW-5)
inline Force moved_wrench(Force wrench, const ContactVariation& v) {
  return {cross(v.turn, wrench.ang) + cross(v.position, wrench.lin), cross(v.turn, wrench.lin)};
}

// Add to `out`, (rows, n) with the stride of c, for every dof the values of linear functions of the
// motions of both bodies: their coefficients are (rows, 12), columns as in ContactMap.
void add_rows(const ContactDofs& c, const double (*coefficients)[ContactMap::kColumns], int rows,
              double* out);

// Add to `out` d(J^T W)/dq, (n, n) with the stride of c, for a wrench on body 1 about the contact
// that turns with its frame.                                                              (ROW-5)
void turn_wrench(const ModelView& m, const ContactDofs& c, const ContactMap& map, Force wrench,
                 double* out, Arena& arena);

}  // namespace mujacobian
