#include "contact/simplex.h"

#include <algorithm>
#include <cmath>

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;  // length of what is zero
constexpr int kRoom = 24;     // pairs at the same height, three unless edges or faces are parallel

// w_k = b_k - a_k
Vec3 difference(const SimplexContact& c, int k) { return c.point[1][k] - c.point[0][k]; }

// Edges e_i = w_i - w_0 and their dual basis d_i . e_j = delta_ij in the span of the edges.
// (CON-21)
struct Basis {
  int size;
  Vec3 edge[2], dual[2], cross;
};

Basis make_basis(const SimplexContact& c) {
  Basis b{c.size - 1, {}, {}, {}};
  for (int i = 0; i < b.size; i++) b.edge[i] = difference(c, i + 1) - difference(c, 0);
  if (b.size == 1) b.dual[0] = (1 / dot(b.edge[0], b.edge[0])) * b.edge[0];
  if (b.size == 2) {
    b.cross = cross(b.edge[0], b.edge[1]);
    double area = dot(b.cross, b.cross);
    b.dual[0] = (1 / area) * cross(b.edge[1], b.cross);
    b.dual[1] = (1 / area) * cross(b.cross, b.edge[0]);
  }
  return b;
}

// Weights of the pairs at the point nearest to the origin.
void weigh(SimplexContact& c) {
  const Basis b = make_basis(c);
  const Vec3 first = difference(c, 0);
  c.weight[0] = 1;
  for (int i = 0; i < b.size; i++) {
    c.weight[i + 1] = -dot(b.dual[i], first);
    c.weight[0] -= c.weight[i + 1];
  }
}

// How far the nearest point is from where it needs fewer pairs.
double until_fewer(const SimplexContact& c, const Basis& b) {
  if (b.size == 0) return INFINITY;
  double least = std::abs(c.weight[0]) / norm(b.dual[0] + b.dual[1]);
  for (int i = 0; i < b.size; i++) {
    least = std::fmin(least, std::abs(c.weight[i + 1]) / norm(b.dual[i]));
  }
  return least;
}

// How far it is from where the pair (a, b) joins: with e the part across the simplex of the way to
// it, the normal must turn by n . e / |e|.
double until_joined(const SimplexContact& c, const Basis& basis, Vec3 a, Vec3 b, double reach,
                    Vec3 n) {
  Vec3 e = b - a - difference(c, 0);
  for (int i = 0; i < basis.size; i++) e = e - dot(basis.dual[i], e) * basis.edge[i];
  double length = norm(e);
  return length < kOn ? INFINITY : reach * std::fmax(0, dot(n, e)) / length;
}

double region(const Vec3* vertices, int count, const Core& core, const ContactGeometry& g) {
  const SimplexContact& c = g.simplex;
  const Basis b = make_basis(c);
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

double error(const Rederived& r, const ContactGeometry& g) {
  return norm(r.position - g.position) + norm(r.normal - g.normal) +
         std::abs(r.distance - g.distance);
}

// The pairs among which those of a contact are.
struct Candidates {
  int count;
  Vec3 point[2][kRoom];
};

// Heights of the vertices of a core along n, without turning every vertex of a mesh to the world.
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

// All pairs at the contact's height: n . (b - a) = dist + radius
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

// The contact of c is between its pairs, and no pair is nearer along its normal n.
bool is_outermost(const SimplexContact& c, Vec3 n, const Vec3* vertices, int count,
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
    int choice[3] = {0, 1, 2};
    do {
      SimplexContact c{size, {}, {}, core.radius, search.agreement};
      for (int k = 0; k < size; k++) {
        for (int s = 0; s < 2; s++) c.point[s][k] = candidates.point[s][choice[k]];
      }
      weigh(c);
      const Rederived r = rederive(c, g.normal);
      const double e = error(r, g);
      if (!(e < best)) continue;
      if (search.outermost && !is_outermost(c, r.normal, vertices, count, core)) continue;
      best = e, g.simplex = c;
    } while (advance(choice, size, candidates.count));
    if (best == search.agreement) continue;
    g.kind = ContactGeometry::kSimplex;
    g.region = region(vertices, count, core, g);
    return true;
  }
  return false;
}

Rederived rederive(const SimplexContact& c, Vec3 towards) {
  Vec3 witness[2] = {};
  for (int s = 0; s < 2; s++) {
    for (int k = 0; k < c.size; k++) witness[s] += c.weight[k] * c.point[s][k];
  }
  // a plane has a normal even where the witness points meet
  Vec3 normal = c.size == 3 ? make_basis(c).cross : witness[1] - witness[0];
  normal = (std::copysign(1, dot(normal, towards)) / norm(normal)) * normal;
  double distance = dot(normal, difference(c, 0)) - c.radius;
  return {0.5 * (witness[0] + witness[1] - c.radius * normal), normal, distance};
}

// With u = sum of weight dw and t = sum of d_i (de_i . n):
//   d(weight_i) = -d_i . (u + D t),   dn = -t + (u across n and the edges) / D          (CON-22)
ContactVariation vary_simplex(const ContactGeometry& g, const Motion motion[2]) {
  const SimplexContact& c = g.simplex;
  const Basis b = make_basis(c);
  const double reach = g.distance + c.radius;
  const Vec3 n = g.between();
  Vec3 moved[3], sum[3], carried{}, middle{}, tilt{};
  for (int k = 0; k < c.size; k++) {
    Vec3 v0 = at_point(motion[0], c.point[0][k] - g.position);
    Vec3 v1 = at_point(motion[1], c.point[1][k] - g.position);
    moved[k] = v1 - v0;
    sum[k] = c.point[0][k] + c.point[1][k];
    carried += c.weight[k] * moved[k];
    middle += c.weight[k] * (v0 + v1);
  }
  for (int i = 0; i < b.size; i++) tilt += dot(moved[i + 1] - moved[0], n) * b.dual[i];

  ContactVariation v;
  v.distance = dot(n, carried);
  Vec3 aside = carried - v.distance * n;
  for (int i = 0; i < b.size; i++) {
    aside = aside - dot(b.dual[i], carried) * b.edge[i];
    middle += -dot(b.dual[i], carried + reach * tilt) * (sum[i + 1] - sum[0]);
  }
  v.turn = -tilt;  // of the normal, completed by the caller
  if (c.size < 3) v.turn += (1 / reach) * aside;
  v.position = 0.5 * (middle - c.radius * v.turn);
  return v;
}

}  // namespace mujacobian
