#include "actuation/site_pair.h"

#include "spatial/quaternion.h"
#include "spatial/rotation.h"

namespace mujacobian {

Force site_wrench(const ModelView& m, const DataView& d, int site, const double* gear) {
  const Mat3 frame = load9(d.site_xmat + 9 * site);
  const Vec3 force = frame * load3(gear), torque = frame * load3(gear + 3);
  const Point at = make_point(m, d, m.site_bodyid[site], d.site_xpos + 3 * site);
  return {torque + cross(at.offset, force), force};
}

SitePair site_pair(const ModelView& m, const DataView& d, int first, int second, Arena& arena) {
  SitePair p{{first, second}, {}, 0, nullptr, nullptr};
  for (int s = 0; s < 2; s++) {
    p.point[s] = make_point(m, d, m.site_bodyid[p.site[s]], d.site_xpos + 3 * p.site[s]);
  }
  int* dofs = arena.take<int>(m.nv);
  unsigned char* moves = arena.take<unsigned char>(m.nv);
  p.n = merge_chains(m, p.point[0].body, p.point[1].body, dofs, moves);
  p.dofs = dofs, p.moves = moves;
  return p;
}

Vec3 relative_angle(const ModelView& m, const DataView& d, const SitePair& p) {
  double q[2][4];
  for (int s = 0; s < 2; s++) {
    store_quaternion(q[s], load_quaternion(d.xquat + 4 * p.point[s].body) *
                               load_quaternion(m.site_quat + 4 * p.site[s]));
  }
  return quaternion_difference(q[0], q[1]);
}

}  // namespace mujacobian
