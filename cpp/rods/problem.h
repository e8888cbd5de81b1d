// The incremental potential of one step, docs/derivations/rods.md. This file declares its value,
// gradient and Hessian with respect to the state at the end of the step, and the adjoint of the
// gradient with respect to everything else: the previous state, inputs and parameters.
#pragma once

#include <array>
#include <vector>

#include "rods/model.h"
#include "rods/sparse.h"

namespace mujacobian::rods {

// State of a contact at the beginning of a step, in the axes of the shape.
struct Grip {
  Vec3 at;            // position of the sample
  Distance distance;  // of the sample from the shape
  Vec3 normal;        // direction of its gradient
  Mat3 turning;       // derivative of the normal
  double depth;       // penetration of the sphere, or 0
  Vec3 arm;           // from the sample to the touching point of the sphere, in world axes
};

// Two segments that touch at the beginning of a step, for friction (ROD-49).
struct Pinch {
  const Bundle* bundle;
  const Segment *first, *second;
  MaterialPoint a, b;  // nearest points on them
  double depth;
  Vec3 between;                // from b to a
  Vec3 first_arm, second_arm;  // from a and b to the touching point
};

// The earlier states that a step depends on, newest first: q_{k-1}, q_{k-2}, ...
constexpr int kPast = 4;
using Past = std::array<const State*, kPast>;

// Weights of the multistep formula of a step (ROD-39).
struct Scheme {
  double inertia;               // of inertia, times h^2
  std::array<double, 4> past;   // of the earlier states in the free motion
  double rate;                  // of q_k in a rate, times h
  std::array<double, 2> lag;    // of q_{k-1} and q_{k-2} in the state that q_k minus it is a rate
  std::array<double, 2> lever;  // the same in the frame that torques rotate
  bool is_static;               // nothing moves, and there is no friction

  // Returns the scheme of a step, which is counted from the beginning of the simulation
  static Scheme at(const Model& m, int step);
  // Returns the scheme of a state at rest
  static Scheme rest();
};

// Data at the beginning of a step, with quantities that do not change during the iterations.
struct Problem {
  Problem(const Model& m, const Scheme& weights, const Past& states, const Inputs& given);

  const Model& model;
  const Scheme scheme;
  const Past past;
  const State& previous;  // state q_{k-1}
  Inputs inputs;
  double rate;                   // of q_k in a rate, 1/s
  std::vector<Vec3> ahead;       // of points: free motion without forces
  std::vector<Vec3> lagging;     // of points: position that rates refer to
  std::vector<Mat3> pull;        // of frames: the matrix W of (ROD-9)
  std::vector<double> leverage;  // of frames: its norm
  std::vector<double> lengths;   // of edges, which rates refer to
  std::vector<Vec3> curvatures;  // of bends, which rates refer to
  std::vector<Grip> grips;       // of contacts
  std::vector<Pinch> pinches;    // of touching segments, unless the step is static
};

// Accumulator of a potential. A null pointer means that a derivative is not needed.
struct Sum {
  double energy = 0;     // sum of all terms
  double magnitude = 0;  // sum of their absolute values
  double leverage = 0;   // sum of forces times positions: rounding of positions changes the energy
                         // by the unit roundoff times this number
  Tangent* gradient = nullptr;
  SparseMatrix* hessian = nullptr;

  void add(double term, double force_times_position = 0) {
    energy += term;
    magnitude += term < 0 ? -term : term;
    leverage += force_times_position < 0 ? -force_times_position : force_times_position;
  }
};

// Cotangents of everything that a step depends on. All functions add to them.
struct Bars {
  std::array<Tangent*, kPast> past;  // by slot; of the earlier states
  int before = -1;                   // index in `past` of the state before the first one, or -1
  std::vector<Mat3> ambient;  // by frame; of the matrices of this state, which may be no rotations
  std::vector<double> mass, drag;                               // by point
  std::vector<Mat3> moment;                                     // by frame
  std::vector<double> spin_drag;                                // by frame
  std::vector<double> length, stretch, shear, stretch_damping;  // by edge
  std::vector<Vec3> bend, bend_damping;                         // by bend
  std::vector<double> attachment;                               // stiffness
  std::vector<double> contact, friction;  // stiffness and coefficient, by kind
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
// Returns the free motion of a frame (ROD-9)
Mat3 frame_ahead(const Problem& p, int frame);
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
// Returns the index of the deepest contact that moves with a slot, or -1. Contacts of spheres come
// before the segments of all bundles.
int deepest_contact(const Problem& p, const State& q, int slot);
void pull_back_contacts(const Problem& p, const State& q, const Tangent& z, Bars& bars);

// Returns the pairs of segments that touch at a state
std::vector<Pinch> pinches(const Model& m, const State& q);
// Returns the index of the deepest segment that moves with a slot, or -1, and its depth
int deepest_segment(const Problem& p, const State& q, int slot, double& depth);
void add_segments(const Problem& p, const State& q, Sum& sum);
void pull_back_segments(const Problem& p, const State& q, const Tangent& z, Bars& bars);

}  // namespace mujacobian::rods
