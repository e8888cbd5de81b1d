#include "forces/tendon_curvature.h"

#include "forces/link.h"
#include "forces/tendon.h"
#include "forces/wrap.h"
#include "tree/relative.h"
#include "tree/velocity.h"

namespace mujacobian {
namespace {

// A straight link: the distance of its second end in the frame of the first body.        (HES-44)
WrapCurvature curve_segment(Vec3 span, Vec3 velocity) {
  const double length = norm(span);
  const Vec3 direction = (1 / length) * span;
  const RootCurvature root = root_curvature(identity3(), length, direction, velocity);
  WrapCurvature c{};
  c.length.by_position[0] = c.rate.by_velocity[0] = direction;
  c.length.positions[0][0] = c.rate.mixed[0][0] = root.root;
  c.rate.by_position[0] = root.root * velocity;
  c.rate.positions[0][0] = root.slope;
  return c;
}

}  // namespace

PathSource tendon_source(const ModelView& m, int tendon) {
  return {tendon_is_fixed(m, tendon) ? -1 : tendon, -1};
}

PathBend tendon_bend(const ModelView& m, const DataView& d, int tendon, const double* y,
                     Arena& arena) {
  if (tendon_is_fixed(m, tendon)) return {nullptr, nullptr};
  const int n = m.ten_J_rownnz[tendon];
  const int* local = tendon_indices(m, tendon, arena);
  const DataView virt = at_velocity(m, d, y, arena);
  double *length = arena.zeros<double>(n * n), *moment = arena.zeros<double>(n * n);
  visit_links(m, d, tendon, [&](const Link& link) {
    if (link.rigid()) return;
    const Vec3 ends[2] = {load3(link.end[0]), load3(link.end[1])};
    const Arena::Mark mark = arena.mark();
    if (link.wrap < 0) {
      const RelativePoints point(m, virt, link.site_body[0], 1, link.site_body + 1, ends + 1,
                                 arena);
      const WrapCurvature c = curve_segment(ends[1] - ends[0], point.velocity(0));
      point.add(c.length, link.scale, local, length, n);
      point.add(c.rate, link.scale, local, moment, n);
    } else {
      const RelativePoints points(m, virt, link.wrapped, 2, link.site_body, ends, arena);
      const Vec3 velocity[2] = {points.velocity(0), points.velocity(1)};
      const WrapCurvature c = curve_wrap(m, d, tendon, link.wrap, ends, link.points, velocity);
      points.add(c.length, link.scale, local, length, n);
      points.add(c.rate, link.scale, local, moment, n);
    }
    arena.rewind(mark);
  });
  return {length, moment};
}

}  // namespace mujacobian
