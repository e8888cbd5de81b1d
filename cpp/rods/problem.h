// The incremental potential of one step, docs/derivations/rods.md: its value, gradient and Hessian
// with respect to the state at the end of the step, and the adjoint of its gradient with respect to
// everything else that it depends on.
#pragma once

#include <vector>

#include "rods/model.h"
#include "rods/skyline.h"

namespace mujacobian::rods {

// What is kept of a contact at the beginning of a step, in the axes of the shape.
struct Grip {
  Vec3 at;            // the sample
  Distance distance;  // of the shape there
  double depth;       // of the sphere in the shape, or 0
};

// What a step begins with. The parts that the iterations would compute again and again are kept.
struct Problem {
  Problem(const Model& m, const State& previous_state, const State& previous_step,
          const Inputs& given);

  const Model& model;
  const State& previous;  // q_{k-1}
  const State& step;      // the step that led to it
  Inputs inputs;
  std::vector<Mat3> pull;        // of frames: the matrix W of (ROD-9)
  std::vector<double> lengths;   // of edges, at the beginning
  std::vector<Vec3> curvatures;  // of bends, at the beginning
  std::vector<Grip> grips;       // of contacts
};

// A potential under construction. Null: not wanted.
struct Sum {
  double energy = 0, magnitude = 0;  // and the sum of the absolute values of its terms
  Tangent* gradient = nullptr;
  Skyline* hessian = nullptr;

  void add(double term) {
    energy += term;
    magnitude += term < 0 ? -term : term;
  }
};

// Derivatives of a scalar with respect to what a step depends on; all are added to.
struct Bars {
  Tangent previous, step;          // by slot; of the state and the step that a step begins with
  std::vector<double> mass, drag;  // by point
  std::vector<Mat3> moment;        // by frame
  std::vector<double> spin_drag;   // by frame
  std::vector<double> length, stretch, shear, stretch_damping;  // by edge
  std::vector<Vec3> bend, bend_damping;                         // by bend
  std::vector<double> attachment;                               // stiffness
  std::vector<double> contact, friction;  // stiffness and coefficient, by surface
  // of this step's inputs; null: not wanted
  double *forces, *torques, *tensions, *rest, *targets;

  explicit Bars(const Model& m);
};

// Pairs of slots that have a block in the Hessian
std::vector<std::pair<int, int>> couplings(const Model& m);

// Write the potential at q into `sum`
void evaluate(const Problem& p, const State& q, Sum& sum);

// The energy stored in the elements at q, without gravity; inputs as in a step
double stored_energy(const Model& m, const State& q, const Inputs& inputs);

// Add the derivatives of z . gradient with respect to all but q
void pull_back(const Problem& p, const State& q, const Tangent& z, Bars& bars);

// The same by kind: inertia and what acts on one point or frame, then elements between them
void add_elements(const Problem& p, const State& q, Sum& sum);

void add_points(const Problem& p, const State& q, Sum& sum);
void pull_back_points(const Problem& p, const State& q, const Tangent& z, Bars& bars);
void add_frames(const Problem& p, const State& q, Sum& sum);
void pull_back_frames(const Problem& p, const State& q, const Tangent& z, Bars& bars);
Mat3 frame_pull(const Problem& p, int frame);

void add_edges(const Problem& p, const State& q, Sum& sum);
void pull_back_edges(const Problem& p, const State& q, const Tangent& z, Bars& bars);

Vec3 darboux(const Model& m, const Bend& b, const State& q);
void add_bends(const Problem& p, const State& q, Sum& sum);
void pull_back_bends(const Problem& p, const State& q, const Tangent& z, Bars& bars);

void add_springs(const Problem& p, const State& q, Sum& sum);
void pull_back_springs(const Problem& p, const State& q, const Tangent& z, Bars& bars);
void add_welds(const Problem& p, const State& q, Sum& sum);
void pull_back_welds(const Problem& p, const State& q, const Tangent& z, Bars& bars);

void add_cables(const Problem& p, const State& q, Sum& sum);
void pull_back_cables(const Problem& p, const State& q, const Tangent& z, Bars& bars);

Grip grip(const Problem& p, const Contact& c);
void add_contacts(const Problem& p, const State& q, Sum& sum);
void pull_back_contacts(const Problem& p, const State& q, const Tangent& z, Bars& bars);

}  // namespace mujacobian::rods
