#include "contact/recollision.h"

#include <cmath>

#include "contact/pair_table.h"
#include "contact/standing_cylinder.h"
#include "layout/engine.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

// Length below which MuJoCo ignores a given axis, and the component of a normal above which its
// first tangent follows the z axis instead of the y axis.
constexpr double kNoAxis = 0.5, kAlongY = 0.5;

// Computes the frame of a contact like MuJoCo: the tangent of the collision function, or an axis of
// the world, is made perpendicular to the normal.
void make_frame(const PreContact& found, double frame[9]) {
  const Vec3 normal = unit(load3(found.normal));
  Vec3 along = load3(found.tangent);
  if (norm(along) < kNoAxis) {
    along = std::abs(normal.y) < kAlongY ? Vec3{0, 1, 0} : Vec3{0, 0, 1};
  }
  const Vec3 tangent = unit(along - dot(normal, along) * normal);
  store3(frame, normal);
  store3(frame + 3, tangent);
  store3(frame + 6, cross(normal, tangent));
}

bool has_margin(const ModelView& m, int geom) {
  return m.geom_margin[geom] != 0 || m.geom_gap[geom] != 0;
}

// Whether the geoms of a contact collide with a margin of zero.
bool has_no_margins(const ModelView& m, const ContactView& c) {
  return m.npair == 0 && !(m.opt.enableflags & enable::kOverride) && c.includemargin == 0 &&
         !has_margin(m, c.geom.v[0]) && !has_margin(m, c.geom.v[1]);
}

// Replaces contacts first .. last-1, of one pair of geoms. Returns false if their number changes,
// or if one of them begins or ceases to act.
bool replace_pair(const ModelView& m, const DataView& d, int first, int last) {
  const ContactView c = view_contact(d, first);
  PreContact found[kMaxPairContacts];
  void* data = const_cast<void*>(d.address);
  if (collide_pair(m, data, c.geom.v[0], c.geom.v[1], 0, found) != last - first) return false;
  for (int k = first; k < last; k++) {
    const PreContact& at = found[k - first];
    if ((at.dist >= 0) != (view_contact(d, k).dist >= 0)) return false;
    double frame[9];
    make_frame(at, frame);
    write_contact(d, k, at.dist, at.pos, frame);
  }
  return true;
}

bool replace_pairs(const ModelView& m, const DataView& d) {
  for (int first = 0, last; first < d.ncon; first = last) {
    const ContactView c = view_contact(d, first);
    const int* geoms = c.geom.v;
    for (last = first + 1; last < d.ncon && is_same_pair(geoms, contact_geoms(d, last));) last++;
    if (!is_iterative(m, c)) continue;
    if (!has_no_margins(m, c) || !replace_pair(m, d, first, last)) return false;
  }
  return true;
}

}  // namespace

void find_contacts_again(const ModelView& m, DataView& d) {
  if (!replace_pairs(m, d)) {
    void* data = const_cast<void*>(d.address);
    collide(m.address, data);
    d = view_data(data);
  }
  place_standing_cylinders(m, d);
}

}  // namespace mujacobian
