// Rigid bodies and Cosserat rods as the core sees them: points that move in space, frames that
// turn, and elements between them. A rod has a point per node and a frame per edge, a body one of
// each.
#pragma once

#include <memory>
#include <vector>

#include "rods/shape.h"
#include "spatial/vector.h"

namespace mujacobian::rods {

// Stretch and shear of an edge between two points whose frame's third axis is its director.
struct Edge {
  int start, end, frame;
  double length, stretch, shear, damping;
};

// Bending and twist between the frames of two neighbouring edges.
struct Bend {
  int first, second;  // edges
  double length;      // the mean of their rest lengths
  Vec3 stiffness, damping;
};

// weight[0] x[point[0]] + weight[1] x[point[1]] + R[frame] offset; -1 for what is absent. Without a
// frame the offset is in world axes.
struct MaterialPoint {
  int point[2];
  double weight[2];
  int frame;
  Vec3 offset;
};

// A spring of rest length zero between two material points, the second displaced by an input.
struct Spring {
  MaterialPoint first, second;
  int target;  // index of the input, or -1
  int attachment;
  double stiffness;
};

// A torsion spring that holds R[first] first_axes at R[second] second_axes; second -1: the world.
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

// A shape that spheres of a radius touch, fixed to a body or (-1) to the world.
struct Surface {
  int shape, body_point, body_frame;
  double radius, stiffness, friction, slip;
};

// A sphere around a material point against a surface.
struct Contact {
  MaterialPoint sample;
  int surface;
};

struct Model {
  double timestep;
  Vec3 gravity;
  // of points
  std::vector<double> mass, drag;
  std::vector<char> point_fixed;
  std::vector<int> point_slot;  // block of the point in the vector of unknowns
  // of frames: integral of density times (position position^T), in the frame's own axes
  std::vector<Mat3> moment;
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
  std::vector<std::shared_ptr<const Shape>> shapes;
  int targets = 0;

  int slots() const { return static_cast<int>(mass.size() + moment.size()); }
  int attachments() const { return static_cast<int>(springs.size() + welds.size()); }
  // by slot
  std::vector<char> fixed() const;
};

// Positions and rotations; also the change from one state to the next: differences and R R_prev^T.
struct State {
  std::vector<Vec3> x;
  std::vector<Mat3> R;
};

// One vector per slot: tangent vectors and gradients. Rotations turn by exp of it, from the left.
using Tangent = std::vector<Vec3>;

// What acts in a step; a null pointer is zero, for `rest` never null.
struct Inputs {
  const double* forces;    // (points, 3)
  const double* torques;   // (frames, 3)
  const double* tensions;  // (cables)
  const double* rest;      // (bends, 3), rest Darboux vectors
  const double* targets;   // (targets, 3)
};

// q moved by scale * d
void move(const Model& m, const State& q, const Tangent& d, double scale, State& moved);

// The step from one state to another
void subtract(const State& after, const State& before, State& step);

}  // namespace mujacobian::rods
