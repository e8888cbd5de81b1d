// Places, orientations and sizes of geoms as parameters.
#include "adjoint/column.h"
#include "constraint/shift.h"
#include "layout/engine.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// Adds the change of a contact's rows by its own motion, while the bodies do not move. (PAR-13)
void add_shifted(const ModelView& m, const DataView& d, const Block& b, const BlockMotion& motion,
                 const ContactVariation& variation, double* column) {
  const ContactChange change = shift_contact(m, d, b, motion, variation);
  const ContactDofs& c = *b.chain;
  const Force turned = moved_wrench(change.wrench, variation);
  for (int k = 0; k < b.n; k++) {
    double sum = 0;
    for (int r = 0; r < b.count; r++) {
      double df = b.force[r] * change.dlogD;
      for (int t = 0; t < b.count; t++) df -= b.hessian[r * b.count + t] * change.rho[t];
      sum += b.J[r * b.stride + k] * df;
    }
    column[c.dofs[k]] += sum + c.sign(k) * dot(c.axis[k], turned);
  }
}

// How geom `side` of the contact moves it with a unit of the parameter.
ContactVariation geom_variation(const ModelView& m, const DataView& d, const Parameter& p,
                                const Block& b, int side) {
  const ContactGeometry& g = *b.geometry;
  const Vec3 e = unit3(p.component);
  Motion moved[2] = {};
  if (p.kind == Parameter::kGeomSize) {
    const auto grown = grow(g, load_geom(m, d, p.id), side, p.component);
    if (!grown) {
      throw Unsupported(contact_name(m, b.contact), "sizes of its geoms as parameters");
    }
    return *grown;
  }
  if (p.kind == Parameter::kGeomPosition) {
    moved[side].lin = load9(d.xmat + 9 * m.geom_bodyid[p.id]) * e;
  } else {
    const Vec3 axis = load9(d.geom_xmat + 9 * p.id) * e;
    moved[side] = {axis, cross(axis, g.position - load3(d.geom_xpos + 3 * p.id))};
  }
  return vary(g, moved);
}

}  // namespace

void add_geom(const ModelView& m, const DataView& d, const StepDifferential& s, const Parameter& p,
              const Column& column, Arena& arena) {
  const Blocks& blocks = s.forward.blocks;
  const BlockMotion motion = block_motion(m, d, blocks, s.forward.solved, arena);
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (!b.geometry || !b.active) continue;
    for (int side = 0; side < 2; side++) {
      if (b.contact.geom.v[side] != p.id) continue;
      if (b.idle) {
        throw Unsupported(contact_name(m, b.contact),
                          "geoms as parameters of a contact that cannot push its bodies");
      }
      add_shifted(m, d, b, motion, geom_variation(m, d, p, b, side), column.early);
    }
  }
}

}  // namespace mujacobian
