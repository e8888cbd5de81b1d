// The second derivative of a weighted sum of sensor values at fixed acceleration, and its first
// derivative with respect to the acceleration. docs/derivations/second_order.md.
#pragma once

#include <new>
#include <utility>

#include "contact/wrench.h"
#include "second_order/forms.h"
#include "second_order/path_function.h"
#include "sensor/sensing.h"

namespace mujacobian {

// A variable of a sensor: the position, velocity or acceleration of a dof.
struct DofVariable {
  enum Kind { kPosition, kVelocity, kAcceleration } kind;
  int dof;
};

class SensorForm {
 public:
  SensorForm(const ModelView& m, const StepForms& forms, double* through_acceleration,
             const CrossTerm*& cross, const SlidingRows*& sliding, Arena& arena)
      : nv_(m.nv),
        forms_(forms),
        through_acceleration_(through_acceleration),
        cross_(cross),
        sliding_(sliding),
        arena_(arena) {}

  // Adds the second derivative with respect to two variables, of which one may be an acceleration.
  // Every pair is added in one order.
  void add(DofVariable a, DofVariable b, double value) {
    if (value == 0) return;
    if (a.kind == DofVariable::kAcceleration) std::swap(a, b);
    const QuadraticForm& form = forms_.late;
    const bool together = form.layout.component[a.dof] == form.layout.component[b.dof];
    if (!together) {
      cross_ = new (arena_.take<CrossTerm>(1)) CrossTerm{state(a), state(b), value, cross_};
    } else if (b.kind == DofVariable::kAcceleration) {
      forms_.early.mixed[b.dof][column(a)] += value;
    } else {
      form.add(a.dof, column(a), column(b), value);
    }
  }

  // The entries of dof l and of dof k, which is l or below it, so that their component is the same.
  class Pair {
   public:
    Pair(const StepForms& forms, int l, int k) : l_(l), k_(k), forms_(forms) {
      const QuadraticForm& form = forms.late;
      const Component& part = form.layout.components[form.layout.component[l]];
      half_ = form.half[form.layout.component[l]];
      stride_ = part.stride, nv_ = part.nv;
      of_l_ = form.layout.column[l], of_k_ = form.layout.column[k];
    }
    // Add the second derivative with respect to the positions of both, or to their velocities.
    void add_qq(double value) { add(of_l_, of_k_, l_ == k_ ? 0.5 * value : value); }
    void add_vv(double value) { add(of_l_ + nv_, of_k_ + nv_, l_ == k_ ? 0.5 * value : value); }
    // Add that with respect to the position of one and the velocity of the other.
    void add_qv(double value) { add(of_l_, of_k_ + nv_, value); }
    void add_vq(double value) { add(of_l_ + nv_, of_k_, value); }
    // Adds that with respect to the acceleration of l and the position of k.
    void add_aq(double value) { forms_.early.mixed[l_][of_k_] += value; }

   private:
    void add(std::ptrdiff_t row, int column, double value) {
      half_[row * stride_ + column] += value;
    }
    int l_, k_, nv_, of_l_, of_k_;
    std::ptrdiff_t stride_;
    double* half_;
    const StepForms& forms_;
  };
  Pair pair(int l, int k) const { return Pair(forms_, l, k); }

  // Adds the derivative with respect to the acceleration of a dof.
  void add_acceleration(int dof, double slope) { through_acceleration_[dof] += slope; }

  // Adds the derivative of -weights . f with respect to the acceleration, for the forces f of a
  // block.
  void add_block_acceleration(const Block& b, const double* weights) {
    for (int r = 0; r < b.count; r++)
      for (int c = 0; c < b.count; c++) {
        const double pulled = weights[r] * b.hessian[r * b.count + c];
        for (int i = 0; i < b.n; i++) add_acceleration(b.dofs[i], pulled * b.J[c * b.stride + i]);
      }
  }

  const StepForms& forms() const { return forms_; }
  const SlidingRows*& sliding() { return sliding_; }

 private:
  int column(DofVariable x) const {
    const QuadraticForm& form = forms_.late;
    return x.kind == DofVariable::kPosition ? form.q_column(x.dof) : form.v_column(x.dof);
  }
  int state(DofVariable x) const { return x.kind == DofVariable::kPosition ? x.dof : nv_ + x.dof; }

  int nv_;
  const StepForms& forms_;
  double* through_acceleration_;
  const CrossTerm*& cross_;
  const SlidingRows*& sliding_;
  Arena& arena_;
};

// Adds the second derivatives with respect to dof l and dof k, which is l or below it, where
// entry(first kind, second kind) is the derivative with respect to a variable of l, then one of k.
// `swapped` is the same with l and k exchanged; it is used for rotations of one joint.    (HSE-2)
template <class Entry, class Swapped>
void add_chain_pair(const ModelView& m, int l, int k, bool accelerates, Entry entry,
                    Swapped swapped, SensorForm& form) {
  constexpr auto q = DofVariable::kPosition, v = DofVariable::kVelocity,
                 a = DofVariable::kAcceleration;
  SensorForm::Pair pair = form.pair(l, k);
  if (l != k && moves_axis(m, k, l)) {  // rotations of one joint
    pair.add_qq(0.5 * (entry(q, q) + swapped(q, q)));
    pair.add_vv(0.5 * (entry(v, v) + swapped(v, v)));
    pair.add_qv(entry(q, v));
    form.pair(k, l).add_qv(swapped(q, v));
    return;
  }
  pair.add_qq(entry(q, q));
  pair.add_vv(entry(v, v));
  pair.add_qv(entry(q, v));
  if (l != k) pair.add_vq(entry(v, q));
  if (l != k && accelerates) pair.add_aq(entry(a, q));
}

// The same for a function of positions, with the derivative with respect to the positions of l,
// then of k, and a function that returns it with l and k exchanged.
template <class Swapped>
void add_position_pair(const ModelView& m, int l, int k, double value, Swapped swapped,
                       SensorForm& form) {
  if (l != k && moves_axis(m, k, l)) value = 0.5 * (value + swapped());  // rotations of one joint
  form.pair(l, k).add_qq(value);
}

// Adds the second derivatives half + half^T with respect to the positions of the dofs of a pair,
// which may belong to several components.
inline void add_half(const ContactDofs& c, const double* half, SensorForm& form) {
  for (int i = 0; i < c.n; i++)
    for (int k = 0; k <= i; k++) {
      form.add({DofVariable::kPosition, c.dofs[i]}, {DofVariable::kPosition, c.dofs[k]},
               half[i * c.stride + k] + half[k * c.stride + i]);
    }
}

// Adds the second derivative of the length or the rate of a path, weighted. If nothing pulls the
// path, its dofs may belong to several components.
void add_path_value(Sensing& s, const CurvedPath& path, bool rate, double weight, SensorForm& form);

// Add the second derivatives of one sensor, weighted with `weights`, one per value.
void add_frame_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form);
void add_subtree_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form);
void add_energy_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form);
void add_contact_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form);
void add_touch_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form);
void add_distance_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form);
void add_ray_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form);
void add_limit_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form);
void add_wrench_curvature(Sensing& s, int sensor, const double* weights, SensorForm& form);

// Returns why second derivatives of a contact sensor are not supported, null if they are.
const char* contact_curvature_refusal(const ModelView& m, int sensor);

}  // namespace mujacobian
