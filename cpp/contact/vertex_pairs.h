// The search for the pairs of vertices with which the convex collider ends, see SimplexFeature.
#pragma once

#include "contact/geometry.h"
#include "contact/polytope.h"

namespace mujacobian {

// A polytope with a radius. Its vertices are those of a box or mesh or of one of their faces, the
// ends of a capsule, or the center of a sphere.
struct Core {
  static constexpr int kRoom = 8;
  const Polytope* polytope;  // null: the vertices are `points`
  int count;
  Vec3 points[kRoom];
  double radius;
  Vec3 vertex(int i) const { return polytope ? polytope->vertex(i) : points[i]; }
};

// Conditions on the pairs.
struct PairSearch {
  int least;         // least number of pairs
  double level;      // tolerance of their height over the plane of the contact
  double agreement;  // tolerance of the contact that they determine
  bool outermost;    // the contact is optimal; false if the collider stops early
};

// Sets the weights of the pairs at the point nearest to the origin.                       (CON-21)
void weigh(SimplexFeature& c);

// Finds the pairs that make the contact, each with one of `count` vertices of geom 0 and a vertex
// of the core of geom 1. Returns false if there are none.
bool identify_simplex(const Vec3* vertices, int count, const Core& core, const PairSearch& search,
                      ContactGeometry& g);

// The same for two polytopes that penetrate: the three pairs of the facet at which the collider
// stopped. They need not be farthest along the normal.                                    (CON-36)
bool identify_facet(const Polytope p[2], ContactGeometry& g);

// The same if a margin rounds the polytopes, so that the collider finds their contact only to its
// tolerance: the three pairs of the optimum within `agreement` of the contact.
bool identify_rounded(const Polytope p[2], double agreement, ContactGeometry& g);

}  // namespace mujacobian
