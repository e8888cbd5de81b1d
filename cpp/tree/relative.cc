#include "tree/relative.h"

#include <algorithm>

namespace mujacobian {

RelativePoints::RelativePoints(const ModelView& m, const DataView& virt, int frame, int count,
                               const int* body, const Vec3* position, Arena& arena)
    : m_(m), count_(count), dof_count_(0), dofs_(arena.take<Dof>(m.nv)) {
  frame_turn_ = load3(virt.cvel + 6 * frame);
  Point of[kMaxRelative], on_frame[kMaxRelative];
  int at[kMaxRelative + 1];
  for (int i = 0; i < count; i++) {
    double place[3];
    store3(place, position[i]);
    of[i] = make_point(m, virt, body[i], place), on_frame[i] = make_point(m, virt, frame, place);
    velocity_[i] = at_point(load_motion(virt.cvel + 6 * body[i]), of[i].offset) -
                   at_point(load_motion(virt.cvel + 6 * frame), on_frame[i].offset);
    at[i] = last_dof(m, body[i]);
  }
  at[count] = last_dof(m, frame);

  // climb from all bodies to the root until their dofs are the same: dofs that move all points with
  // the frame have no effect
  for (;;) {
    const int dof = *std::max_element(at, at + count + 1);
    if (dof < 0 || std::all_of(at, at + count + 1, [&](int a) { return a == dof; })) break;
    const bool moves_frame = at[count] == dof;
    Dof& k = dofs_[dof_count_++];
    const Motion axis = dof_axis(virt, dof), rate = load_motion(virt.cdof_dot + 6 * dof);
    k.dof = dof, k.turn = axis.ang, k.turn_rate = rate.ang;
    for (int i = 0; i < count; i++) {
      const bool moves_point = at[i] == dof;
      const Vec3 offset = moves_point ? of[i].offset : on_frame[i].offset;
      const Vec3 speed = at_point(load_motion(virt.cvel + 6 * body[i]), of[i].offset);
      k.sign[i] = moves_point - moves_frame;
      k.slide[i] = at_point(axis, offset);
      k.drag[i] = cross(k.turn, speed) + at_point(rate, offset);
      k.change[i] = k.drag[i] - cross(frame_turn_, k.slide[i]);  //                      (HES-41)
    }
    for (int i = 0; i <= count; i++) {
      if (at[i] == dof) at[i] = m.dof_parentid[dof];
    }
  }
}

// Returns the part of the second derivative that contains second derivatives of the points. l is an
// ancestor of k, k itself, or on another branch.                                         (HES-42)
double RelativePoints::second(const RelativeFunction& f, const Dof& l, const Dof& k) const {
  double sum = 0;
  for (int i = 0; i < count_; i++) {
    if (l.sign[i] == 0 || k.sign[i] == 0) continue;
    Vec3 position, velocity;
    if (l.sign[i] > 0 && k.sign[i] > 0) {
      position = cross(l.turn, k.slide[i]);
      velocity =
          cross(l.turn, k.drag[i]) + cross(l.turn_rate, k.slide[i]) - cross(frame_turn_, position);
    } else {
      // `turned` moves the frame, and the other dof is a motion in its axes
      const bool both = l.sign[i] == k.sign[i];
      const Dof& turned = both || l.sign[i] > 0 ? k : l;
      const Dof& other = both || l.sign[i] > 0 ? l : k;
      const double sign = both ? 1 : -1;
      const Vec3 spin = turned.turn_rate + cross(turned.turn, frame_turn_);
      position = sign * cross(turned.turn, other.slide[i]);
      velocity = sign * (cross(turned.turn, other.change[i]) + cross(spin, other.slide[i]));
    }
    sum += dot(f.by_position[i], position) + dot(f.by_velocity[i], velocity);
  }
  return sum;
}

void RelativePoints::add(const RelativeFunction& f, double scale, const int* local, double* out,
                         int n) const {
  for (int b = 0; b < dof_count_; b++) {
    // dofs are in decreasing order: those that follow are ancestors, or on other branches
    const Dof& k = dofs_[b];
    Vec3 by_position[kMaxRelative], by_velocity[kMaxRelative];
    for (int i = 0; i < count_; i++) {
      by_position[i] = by_velocity[i] = {0, 0, 0};
      for (int j = 0; j < count_; j++) {
        by_position[i] +=
            k.sign[j] * (f.positions[i][j] * k.slide[j] + f.mixed[i][j] * k.change[j]);
        by_velocity[i] += k.sign[j] * transpose_mul(f.mixed[j][i], k.slide[j]);
      }
    }
    for (int a = b; a < dof_count_; a++) {
      const Dof& l = dofs_[a];
      double value = second(f, l, k);
      // rotations of one joint: the mean of both orders                                  (HES-13)
      if (l.dof != k.dof && moves_axis(m_, k.dof, l.dof)) {
        value = 0.5 * (value + second(f, k, l));
      }
      for (int i = 0; i < count_; i++) {
        value += l.sign[i] * (dot(l.slide[i], by_position[i]) + dot(l.change[i], by_velocity[i]));
      }
      const int row = local[l.dof], column = local[k.dof];
      out[row * n + column] += scale * value;
      if (a != b) out[column * n + row] += scale * value;
    }
  }
}

RootCurvature root_curvature(const Mat3& Q, double r, Vec3 g, Vec3 y) {
  const Mat3 second = (1 / r) * (Q + (-1.0) * outer(g, g));
  const Vec3 bent = second * y;
  const Mat3 third = (-1 / r) * (dot(g, y) * second + outer(bent, g) + outer(g, bent));
  return {second, third};
}

}  // namespace mujacobian
