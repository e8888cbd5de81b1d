#include "tree/composite.h"

namespace mujacobian {

Mat3 inertia_rate(Inertia inertia, Motion v, Vec3 l) {
  const double* i = inertia.i;
  // columns of [w]x J; with -J [w]x, its symmetric part is doubled
  Vec3 x = cross(v.ang, {i[0], i[3], i[4]});
  Vec3 y = cross(v.ang, {i[3], i[1], i[5]});
  Vec3 z = cross(v.ang, {i[4], i[5], i[2]});
  // 2 (u . c) 1 - u c^T - c u^T
  Vec3 u = v.lin, c = inertia.moment();
  double ux = u.x * c.x, uy = u.y * c.y, uz = u.z * c.z;
  double xx = 2 * (x.x + uy + uz), yy = 2 * (y.y + ux + uz), zz = 2 * (z.z + ux + uy);
  double xy = x.y + y.x - u.x * c.y - c.x * u.y;
  double xz = x.z + z.x - u.x * c.z - c.x * u.z;
  double yz = y.z + z.y - u.y * c.z - c.y * u.z;
  return {{xx, xy + l.z, xz - l.y, xy - l.z, yy, yz + l.x, xz + l.y, yz - l.x, zz}};
}

Composite* composites(const ModelView& m, const DataView& d, const Motion* acceleration,
                      Arena& arena) {
  // each body alone
  Composite* composite = arena.take<Composite>(m.nbody);
  for (int b = 1; b < m.nbody; b++) {
    Inertia inertia{d.cinert + 10 * b};
    Motion v = load_motion(d.cvel + 6 * b);
    Force momentum = inertia * v;
    composite[b].force = inertia * acceleration[b] + cross(v, momentum);
    composite[b].rate = inertia_rate(inertia, v, momentum.ang);
    composite[b].momentum = momentum.lin;
  }
  // add the children to their parents
  for (int b = m.nbody - 1; b > 0; b--) {
    int parent = m.body_parentid[b];
    if (parent == 0) continue;
    composite[parent].force += composite[b].force;
    composite[parent].rate = composite[parent].rate + composite[b].rate;
    composite[parent].momentum += composite[b].momentum;
  }
  return composite;
}

}  // namespace mujacobian
