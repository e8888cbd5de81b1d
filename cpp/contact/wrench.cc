#include "contact/wrench.h"

#include "spatial/lanes.h"

namespace mujacobian {
namespace {

// Wrench changes by component, (6, n).
struct Wrenches {
  double* p;
  int stride;
  void put(int k, Force f) const {
    double* q = p + k;
    q[0] = f.ang.x, q[stride] = f.ang.y, q[2 * stride] = f.ang.z;
    q[3 * stride] = f.lin.x, q[4 * stride] = f.lin.y, q[5 * stride] = f.lin.z;
  }
  // out += axis . (all wrenches)
  void project(Motion axis, double* out) const {
    const double a[6] = {axis.ang.x, axis.ang.y, axis.ang.z, axis.lin.x, axis.lin.y, axis.lin.z};
    for (int k = 0; k < stride; k += kLanes) {
      Lanes sum = load_lanes(out + k);
      for (int c = 0; c < 6; c++) sum += broadcast(a[c]) * load_lanes(p + c * stride + k);
      store_lanes(out + k, sum);
    }
  }
};

}  // namespace

ContactDofs contact_dofs(const ModelView& m, const DataView& d, const ContactView& contact,
                         Arena& arena) {
  ContactDofs c;
  Vec3 p = load3(contact.pos.v);
  for (int side = 0; side < 2; side++) {
    c.body[side] = m.geom_bodyid[contact.geom.v[side]];
    c.offset[side] = p - load3(d.subtree_com + 3 * m.body_rootid[c.body[side]]);
  }
  int* dofs = arena.take<int>(m.nv);
  unsigned char* moves = arena.take<unsigned char>(m.nv);
  c.n = merge_chains(m, c.body[0], c.body[1], dofs, moves);
  Motion* axis = arena.take<Motion>(c.n);
  for (int k = 0; k < c.n; k++) {
    // bodies moved by one dof are in one tree and have one reference point
    axis[k] = about(load_motion(d.cdof + 6 * dofs[k]), c.offset[moves[k] >> 1]);
  }
  c.dofs = dofs, c.moves = moves, c.axis = axis;
  return c;
}

ContactVariation vary(const ContactGeometry& geometry, const ContactDofs& c, int k) {
  Motion moved[2] = {};
  for (int side = 0; side < 2; side++) {
    if (c.moves[k] >> side & 1) moved[side] = c.axis[k];
  }
  return vary(geometry, moved);
}

void turn_wrench(const ModelView& m, const ContactDofs& c, const ContactVariation* variation,
                 Force wrench, int stride, double* out, Arena& arena) {
  const Wrenches turned{arena.zeros<double>(6 * stride), stride};
  Force* carried = arena.take<Force>(c.n);
  for (int k = 0; k < c.n; k++) {
    turned.put(k, moved_wrench(wrench, variation[k]));
    carried[k] = cross(c.axis[k], wrench);
  }

  // rows of dofs that move one body; where a column carries that body and the row's axis, only what
  // the wrench changes beyond being carried along counts
  for (int j = 0; j < c.n; j++) {
    if (c.moves[j] == 3) continue;
    double* row = out + j * stride;
    const Motion axis = c.sign(j) * c.axis[j];
    turned.project(axis, row);
    for (int k = 0; k < c.n; k++) {
      bool with = c.moves[k] & c.moves[j] && moves_axis(m, c.dofs[k], c.dofs[j]);
      if (with) row[k] -= dot(axis, carried[k]);
    }
  }
}

}  // namespace mujacobian
