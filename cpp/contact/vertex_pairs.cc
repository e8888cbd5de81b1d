#include "contact/vertex_pairs.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;      // length below which a vector counts as zero
constexpr double kLevel = 1e-13;  // the same for heights that are exact up to rounding
constexpr int kRoom = 24;  // pairs at the same height, three unless edges or faces are parallel

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
  double excess;  // by how much the farthest vertices are beyond the plane of the contact
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

// A vertex and how far it is behind the farthest one along a direction.
struct Laggard {
  double behind;
  int vertex;
};

// Height of the vertex of the hull that is farthest along a direction in the frame of the geom.
double farthest(const Polytope& p, Vec3 local) {
  double most = -INFINITY;
  for (int k = 0; k < p.hull_count(); k++) {
    most = std::fmax(most, p.height(p.hull_vertex(k), local));
  }
  return most;
}

// Returns the vertices of the hull that are behind `most` by at most `limit`, the farthest first.
std::vector<Laggard> find_laggards(const Polytope& p, Vec3 local, double most, double limit) {
  std::vector<Laggard> found;
  for (int k = 0; k < p.hull_count(); k++) {
    const double behind = most - p.height(p.hull_vertex(k), local);
    if (behind <= limit) found.push_back({behind, p.hull_vertex(k)});
  }
  std::sort(found.begin(), found.end(),
            [](const Laggard& a, const Laggard& b) { return a.behind < b.behind; });
  return found;
}

// Returns all pairs of vertices of two polytopes in the plane of the contact. The vertices of a
// pair are behind the farthest ones by distances that have the same sum for all pairs. (CON-36)
Candidates level_pairs(const Polytope p[2], const ContactGeometry& g) {
  Candidates found;
  found.count = 0;
  Vec3 local[2];
  double most[2], sum = g.distance;
  for (int s = 0; s < 2; s++) {
    const Vec3 outward = s ? -g.normal : g.normal;
    local[s] = transpose_mul(p[s].geom().frame, outward);
    most[s] = farthest(p[s], local[s]);
    sum += most[s] + dot(outward, p[s].geom().position);
  }
  found.excess = sum;
  const std::vector<Laggard> first = find_laggards(p[0], local[0], most[0], sum + kLevel);
  const std::vector<Laggard> second = find_laggards(p[1], local[1], most[1], sum + kLevel);
  auto is_less = [](const Laggard& x, double behind) { return x.behind < behind; };
  for (const Laggard& a : first) {
    const double rest = sum - a.behind;
    auto b = std::lower_bound(second.begin(), second.end(), rest - kLevel, is_less);
    for (; b != second.end() && b->behind < rest + kLevel && found.count < kRoom; ++b) {
      found.point[0][found.count] = p[0].vertex(a.vertex);
      found.point[1][found.count++] = p[1].vertex(b->vertex);
    }
  }
  return found;
}

bool has_positive_weights(const SimplexFeature& c) {
  for (int k = 0; k < c.size; k++) {
    if (c.weight[k] < -kOn) return false;
  }
  return true;
}

// Whether the contact of c is between its pairs, and no pair is nearer along its normal n.
bool is_outermost(const SimplexFeature& c, Vec3 n, const Vec3* vertices, int count,
                  const Core& core) {
  if (!has_positive_weights(c)) return false;
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

// Sets the pairs of `c` to the accepted ones that reproduce the contact best. Returns false if none
// do within the tolerance of c.
template <class Accept>
bool choose_pairs(const Candidates& candidates, const ContactGeometry& g, Accept&& accept,
                  SimplexFeature& c) {
  double best = c.tolerance;
  SimplexFeature tried = c;
  int choice[3] = {0, 1, 2};
  do {
    for (int k = 0; k < c.size; k++) {
      for (int s = 0; s < 2; s++) tried.point[s][k] = candidates.point[s][choice[k]];
    }
    weigh(tried);
    const ContactPoint r = rederive(tried, g.normal);
    const double e = mismatch(r, g);
    if (e < best && accept(tried, r.normal)) best = e, c = tried;
  } while (advance(choice, c.size, candidates.count));
  return best < c.tolerance;
}

}  // namespace

void weigh(SimplexFeature& c) {
  const SimplexBasis b = simplex_basis(c);
  const Vec3 first = difference(c, 0);
  c.weight[0] = 1;
  for (int i = 0; i < b.size; i++) {
    c.weight[i + 1] = -dot(b.dual[i], first);
    c.weight[0] -= c.weight[i + 1];
  }
}

bool identify_simplex(const Vec3* vertices, int count, const Core& core, const PairSearch& search,
                      ContactGeometry& g) {
  const Candidates candidates = level_pairs(vertices, count, core, search.level, g);
  auto accept = [&](const SimplexFeature& c, Vec3 normal) {
    return !search.outermost || is_outermost(c, normal, vertices, count, core);
  };
  for (int size = search.least; size <= std::min(3, candidates.count); size++) {
    SimplexFeature found{.size = size, .radius = core.radius, .tolerance = search.agreement};
    if (!choose_pairs(candidates, g, accept, found)) continue;
    g.feature = found;
    g.region = region(found, vertices, count, core, g);
    return true;
  }
  return false;
}

bool identify_facet(const Polytope p[2], ContactGeometry& g) {
  const Candidates candidates = level_pairs(p, g);
  SimplexFeature found{.size = 3, .tolerance = kOn};
  auto is_between = [](const SimplexFeature& c, Vec3) { return has_positive_weights(c); };
  if (candidates.count < 3 || !choose_pairs(candidates, g, is_between, found)) return false;
  g.feature = found;
  g.region = until_fewer(found, simplex_basis(found));
  g.excess = std::fmax(0, candidates.excess);
  return true;
}

bool identify_rounded(const Polytope p[2], double agreement, ContactGeometry& g) {
  constexpr double kWider = 10;  // the fewer candidates, the better
  const Vec3 local = transpose_mul(p[0].geom().frame, g.normal);
  const double widest = agreement * norm(load3(p[0].geom().size));
  std::vector<Vec3> vertices;
  for (const Laggard& v : find_laggards(p[0], local, farthest(p[0], local), 2 * widest)) {
    vertices.push_back(p[0].vertex(v.vertex));
  }
  const Core core{&p[1], p[1].vertex_count(), {}, 0};
  for (double level = kOn; level < kWider * widest; level *= kWider) {
    const PairSearch search{3, level, agreement, true};
    if (identify_simplex(vertices.data(), static_cast<int>(vertices.size()), core, search, g)) {
      return true;
    }
  }
  return false;
}

}  // namespace mujacobian
