#include "contact/center_pair.h"

#include <algorithm>

#include "contact/kinematics.h"

namespace mujacobian {
namespace {

// Both centers slide along lines: a_s . span = 0 for both, with moved_s += a_s t_s.        (CON-4)
template <class S>
void slide_both(const CenterPairT<S>& c, const MotionT<S> motion[2], Vec3T<S> moved[2]) {
  Vec3T<S> span = c.center[1] - c.center[0];
  Vec3T<S> u = moved[1] - moved[0];
  const S b = dot(c.axis[0], c.axis[1]);
  const S r0 = dot(cross(motion[0].ang, c.axis[0]), span) + dot(c.axis[0], u);
  const S r1 = dot(cross(motion[1].ang, c.axis[1]), span) + dot(c.axis[1], u);
  const Vec3T<S> normal = cross(c.axis[0], c.axis[1]);
  const S det = dot(normal, normal);  // 1 - b^2, but accurate for small angles
  moved[0] += ((r0 - b * r1) / det) * c.axis[0];
  moved[1] += ((b * r0 - r1) / det) * c.axis[1];
}

// Center s slides along a line so that a . (other - center) = 0, or by a share of that.    (CON-3)
template <class S>
void slide_on_line(const CenterPairT<S>& c, int s, const MotionT<S> motion[2], double share,
                   Vec3T<S> moved[2]) {
  Vec3T<S> to_other = c.center[1 - s] - c.center[s], a = c.axis[s];
  const S t = dot(a, moved[1 - s] - moved[s]) + dot(cross(motion[s].ang, a), to_other);
  moved[s] += (share * t) * a;
}

// Center s slides around a circle so that its tangent t = a x e stays perpendicular to the vector
// from the middle to the other center.                                                     (CON-5)
template <class S>
void slide_on_circle(const CenterPairT<S>& c, int s, Vec3T<S> from, const MotionT<S> motion[2],
                     Vec3T<S> moved[2]) {
  Vec3T<S> arm = c.center[s] - c.middle[s];
  const S radius = norm(arm);
  Vec3T<S> t = cross(c.axis[s], (1 / radius) * arm);
  Vec3T<S> middle = velocity(motion[s], from, c.middle[s]);
  Vec3T<S> reach = c.center[1 - s] - c.middle[s];
  const S lateral = dot(t, moved[1 - s] - middle) + dot(cross(motion[s].ang, t), reach);
  const S planar = dot((1 / radius) * arm, reach);
  moved[s] += (radius * lateral / planar) * t;
}

}  // namespace

template <class S>
void vary_centers(const CenterPairT<S>& c, Vec3T<S> from, const MotionT<S> motion[2],
                  Vec3T<S> moved[2]) {
  for (int s = 0; s < 2; s++) {
    if (c.slide[s] != CenterSlide::kSegment) moved[s] = velocity(motion[s], from, c.center[s]);
  }
  if (c.slide[0] == CenterSlide::kLine && c.slide[1] == CenterSlide::kLine) {
    return slide_both(c, motion, moved);
  }
  for (int s = 0; s < 2; s++) {
    switch (c.slide[s]) {
      case CenterSlide::kFixed:
      case CenterSlide::kSegment:
        break;
      case CenterSlide::kLine:
        slide_on_line(c, s, motion, 1, moved);
        break;
      case CenterSlide::kMiddle:
        slide_on_line(c, s, motion, c.share, moved);
        break;
      case CenterSlide::kCircle:
        slide_on_circle(c, s, from, motion, moved);
        break;
    }
  }
}

template void vary_centers(const CenterPair&, Vec3, const Motion[2], Vec3[2]);
template void vary_centers(const CenterPairT<Packet>&, Vec3T<Packet>, const MotionT<Packet>[2],
                           Vec3T<Packet>[2]);
template void vary_centers(const CenterPairT<ContactDual>&, Vec3T<ContactDual>,
                           const MotionT<ContactDual>[2], Vec3T<ContactDual>[2]);

void nearest_points(Vec3 a, Vec3 b, Vec3 c, Vec3 d, double& s, double& t) {
  Vec3 u = b - a, v = d - c, w = c - a;
  double uu = dot(u, u), uv = dot(u, v), vv = dot(v, v), det = uu * vv - uv * uv;
  s = det > 0 ? std::clamp((dot(u, w) * vv - dot(v, w) * uv) / det, 0.0, 1.0) : 0;
  t = (s * uv - dot(v, w)) / vv;
  if (t >= 0 && t <= 1) return;
  t = t < 0 ? 0 : 1;
  s = std::clamp((dot(u, w) + t * uv) / uu, 0.0, 1.0);
}

}  // namespace mujacobian
