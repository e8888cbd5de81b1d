#include "contact/vertex_pairs.h"

#include <algorithm>
#include <cmath>

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;  // length below which a vector counts as zero
constexpr int kRoom = 24;     // pairs at the same height, three unless edges or faces are parallel

// Sets the weights of the pairs at the point nearest to the origin.                       (CON-21)
void weigh(SimplexFeature& c) {
  const SimplexBasis b = simplex_basis(c);
  const Vec3 first = difference(c, 0);
  c.weight[0] = 1;
  for (int i = 0; i < b.size; i++) {
    c.weight[i + 1] = -dot(b.dual[i], first);
    c.weight[0] -= c.weight[i + 1];
  }
}

// Distance of the nearest point from where fewer pairs determine it.
double until_fewer(const SimplexFeature& c, const SimplexBasis& b) {
  if (b.size == 0) return INFINITY;
  double least = std::abs(c.weight[0]) / norm(b.dual[0] + b.dual[1]);
  for (int i = 0; i < b.size; i++) {
    least = std::fmin(least, std::abs(c.weight[i + 1]) / norm(b.dual[i]));
  }
  return least;
}

// Its distance from where the pair (a, b) joins. With e the part across the simplex of the vector
// to this pair, the normal must turn by n . e / |e|.
double until_joined(const SimplexFeature& c, const SimplexBasis& basis, Vec3 a, Vec3 b,
                    double reach, Vec3 n) {
  Vec3 e = b - a - difference(c, 0);
  for (int i = 0; i < basis.size; i++) e = e - dot(basis.dual[i], e) * basis.edge[i];
  double length = norm(e);
  return length < kOn ? INFINITY : reach * std::fmax(0, dot(n, e)) / length;
}

double region(const SimplexFeature& c, const Vec3* vertices, int count, const Core& core,
              const ContactGeometry& g) {
  const SimplexBasis b = simplex_basis(c);
  double least = until_fewer(c, b);
  if (c.size == 3) return least;  // nothing turns the normal of a plane
  for (int i = 0; i < core.count; i++) {
    for (int k = 0; k < count; k++) {
      double joined =
          until_joined(c, b, vertices[k], core.vertex(i), g.distance + c.radius, g.normal);
      least = std::fmin(least, joined);
    }
  }
  return least;
}

// Candidates for the pairs of a contact.
struct Candidates {
  int count;
  Vec3 point[2][kRoom];
};

// Heights of the vertices of a core along n, computed in the frame of its geom.
class Heights {
 public:
  Heights(const Core& core, Vec3 n) : core_(core), direction_(n), origin_(0) {
    if (!core.polytope) return;
    const Geom& geom = core.polytope->geom();
    direction_ = transpose_mul(geom.frame, n);
    origin_ = dot(n, geom.position);
  }
  double operator[](int i) const {
    return core_.polytope ? origin_ + core_.polytope->height(i, direction_)
                          : dot(direction_, core_.points[i]);
  }

 private:
  const Core& core_;
  Vec3 direction_;
  double origin_;
};

// Returns all pairs at the height of the contact: n . (b - a) = dist + radius.
Candidates level_pairs(const Vec3* vertices, int count, const Core& core, double level,
                       const ContactGeometry& g) {
  Candidates found;
  found.count = 0;
  const Heights heights(core, g.normal);
  double lowest = INFINITY, highest = -INFINITY;
  for (int k = 0; k < count; k++) {
    double height = dot(g.normal, vertices[k]);
    lowest = std::fmin(lowest, height), highest = std::fmax(highest, height);
  }
  for (int i = 0; i < core.count; i++) {
    double height = heights[i] - g.distance - core.radius;
    if (!(height > lowest - level && height < highest + level)) continue;
    for (int k = 0; k < count && found.count < kRoom; k++) {
      if (!(std::abs(dot(g.normal, vertices[k]) - height) < level)) continue;
      found.point[0][found.count] = vertices[k];
      found.point[1][found.count++] = core.vertex(i);
    }
  }
  return found;
}

// Whether the contact of c is between its pairs, and no pair is nearer along its normal n.
bool is_outermost(const SimplexFeature& c, Vec3 n, const Vec3* vertices, int count,
                  const Core& core) {
  for (int k = 0; k < c.size; k++) {
    if (c.weight[k] < -kOn) return false;
  }
  const double reach = dot(n, difference(c, 0));
  const Heights heights(core, n);
  double highest = -INFINITY;
  for (int k = 0; k < count; k++) highest = std::fmax(highest, dot(n, vertices[k]));
  for (int i = 0; i < core.count; i++) {
    if (heights[i] - highest < reach - kOn) return false;
  }
  return true;
}

// The next choice of `size` out of `count` in rising order.
bool advance(int* choice, int size, int count) {
  for (int k = size - 1; k >= 0; k--) {
    if (++choice[k] > count - size + k) continue;
    for (int next = k + 1; next < size; next++) choice[next] = choice[next - 1] + 1;
    return true;
  }
  return false;
}

}  // namespace

bool identify_simplex(const Vec3* vertices, int count, const Core& core, const PairSearch& search,
                      ContactGeometry& g) {
  const Candidates candidates = level_pairs(vertices, count, core, search.level, g);
  for (int size = search.least; size <= std::min(3, candidates.count); size++) {
    double best = search.agreement;
    SimplexFeature found;
    int choice[3] = {0, 1, 2};
    do {
      SimplexFeature c{.size = size, .radius = core.radius, .tolerance = search.agreement};
      for (int k = 0; k < size; k++) {
        for (int s = 0; s < 2; s++) c.point[s][k] = candidates.point[s][choice[k]];
      }
      weigh(c);
      const ContactPoint r = rederive(c, g.normal);
      const double e = mismatch(r, g);
      if (!(e < best)) continue;
      if (search.outermost && !is_outermost(c, r.normal, vertices, count, core)) continue;
      best = e, found = c;
    } while (advance(choice, size, candidates.count));
    if (best == search.agreement) continue;
    g.feature = found;
    g.region = region(found, vertices, count, core, g);
    return true;
  }
  return false;
}

}  // namespace mujacobian
