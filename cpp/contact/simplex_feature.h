// Feature: one to three pairs of vertices, one of each geom, whose differences w_k = b_k - a_k span
// a point, a line or a plane. The point of it nearest to the origin is the vector between the two
// witness points.                                                                         (CON-20)
#pragma once

#include "contact/contact_point.h"

namespace mujacobian {

struct SimplexFeature {
  int size = 0;          // number of pairs
  Vec3 point[2][3]{};    // vertices of geom 0, of geom 1
  double weight[3]{};    // of the pairs at the contact; their sum is one
  double radius = 0;     // around the vertices of geom 1
  double tolerance = 0;  // how well the pairs must reproduce MuJoCo's contact
};

// Edges e_i = w_i - w_0 and their dual basis: d_i . e_j = delta_ij, d_i in their span. (CON-21)
struct SimplexBasis {
  int size;
  Vec3 edge[2], dual[2];
  Vec3 cross;  // edge[0] x edge[1], of three pairs
};
SimplexBasis simplex_basis(const SimplexFeature& f);

// w_k = b_k - a_k
inline Vec3 difference(const SimplexFeature& f, int k) { return f.point[1][k] - f.point[0][k]; }

// `normal` distinguishes the two sides of a plane.
ContactPoint rederive(const SimplexFeature& f, Vec3 normal);
double slack(const SimplexFeature& f, Vec3 normal);
double agreement(const SimplexFeature& f, double curved);
ContactPoint vary(const SimplexFeature& f, const ContactPoint& at, const Motion motion[2]);
Growth grow(const SimplexFeature& f, const Geom& geom, int side, int component);
std::string describe(const SimplexFeature& f);

}  // namespace mujacobian
