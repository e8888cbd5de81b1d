#include "rods/shape.h"

#include <algorithm>

#include "rods/algebra.h"

namespace mujacobian::rods {
namespace {

constexpr int kRun = 8;  // segments with a common bounding ball

// Returns the fraction of the segment from a to b at which it is nearest to p
double nearest(Vec3 p, Vec3 a, Vec3 b) {
  Vec3 along = b - a;
  return std::clamp(dot(p - a, along) / dot(along, along), 0.0, 1.0);
}

// Returns the distance to a vertex, an edge or a face, given the offset from the nearest point on
// it. `free` projects onto the directions in which the nearest point does not follow p (ROD-22).
Distance from_foot(Vec3 offset, const Mat3& free) {
  double length = norm(offset);
  if (length == 0) return {0, {0, 0, 1}, Mat3{}};  // no direction is distinguished
  Vec3 normal = (1 / length) * offset;
  return {length, normal, (1 / length) * difference(free, outer(normal, normal))};
}

}  // namespace

Distance Plane::distance(Vec3 p) const { return {dot(normal_, p) - offset_, normal_, Mat3{}}; }

Tube::Tube(std::vector<Vec3> vertices, double radius)
    : vertices_(std::move(vertices)), radius_(radius) {
  const int segments = static_cast<int>(vertices_.size()) - 1;
  for (int begin = 0; begin < segments; begin += kRun) {
    Run run{{}, 0, begin, std::min(begin + kRun, segments)};
    for (int i = run.begin; i <= run.end; i++) run.center += vertices_[i];
    run.center = (1.0 / (run.end - run.begin + 1)) * run.center;
    for (int i = run.begin; i <= run.end; i++) {
      run.radius = std::max(run.radius, norm(vertices_[i] - run.center));
    }
    runs_.push_back(run);
  }
}

Distance Tube::distance(Vec3 p) const {
  // nearest segment, without runs whose bounding ball is farther away
  int best = 0;
  double fraction = 0, least = INFINITY;
  for (const Run& run : runs_) {
    double apart = norm(p - run.center) - run.radius;
    if (apart > 0 && apart * apart > least) continue;
    for (int i = run.begin; i < run.end; i++) {
      double t = nearest(p, vertices_[i], vertices_[i + 1]);
      Vec3 offset = p - vertices_[i] - t * (vertices_[i + 1] - vertices_[i]);
      double square = dot(offset, offset);
      if (square < least) least = square, best = i, fraction = t;
    }
  }
  // nearest point on it: a vertex, or a point inside the segment
  Vec3 foot = vertices_[best];
  Mat3 free = identity3();
  if (fraction > 0) {
    Vec3 along = vertices_[best + 1] - vertices_[best];
    foot += fraction * along;
    if (fraction < 1) free = difference(free, (1 / dot(along, along)) * outer(along, along));
  }
  Distance d = from_foot(p - foot, free);
  d.value -= radius_;
  return d;
}

Distance Box::distance(Vec3 p) const {
  Vec3 local = transpose_mul(axes_, p - center_);
  double at[3], half[3], over[3];
  store3(at, local), store3(half, half_);
  for (int k = 0; k < 3; k++) over[k] = std::abs(at[k]) - half[k];
  Distance d;
  int face = static_cast<int>(std::max_element(over, over + 3) - over);
  if (over[face] <= 0) {
    d = {over[face], (at[face] < 0 ? -1.0 : 1.0) * unit3(face), Mat3{}};
  } else {
    // outside a face, an edge or a corner: the nearest point follows p in the other directions
    double offset[3] = {};
    Mat3 free{};
    for (int k = 0; k < 3; k++) {
      if (over[k] <= 0) continue;
      offset[k] = at[k] < 0 ? -over[k] : over[k];
      free(k, k) = 1;
    }
    d = from_foot(load3(offset), free);
  }
  return {d.value, axes_ * d.normal, axes_ * times_transposed(d.curvature, axes_)};
}

Distance Union::distance(Vec3 p) const {
  Distance least = parts_[0]->distance(p);
  for (size_t i = 1; i < parts_.size(); i++) {
    Distance d = parts_[i]->distance(p);
    if (d.value < least.value) least = d;
  }
  return least;
}

double Union::reach() const {
  double least = parts_[0]->reach();
  for (const auto& part : parts_) least = std::min(least, part->reach());
  return least;
}

Distance Complement::distance(Vec3 p) const {
  Distance d = shape_->distance(p);
  return {-d.value, -d.normal, (-1.0) * d.curvature};
}

}  // namespace mujacobian::rods
