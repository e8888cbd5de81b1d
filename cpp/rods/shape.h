// Solids, defined by their signed distance, which is negative inside. Between two features with the
// same distance, the derivatives are those of the feature that is selected.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "spatial/vector.h"

namespace mujacobian::rods {

struct Distance {
  double value;
  Vec3 normal;     // gradient, of length one except for a grid
  Mat3 curvature;  // second derivative
};

class Shape {
 public:
  virtual ~Shape() = default;
  virtual Distance distance(Vec3 p) const = 0;
  // Returns the distance up to which the function is the distance
  virtual double reach() const { return std::numeric_limits<double>::infinity(); }
};

// The half-space below the plane normal . p = offset
class Plane : public Shape {
 public:
  Plane(Vec3 normal, double offset) : normal_(normal), offset_(offset) {}
  Distance distance(Vec3 p) const override;

 private:
  Vec3 normal_;
  double offset_;
};

// All points within a radius of a polyline: a sphere (one vertex), a capsule (two), a tube.
class Tube : public Shape {
 public:
  Tube(std::vector<Vec3> vertices, double radius);
  Distance distance(Vec3 p) const override;

 private:
  // consecutive segments with a bounding ball
  struct Run {
    Vec3 center;
    double radius;
    int begin, end;  // segments
  };
  std::vector<Vec3> vertices_;
  double radius_;
  std::vector<Run> runs_;
};

class Box : public Shape {
 public:
  Box(Vec3 half, Vec3 center, const Mat3& axes) : half_(half), center_(center), axes_(axes) {}
  Distance distance(Vec3 p) const override;

 private:
  Vec3 half_, center_;
  Mat3 axes_;
};

class Union : public Shape {
 public:
  explicit Union(std::vector<std::shared_ptr<const Shape>> parts) : parts_(std::move(parts)) {}
  Distance distance(Vec3 p) const override;
  double reach() const override;

 private:
  std::vector<std::shared_ptr<const Shape>> parts_;
};

// All points outside a shape; its contacts keep points inside the shape.
class Complement : public Shape {
 public:
  explicit Complement(std::shared_ptr<const Shape> shape) : shape_(std::move(shape)) {}
  Distance distance(Vec3 p) const override;
  double reach() const override { return shape_->reach(); }

 private:
  std::shared_ptr<const Shape> shape_;
};

}  // namespace mujacobian::rods
