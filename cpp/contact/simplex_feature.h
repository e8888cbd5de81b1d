// Feature: one to three pairs of vertices, one of each geom, whose differences w_k = b_k - a_k span
// a point, a line or a plane. The point of it nearest to the origin is the vector between the two
// witness points.                                                                         (CON-20)
#pragma once

#include "contact/contact_point.h"

namespace mujacobian {

template <class S>
struct SimplexFeatureT {
  int size = 0;            // number of pairs
  Vec3T<S> point[2][3]{};  // vertices of geom 0, of geom 1
  S weight[3]{};           // of the pairs at the contact; their sum is one
  double radius = 0;       // around the vertices of geom 1
  double tolerance = 0;    // how well the pairs must reproduce MuJoCo's contact
};
using SimplexFeature = SimplexFeatureT<double>;

// The pairs as constants of type S.
template <class S>
SimplexFeatureT<S> constant(const SimplexFeature& f) {
  SimplexFeatureT<S> result{.size = f.size, .radius = f.radius, .tolerance = f.tolerance};
  for (int k = 0; k < f.size; k++) {
    for (int s = 0; s < 2; s++) result.point[s][k] = f.point[s][k];
    result.weight[k] = f.weight[k];
  }
  return result;
}

// Edges e_i = w_i - w_0 and their dual basis: d_i . e_j = delta_ij, d_i in their span. (CON-21)
template <class S>
struct SimplexBasisT {
  int size;
  Vec3T<S> edge[2], dual[2];
  Vec3T<S> cross;  // edge[0] x edge[1], of three pairs
};
using SimplexBasis = SimplexBasisT<double>;
template <class S>
SimplexBasisT<S> simplex_basis(const SimplexFeatureT<S>& f);

// w_k = b_k - a_k
template <class S>
Vec3T<S> difference(const SimplexFeatureT<S>& f, int k) {
  return f.point[1][k] - f.point[0][k];
}

// `normal` distinguishes the two sides of a plane.
ContactPoint rederive(const SimplexFeature& f, Vec3 normal);
double slack(const SimplexFeature& f, Vec3 normal);
double agreement(const SimplexFeature& f, double curved);
template <class S>
ContactPointT<S> vary(const SimplexFeatureT<S>& f, const ContactPointT<S>& at,
                      const MotionT<S> motion[2]);
template <class S>
SimplexFeatureT<S> moved(const SimplexFeature& f, const ContactPoint& at,
                         const MotionT<S> motion[2], const ContactSource& source);
Growth grow(const SimplexFeature& f, const Geom& geom, int side, int component);
std::string describe(const SimplexFeature& f);

}  // namespace mujacobian
