// The model of rigid bodies and Cosserat rods: points with positions, frames with rotations, and
// elements that connect them. A rod has a point per node and a frame per edge. A body has one point
// and one frame.
#pragma once

#include <memory>
#include <vector>

#include "rods/shape.h"
#include "spatial/vector.h"

namespace mujacobian::rods {

// An edge of a rod, which resists stretch and shear. The third axis of its frame is its director.
struct Edge {
  int start, end;  // points
  int frame;
  double length;  // at rest
  double stretch, shear, damping;
};

// An inner node of a rod, which resists bending and twist between the frames of two adjacent edges,
// or a clamped end, which resists them between its edge and the axes of a wall.
struct Bend {
  int first, second;  // edges; -1 is the wall of a clamp
  double length;      // half of the sum of their rest lengths
  Vec3 stiffness, damping;
  bool is_tangent;  // measure of the angle: 2 tan(angle / 2) instead of its sine
  Mat3 wall;        // axes of the wall
};

// A point at weight[0] x[point[0]] + weight[1] x[point[1]] + R[frame] offset. An index of -1 means
// that there is no such point or frame. Without a frame, the offset is in world axes.
struct MaterialPoint {
  int point[2];
  double weight[2];
  int frame;
  Vec3 offset;
};

// A spring of rest length zero between two material points. An input may displace the second one.
struct Spring {
  MaterialPoint first, second;
  int target;      // index of the input, or -1
  int attachment;  // index among springs and welds
  double stiffness;
};

// A torsion spring that aligns R[first] first_axes with R[second] second_axes, or with second_axes
// in the world if `second` is -1.
struct Weld {
  int first, second;
  Mat3 first_axes, second_axes;
  int attachment;
  double stiffness;
};

// A thread under tension through material points.
struct Cable {
  std::vector<MaterialPoint> path;
};

// A shape that is fixed to a body, or to the world if the indices are -1, and that spheres touch.
struct Surface {
  int shape, body_point, body_frame;
  double radius;  // of the spheres
  double stiffness, friction, slip;
  int contact;  // index among surfaces and bundles
};

// A sphere around a material point that may touch a surface. It rotates with one or two frames, or
// friction acts at its center if there is none (-1).
struct Contact {
  MaterialPoint sample;
  int surface;
  int rolling[2];
};

// A round segment of a rod or body: all points within a radius of a straight line.
struct Segment {
  MaterialPoint start, end;  // on the same points and frame of the same rod or body
  int frame;                 // that the surface rotates with
  double radius;
  int owner;             // index of the rod or body
  int group;             // in the bundle
  double begin, finish;  // of edges of a rod: distances of the ends along it at rest
  double loop;           // length of a closed rod, otherwise infinite
};

// Round segments that may touch each other.
struct Bundle {
  std::vector<Segment> segments;
  bool is_divided;  // whether only segments of different groups touch
  double stiffness, friction, slip;
  int contact;  // index among surfaces and bundles
};

struct Model {
  double timestep;
  int order = 1;  // of the integrator: 1 is backward Euler, 2 is BDF2, 0 is statics
  Vec3 gravity;
  // points
  std::vector<double> mass, drag;
  std::vector<char> point_fixed;
  std::vector<int> point_slot;  // block of each point in the vector of unknowns
  // frames
  std::vector<Mat3> moment;  // integral of density times (position position^T), in frame axes
  std::vector<double> spin_drag;
  std::vector<char> frame_fixed;
  std::vector<int> frame_slot;

  std::vector<Edge> edges;
  std::vector<Bend> bends;
  std::vector<Spring> springs;
  std::vector<Weld> welds;
  std::vector<Cable> cables;
  std::vector<Contact> contacts;
  std::vector<Surface> surfaces;
  std::vector<Bundle> bundles;
  std::vector<std::shared_ptr<const Shape>> shapes;
  int targets = 0;  // number of inputs that displace springs

  int slots() const { return static_cast<int>(mass.size() + moment.size()); }
  int attachments() const { return static_cast<int>(springs.size() + welds.size()); }
  int contact_kinds() const { return static_cast<int>(surfaces.size() + bundles.size()); }
  // Returns for each slot whether it is fixed
  std::vector<char> fixed() const;
};

// Positions and rotations of a state, or the change from one state to the next: differences of
// positions, and rotations R R_prev^T.
struct State {
  std::vector<Vec3> x;
  std::vector<Mat3> R;
};

// One vector per slot: a tangent vector or a gradient. A vector t changes a rotation to exp(t) R.
using Tangent = std::vector<Vec3>;

// Inputs of a step. A null pointer means zero; `rest` is never null.
struct Inputs {
  const double* forces;    // (points, 3)
  const double* torques;   // (frames, 3)
  const double* tensions;  // (cables)
  const double* rest;      // (bends, 3), rest Darboux vectors
  const double* targets;   // (targets, 3)
};

// Write the state that is reached from q along scale * d
void move(const Model& m, const State& q, const Tangent& d, double scale, State& moved);

// Write the change from one state to another
void subtract(const State& after, const State& before, State& step);

}  // namespace mujacobian::rods
