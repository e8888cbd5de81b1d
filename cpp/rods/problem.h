// The incremental potential of one step, docs/derivations/rods.md. This file declares its value,
// gradient and Hessian with respect to the state at the end of the step, and the adjoint of the
// gradient with respect to everything else: the previous state, inputs and parameters.
#pragma once

#include <vector>

#include "rods/model.h"
#include "rods/skyline.h"

namespace mujacobian::rods {

// State of a contact at the beginning of a step, in the axes of the shape.
struct Grip {
  Vec3 at;            // position of the sample
  Distance distance;  // of the sample from the shape
  double depth;       // penetration of the sphere, or 0
};

// Data at the beginning of a step, with quantities that do not change during the iterations.
struct Problem {
  Problem(const Model& m, const State& previous_state, const State& previous_step,
          const Inputs& given);

  const Model& model;
  const State& previous;  // state q_{k-1}
  const State& step;      // change that led to it
  Inputs inputs;
  std::vector<Mat3> pull;        // of frames: the matrix W of (ROD-9)
  std::vector<double> lengths;   // of edges, at the beginning
  std::vector<Vec3> curvatures;  // of bends, at the beginning
  std::vector<Grip> grips;       // of contacts
};

// Accumulator of a potential. A null pointer means that a derivative is not needed.
struct Sum {
  double energy = 0;     // sum of all terms
  double magnitude = 0;  // sum of their absolute values
  Tangent* gradient = nullptr;
  Skyline* hessian = nullptr;

  void add(double term) {
    energy += term;
    magnitude += term < 0 ? -term : term;
  }
};

// Cotangents of everything that a step depends on. All functions add to them.
struct Bars {
  Tangent previous, step;          // by slot; of the previous state and of the change before it
  std::vector<double> mass, drag;  // by point
  std::vector<Mat3> moment;        // by frame
  std::vector<double> spin_drag;   // by frame
  std::vector<double> length, stretch, shear, stretch_damping;  // by edge
  std::vector<Vec3> bend, bend_damping;                         // by bend
  std::vector<double> attachment;                               // stiffness
  std::vector<double> contact, friction;  // stiffness and coefficient, by surface
  // inputs of this step; null if not needed
  double *forces, *torques, *tensions, *rest, *targets;

  explicit Bars(const Model& m);
};

// Returns the slots that a contact depends on
std::vector<int> slots_of(const Model& m, const Contact& c);

// Returns the pairs of slots that have a block in the Hessian
std::vector<std::pair<int, int>> couplings(const Model& m);

// Write the potential at q into `sum`
void evaluate(const Problem& p, const State& q, Sum& sum);

// Returns the energy that is stored in the elements at q, without gravity
double stored_energy(const Model& m, const State& q, const Inputs& inputs);

// Add the derivatives of z . gradient with respect to everything except q
void pull_back(const Problem& p, const State& q, const Tangent& z, Bars& bars);

// Contributions by kind. Points and frames have inertia, gravity, drag and external loads.
void add_elements(const Problem& p, const State& q, Sum& sum);

void add_points(const Problem& p, const State& q, Sum& sum);
void pull_back_points(const Problem& p, const State& q, const Tangent& z, Bars& bars);
void add_frames(const Problem& p, const State& q, Sum& sum);
void pull_back_frames(const Problem& p, const State& q, const Tangent& z, Bars& bars);
// Returns the matrix W of (ROD-9)
Mat3 frame_pull(const Problem& p, int frame);

void add_edges(const Problem& p, const State& q, Sum& sum);
void pull_back_edges(const Problem& p, const State& q, const Tangent& z, Bars& bars);

// Returns the Darboux vector of a bend (ROD-15)
Vec3 darboux(const Model& m, const Bend& b, const State& q);
void add_bends(const Problem& p, const State& q, Sum& sum);
void pull_back_bends(const Problem& p, const State& q, const Tangent& z, Bars& bars);

void add_springs(const Problem& p, const State& q, Sum& sum);
void pull_back_springs(const Problem& p, const State& q, const Tangent& z, Bars& bars);
void add_welds(const Problem& p, const State& q, Sum& sum);
void pull_back_welds(const Problem& p, const State& q, const Tangent& z, Bars& bars);

void add_cables(const Problem& p, const State& q, Sum& sum);
void pull_back_cables(const Problem& p, const State& q, const Tangent& z, Bars& bars);

// Returns the state of a contact at the beginning of the step
Grip grip(const Problem& p, const Contact& c);
void add_contacts(const Problem& p, const State& q, Sum& sum);
// Returns the index of the deepest contact that moves with a slot, or -1
int deepest_contact(const Problem& p, const State& q, int slot);
void pull_back_contacts(const Problem& p, const State& q, const Tangent& z, Bars& bars);

}  // namespace mujacobian::rods
