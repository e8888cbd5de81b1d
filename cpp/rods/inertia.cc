// Potentials of single points and frames: inertia, gravity, drag, forces and torques.
#include "rods/algebra.h"
#include "rods/problem.h"

namespace mujacobian::rods {

Mat3 frame_ahead(const Problem& p, int frame) {
  Mat3 ahead{};
  for (int j = 0; j < kPast; j++) {
    if (p.scheme.past[j] != 0) ahead = ahead + p.scheme.past[j] * p.past[j]->R[frame];
  }
  return ahead;
}

// Returns W in the potential -tr(R W^T) of a frame                                       (ROD-9)
Mat3 frame_pull(const Problem& p, int frame) {
  const Model& m = p.model;
  const double inertia = p.scheme.inertia / (m.timestep * m.timestep);
  Mat3 W = inertia * (frame_ahead(p, frame) * m.moment[frame]);
  for (int j = 0; j < 2; j++) {
    const Mat3& R = p.past[j]->R[frame];
    W = W + (0.5 * m.spin_drag[frame] * p.rate * p.scheme.lag[j]) * R;
    if (!p.inputs.torques) continue;
    W = W + (0.5 * p.scheme.lever[j]) * (skew(load3(p.inputs.torques + 3 * frame)) * R);
  }
  return W;
}

void add_points(const Problem& p, const State& q, Sum& sum) {
  const Model& m = p.model;
  const double weight = p.scheme.inertia / (m.timestep * m.timestep);
  for (size_t i = 0; i < q.x.size(); i++) {
    const double inertia = weight * m.mass[i], drag = m.drag[i] * p.rate;
    Vec3 off = q.x[i] - p.ahead[i], change = q.x[i] - p.lagging[i];
    Vec3 load = m.mass[i] * m.gravity;
    if (p.inputs.forces) load += load3(p.inputs.forces + 3 * i);
    sum.add(0.5 * (inertia * dot(off, off) + drag * dot(change, change)),
            inertia * norm(off) * norm(q.x[i]));
    sum.add(-dot(load, q.x[i] - p.previous.x[i]));
    const int slot = m.point_slot[i];
    if (sum.gradient) (*sum.gradient)[slot] += inertia * off + drag * change - load;
    if (sum.hessian) sum.hessian->add(slot, slot, scaled_identity(inertia + drag));
  }
}

void add_frames(const Problem& p, const State& q, Sum& sum) {
  const Model& m = p.model;
  for (size_t i = 0; i < q.R.size(); i++) {
    Mat3 M = times_transposed(q.R[i], p.pull[i]);
    // minus its value at the beginning of the step, which is large
    sum.add(-inner(difference(q.R[i], p.previous.R[i]), p.pull[i]), p.leverage[i]);
    const int slot = m.frame_slot[i];
    if (sum.gradient) (*sum.gradient)[slot] += axial(M);  // (ROD-10)
    if (sum.hessian) {
      sum.hessian->add(slot, slot, difference(scaled_identity(trace(M)), symmetric_part(M)));
    }
  }
}

void pull_back_points(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  const Model& m = p.model;
  const double weight = p.scheme.inertia / (m.timestep * m.timestep);
  for (size_t i = 0; i < q.x.size(); i++) {
    const int slot = m.point_slot[i];
    // earlier states
    const double inertia = weight * m.mass[i], drag = m.drag[i] * p.rate;
    for (int j = 0; j < kPast; j++) {
      (*bars.past[j])[slot] += (-inertia * p.scheme.past[j]) * z[slot];
      if (j < 2) (*bars.past[j])[slot] += (-drag * p.scheme.lag[j]) * z[slot];
    }
    // mass, drag and force
    bars.mass[i] += dot(z[slot], weight * (q.x[i] - p.ahead[i]) - m.gravity);
    bars.drag[i] += dot(z[slot], p.rate * (q.x[i] - p.lagging[i]));
    if (bars.forces) store3(bars.forces + 3 * i, load3(bars.forces + 3 * i) - z[slot]);
  }
}

void pull_back_frames(const Problem& p, const State& q, const Tangent& z, Bars& bars) {
  const Model& m = p.model;
  const double weight = p.scheme.inertia / (m.timestep * m.timestep);
  for (size_t i = 0; i < q.R.size(); i++) {
    // cotangent of W: z . axial(R W^T) = <-[z]x R, W>                                   (ROD-12)
    const int slot = m.frame_slot[i];
    Mat3 W_bar = (-1.0) * (skew(z[slot]) * q.R[i]);
    // earlier states, drag and torque
    Mat3 ahead_bar = weight * (W_bar * m.moment[i]);
    for (int j = 0; j < kPast; j++) {
      const Mat3& R = p.past[j]->R[i];
      Mat3 R_bar = p.scheme.past[j] * ahead_bar;
      if (j < 2) {
        R_bar = R_bar + (0.5 * m.spin_drag[i] * p.rate * p.scheme.lag[j]) * W_bar;
        bars.spin_drag[i] += 0.5 * p.rate * p.scheme.lag[j] * inner(R, W_bar);
        const double lever = 0.5 * p.scheme.lever[j];
        if (p.inputs.torques) {
          R_bar = R_bar + (-lever) * (skew(load3(p.inputs.torques + 3 * i)) * W_bar);
        }
        if (bars.torques) {
          double* bar = bars.torques + 3 * i;
          store3(bar, load3(bar) + lever * turn(R, W_bar));
        }
      }
      (*bars.past[j])[slot] += turn(R, R_bar);
      if (j == bars.before) bars.ambient[i] = bars.ambient[i] + R_bar;
    }
    // moment of inertia
    Mat3 moment_bar =
        weight * symmetric_part(transposed_times(frame_ahead(p, static_cast<int>(i)), W_bar));
    bars.moment[i] = bars.moment[i] + moment_bar;
  }
}

}  // namespace mujacobian::rods
