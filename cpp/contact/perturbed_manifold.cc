#include "contact/perturbed_manifold.h"

#include <algorithm>
#include <cmath>

#include "contact/polytope.h"
#include "layout/engine.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kAngle = 1e-3;  // rad, MuJoCo's

Mat3 rotation(Vec3 axis, double angle) {
  const Mat3 k = skew(axis);
  return identity3() + std::sin(angle) * k + (1 - std::cos(angle)) * (k * k);
}

// Returns the largest n . x over the points x of a geom.
double reach(const ModelView& m, const DataView& d, int id, Vec3 n) {
  const Geom g = load_geom(m, d, id);
  const double along = dot(n, g.axis()), middle = dot(n, g.position);
  switch (g.type) {
    case geom::kCapsule:
      return middle + g.size[0] + g.size[1] * std::abs(along);
    case geom::kCylinder:
      return middle + g.size[0] * norm(n - along * g.axis()) + g.size[1] * std::abs(along);
    default:
      return dot(n, Polytope(m, d, id).facing(n).point[0]);
  }
}

bool is_round(int type) { return type == geom::kSphere || type == geom::kEllipsoid; }

}  // namespace

PerturbedPoses::PerturbedPoses(const DataView& d, const int geom[2])
    : original_(d), room_(std::max(geom[0], geom[1]) + 1), poses_(12 * room_) {}

DataView PerturbedPoses::turn(const int geom[2], Vec3 about, const Mat3& by) {
  double *position = poses_.data(), *frame = position + 3 * room_;
  for (int s = 0; s < 2; s++) {
    const Mat3 r = s ? transposed(by) : by;
    const Vec3 p = load3(original_.geom_xpos + 3 * geom[s]);
    const Mat3 turned = r * load9(original_.geom_xmat + 9 * geom[s]);
    store3(position + 3 * geom[s], about + r * (p - about));
    for (int k = 0; k < 9; k++) frame[9 * geom[s] + k] = turned.m[k];
  }
  DataView d = original_;
  d.geom_xpos = position, d.geom_xmat = frame;
  return d;
}

bool identify_perturbed(const ModelView& m, const DataView& d, const ContactView& contact,
                        const ContactGeometry* first, const FindFeatures& find,
                        ContactGeometry& g) {
  const int* id = contact.geom.v;
  const bool legacy = m.opt.disableflags & disable::kNativeCCD;
  if (engine().version >= kMuJoCo317 && !legacy) return false;
  if (m.opt.disableflags & disable::kMultiCCD || !first) return false;
  if (first->geom[0] != id[0] || first->geom[1] != id[1]) return false;
  if (is_round(m.geom_type[id[0]]) || is_round(m.geom_type[id[1]])) return false;
  PerturbedPoses poses(d, id);
  for (const Vec3& axis : first->tangent) {
    for (double angle : {-kAngle, kAngle}) {
      const Mat3 turn = rotation(axis, angle);
      const DataView turned = poses.turn(id, first->position, turn);
      const Vec3 n = load3(contact.frame.v);
      const double separation = -reach(m, turned, id[1], -n) - reach(m, turned, id[0], n);
      if (!find(turned, separation, g)) continue;
      g.first = first;
      g.perturbation = turn;
      return true;
    }
  }
  return false;
}

}  // namespace mujacobian
