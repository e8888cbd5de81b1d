// Contacts by pairs of vertices, as the convex collider leaves them: one to three pairs, one vertex
// of each geom, whose differences span a point, a line or a plane; the point of it nearest to the
// origin is the vector between the two witness points. docs/derivations/contacts.md, (CON-20).
#pragma once

#include "contact/polytope.h"

namespace mujacobian {

// A polytope with a radius: its vertices are those of a box or mesh, or of one of their faces, the
// ends of a capsule or the center of a sphere.
struct Core {
  static constexpr int kRoom = 8;
  const Polytope* polytope;  // null: the points
  int count;
  Vec3 points[kRoom];
  double radius;
  Vec3 vertex(int i) const { return polytope ? polytope->vertex(i) : points[i]; }
};

// How pairs are sought.
struct PairSearch {
  int least;         // how many there are at least
  double level;      // how exactly they have the same height over the contact's plane
  double agreement;  // how exactly they reproduce the contact
  bool outermost;    // the contact is optimal: not so where the collider stops early
};

// Finds the pairs of one of `count` vertices of geom 0 and one of the core of geom 1 that make the
// contact; false if there are none.
bool identify_simplex(const Vec3* vertices, int count, const Core& core, const PairSearch& search,
                      ContactGeometry& g);

// `towards` tells the two sides of a plane apart.
Rederived rederive(const SimplexContact& c, Vec3 towards);

ContactVariation vary_simplex(const ContactGeometry& g, const Motion motion[2]);

}  // namespace mujacobian
