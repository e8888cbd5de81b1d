#include "rods/nearest.h"

#include <algorithm>
#include <cmath>

namespace mujacobian::rods {
namespace {

constexpr double kReduction = 0.2;  // of the barrier from one iteration to the next
constexpr double kReach = 0.9;      // fraction of the distance from 0 or 1 that a step may go
constexpr double kSmall = 1e-8;     // step relative to this distance; the next one is its square
constexpr int kIterations = 200;

// A fraction between 0 and 1, and its distance from 1 without cancellation
struct Fraction {
  double value = 0.5, rest = 0.5;

  double slope() const { return 1 / rest - 1 / value; }  // of phi
  double curvature() const { return 1 / (rest * rest) + 1 / (value * value); }
  double phi() const { return -std::log(4 * value * rest); }
  double room() const { return std::min(value, rest); }
  void move(double step) { value += step, rest -= step; }
};

}  // namespace

Nearest nearest(Vec3 offset, Vec3 e, Vec3 f, double barrier) {
  const double ee = dot(e, e), ef = dot(e, f), ff = dot(f, f);
  const double st = -2 * ef;
  Fraction s, t;
  // Newton's method while a large barrier shrinks to the given one
  double strength = std::max(barrier, ee + ff + dot(offset, offset));
  for (int k = 0; k < kIterations; k++) {
    const Vec3 w = offset + s.value * e - t.value * f;
    const double g = 2 * dot(w, e) + strength * s.slope();
    const double h = -2 * dot(w, f) + strength * t.slope();
    const double ss = 2 * ee + strength * s.curvature(), tt = 2 * ff + strength * t.curvature();
    const double determinant = ss * tt - st * st;
    const double ds = (st * h - tt * g) / determinant, dt = (st * g - ss * h) / determinant;
    const double size = std::max(std::abs(ds) / s.room(), std::abs(dt) / t.room());
    const double scale = std::min(1.0, kReach / size);
    s.move(scale * ds), t.move(scale * dt);
    if (strength == barrier && !(size > kSmall)) break;
    strength = std::max(barrier, kReduction * strength);
  }
  const Vec3 w = offset + s.value * e - t.value * f;
  return {s.value,
          t.value,
          dot(w, w) + barrier * (s.phi() + t.phi()),
          2 * ee + barrier * s.curvature(),
          st,
          2 * ff + barrier * t.curvature()};
}

}  // namespace mujacobian::rods
