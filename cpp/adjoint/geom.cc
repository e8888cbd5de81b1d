// Places, orientations and sizes of geoms as parameters.
#include "adjoint/column.h"
#include "constraint/shift.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
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
      throw Unsupported(contact_name(m, b.contact),
                        "sizes of its geoms are not supported as parameters");
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

void add_geom(ColumnContext& x, const Parameter& p, const Column& column) {
  const ModelView& m = x.m;
  const Blocks& blocks = x.s.forward.blocks;
  const BlockMotion motion = block_motion(m, x.d, blocks, x.s.forward.solved, x.arena);
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (!b.geometry || !b.active) continue;
    for (int side = 0; side < 2; side++) {
      if (b.contact.geom.v[side] != p.id) continue;
      if (b.idle) {
        throw Unsupported(contact_name(m, b.contact),
                          "geoms as parameters of a contact that cannot push its bodies");
      }
      add_shifted(m, x.d, b, motion, geom_variation(m, x.d, p, b, side), column.early);
    }
  }
}

// Fluids, tendons that wrap, and adhesion depend on geoms, too.
void require_geom(const ModelView& m, const Parameter& p) {
  require_contact(m, p);
  const int type = m.geom_type[p.id];
  const bool sized = type == geom::kSphere || type == geom::kCapsule || type == geom::kCylinder ||
                     type == geom::kBox;
  if (p.kind == Parameter::kGeomSize && !sized) {
    throw Unsupported(
        element_name(m, object::kGeom, p.id),
        "only sizes of spheres, capsules, cylinders and boxes are supported as parameters");
  }
  if (m.opt.density > 0 || m.opt.viscosity > 0) {
    throw Unsupported(element_name(m, object::kGeom, p.id),
                      "its shape is not supported as a parameter in a fluid");
  }
  for (int t = 0; t < m.ntendon; t++) {
    if (!tendon_wraps(m, t)) continue;
    throw Unsupported(element_name(m, object::kTendon, t),
                      "it wraps, so that poses and sizes of geoms are not supported as parameters");
  }
  for (int a = 0; a < m.nactuator; a++) {
    if (m.actuator_trntype[a] != transmission::kBody) continue;
    throw Unsupported(
        element_name(m, object::kActuator, a),
        "it acts on contacts, so that poses and sizes of geoms are not supported as parameters");
  }
}

}  // namespace mujacobian
