// Potentials of single points and frames: inertia, gravity, drag, forces and torques.
#include "rods/algebra.h"
#include "rods/problem.h"

namespace mujacobian::rods {

// Returns W in the potential -tr(R W^T) of a frame                                       (ROD-9)
Mat3 frame_pull(const Problem& p, int frame) {
  const Model& m = p.model;
  const double h = m.timestep;
  const Mat3& R = p.previous.R[frame];
  Mat3 ahead = difference(2.0 * R, transposed_times(p.step.R[frame], R));
  Mat3 W = (1 / (h * h)) * (ahead * m.moment[frame]) + (m.spin_drag[frame] / (2 * h)) * R;
  if (p.inputs.torques) W = W + 0.5 * (skew(load3(p.inputs.torques + 3 * frame)) * R);
  return W;
}

void add_points(const Problem& p, const State& q, Sum& sum) {
  const Model& m = p.model;
  const double h = m.timestep;
  for (size_t i = 0; i < q.x.size(); i++) {
    const double inertia = m.mass[i] / (h * h), drag = m.drag[i] / h;
    Vec3 change = q.x[i] - p.previous.x[i], off = change - p.step.x[i];
    Vec3 load = m.mass[i] * m.gravity;
    if (p.inputs.forces) load += load3(p.inputs.forces + 3 * i);
    sum.add(0.5 * (inertia * dot(off, off) + drag * dot(change, change)));
    sum.add(-dot(load, change));
    const int slot = m.point_slot[i];
    if (sum.gradient) (*sum.gradient)[slot] += inertia * off + drag * change - load;
    if (sum.hessian) sum.hessian->add(slot, slot, scaled_identity(inertia + drag));
  }
}

void add_frames(const Problem& p, const State& q, Sum& sum) {
  const Model& m = p.model;
  for (size_t i = 0; i < q.R.size(); i++) {
    Mat3 M = times_transposed(q.R[i], p.pull[i]);
    sum.add(-trace(M));
    const int slot = m.frame_slot[i];
    if (sum.gradient) (*sum.gradient)[slot] += axial(M);  // (ROD-10)
    if (sum.hessian) {
      sum.hessian->add(slot, slot, difference(scaled_identity(trace(M)), symmetric_part(M)));
    }
  }
}

void pull_back_points(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  const Model& m = p.model;
  const double h = m.timestep;
  for (size_t i = 0; i < q.x.size(); i++) {
    const int slot = m.point_slot[i];
    // state and step before this step
    const double inertia = m.mass[i] / (h * h), drag = m.drag[i] / h;
    bars.previous[slot] += -(inertia + drag) * z[slot];
    bars.step[slot] += -inertia * z[slot];
    // mass, drag and force
    Vec3 off = q.x[i] - p.previous.x[i] - p.step.x[i];
    bars.mass[i] += dot(z[slot], (1 / (h * h)) * off - m.gravity);
    bars.drag[i] += dot(z[slot], (1 / h) * (q.x[i] - p.previous.x[i]));
    if (bars.forces) store3(bars.forces + 3 * i, load3(bars.forces + 3 * i) - z[slot]);
  }
}

void pull_back_frames(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  const Model& m = p.model;
  const double h = m.timestep;
  for (size_t i = 0; i < q.R.size(); i++) {
    // cotangent of W: z . axial(R W^T) = <-[z]x R, W>                                   (ROD-12)
    const int slot = m.frame_slot[i];
    const Mat3 &R = p.previous.R[i], &step = p.step.R[i];
    Mat3 W_bar = (-1.0) * (skew(z[slot]) * q.R[i]);
    // state and step before this step
    Mat3 ahead_bar = (1 / (h * h)) * (W_bar * m.moment[i]);
    Mat3 R_bar = difference(2.0 * ahead_bar, step * ahead_bar) + (m.spin_drag[i] / (2 * h)) * W_bar;
    if (p.inputs.torques) {
      R_bar = R_bar + (-0.5) * (skew(load3(p.inputs.torques + 3 * i)) * W_bar);
    }
    bars.previous[slot] += turn(R, R_bar);
    bars.step[slot] += turn(step, (-1.0) * times_transposed(R, ahead_bar));
    // moment of inertia, drag and torque
    Mat3 ahead = difference(2.0 * R, transposed_times(step, R));
    Mat3 moment_bar = (1 / (h * h)) * symmetric_part(transposed_times(ahead, W_bar));
    bars.moment[i] = bars.moment[i] + moment_bar;
    bars.spin_drag[i] += inner(R, W_bar) / (2 * h);
    if (bars.torques) {
      double* bar = bars.torques + 3 * i;
      store3(bar, load3(bar) + 0.5 * turn(R, W_bar));
    }
  }
}

}  // namespace mujacobian::rods
