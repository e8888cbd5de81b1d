// The derivative of the generalized force J^T W of a wrench W that is fixed to the frame of a
// contact and acts between its two bodies. docs/derivations/constraints.md.
#pragma once

#include "contact/variation.h"
#include "layout/arena.h"
#include "layout/topology.h"
#include "layout/views.h"

namespace mujacobian {

// The dofs that move one or both bodies of a contact.
struct ContactDofs {
  int n;
  const int* dofs;             // increasing
  const unsigned char* moves;  // bit 0: body 0, bit 1: body 1
  int all_moves;               // the union of these bits
  const Motion* axis;          // of each dof, about the contact
  int body[2];
  Vec3 offset[2];  // from the reference point of each body's tree to the contact

  // the axes by component, (12, n): six rows for the dofs that move body 0, zero for others, then
  // the same for body 1
  int stride;
  const double* axes;

  // a positive motion of dof k moves body 1 away from body 0 by +1, or closer by -1; a dof that
  // moves both changes nothing
  double sign(int k) const { return moves[k] == 3 ? 0 : moves[k] == 2 ? 1 : -1; }
};

// Returns them. `before` may be those of another contact, whose chains serve again if its bodies
// are the same.
ContactDofs contact_dofs(const ModelView& m, const DataView& d, const ContactView& contact,
                         Arena& arena, const ContactDofs* before = nullptr);

// The same for any two bodies, with axes about the point p.
ContactDofs pair_dofs(const ModelView& m, const DataView& d, int body0, int body1, Vec3 p,
                      Arena& arena, const ContactDofs* before = nullptr);

// Derivative of the contact with dof k.
ContactVariation vary(const ContactGeometry& geometry, const ContactDofs& c, int k);

// Returns the dofs of c whose motion selects the twin of the contact, or does not select it. The
// axes of the other dofs are zero.
ContactDofs select_dofs(const ContactGeometry& geometry, const ContactDofs& c, bool twin,
                        Arena& arena);

// Calls visit(dofs, map) so that each dof is used with the map that its motion selects.
template <class Visit>
void visit_maps(const ContactGeometry& geometry, const ContactDofs& c, Arena& arena,
                Visit&& visit) {
  if (!geometry.twin) return visit(c, vary_units(geometry, c.all_moves));
  visit(select_dofs(geometry, c, false, arena), vary_units(geometry, c.all_moves));
  visit(select_dofs(geometry, c, true, arena), vary_units(twin_of(geometry), c.all_moves));
}

// Change of a wrench about the contact that is fixed to its frame.                       (ROW-5)
inline Force moved_wrench(Force wrench, const ContactVariation& v) {
  return {cross(v.turn, wrench.ang) + cross(v.position, wrench.lin), cross(v.turn, wrench.lin)};
}

// Adds linear functions of the motions of both bodies to `out`, (rows, n) with the stride of c: one
// value per dof. The coefficients are (rows, 12), with columns as in ContactMap.
void add_rows(const ContactDofs& c, const double (*coefficients)[ContactMap::kColumns], int rows,
              double* out);

// Adds d(J^T W)/dq to `out`, (n, n) with the stride of c, for a wrench on body 1 about the contact
// that turns with its frame.                                                              (ROW-5)
void turn_wrench(const ModelView& m, const ContactDofs& c, const ContactMap& map, Force wrench,
                 double* out, Arena& arena);

}  // namespace mujacobian
