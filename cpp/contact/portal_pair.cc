// Pairs of boxes and meshes that MuJoCo's legacy collider handles.
#include <algorithm>
#include <cmath>
#include <vector>

#include "contact/agreement.h"
#include "contact/pair_table.h"
#include "contact/polytope.h"
#include "contact/vertex_pairs.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;  // tolerance of the contact, and of shares below zero

// The vertices of a geom that are farthest along a direction.
struct Outermost {
  int count;
  Vec3 vertex[Core::kRoom];

  Outermost(const Polytope& p, Vec3 direction) {
    int id[Core::kRoom];
    count = p.support(direction, id, Core::kRoom);
    for (int k = 0; k < count; k++) vertex[k] = p.vertex(id[k]);
  }
};

// Whether the facets of the differences are those of a vertex and a face or of two crossing edges.
// Between other parts, which are parallel, the collider changes its portal with every motion.
bool is_transversal(const Outermost part[2]) {
  if (part[0].count == 1 || part[1].count == 1) return part[0].count + part[1].count > 3;
  if (part[0].count > 2 || part[1].count > 2) return false;
  const Vec3 first = part[0].vertex[1] - part[0].vertex[0];
  const Vec3 second = part[1].vertex[1] - part[1].vertex[0];
  return norm(cross(first, second)) > kOn * norm(first) * norm(second);
}

// Whether the nearest point is between its pairs, and the ray passes through the facet.
bool is_inside(const PortalFeature& f) {
  const PortalShares share = portal_shares(f);
  double least = share.center;
  for (int k = 0; k < 3; k++) least = std::fmin(least, share.pair[k]);
  for (int k = 0; k < f.facet.size; k++) least = std::fmin(least, f.facet.weight[k]);
  return least > -kOn;
}

// Sets the pairs of the facet to the three that reproduce MuJoCo's contact best. Returns false if
// none do within the tolerance of the facet.
bool choose_pairs(const Outermost part[2], const ContactGeometry& g, PortalFeature& f) {
  // the pairs, as indices of the vertices of geom 0 and geom 1
  const int count = part[0].count * part[1].count;
  double best = f.facet.tolerance;
  PortalFeature tried = f;
  auto take = [&](int k, int pair) {
    tried.facet.point[0][k] = part[0].vertex[pair / part[1].count];
    tried.facet.point[1][k] = part[1].vertex[pair % part[1].count];
  };
  for (int i = 0; i < count; i++) {
    for (int j = i + 1; j < count; j++) {
      for (int k = j + 1; k < count; k++) {
        take(0, i), take(1, j), take(2, k);
        weigh(tried.facet);
        const double error = mismatch(rederive(tried, g.normal), g);
        if (error < best && is_inside(tried)) best = error, f = tried;
      }
    }
  }
  return best < f.facet.tolerance;
}

// The vertices of a hull with their heights along a direction, the lowest first.
struct Vertex {
  double height;
  Vec3 point;
};
std::vector<Vertex> sorted_vertices(const Polytope& p, Vec3 direction) {
  std::vector<Vertex> all;
  for (int k = 0; k < p.hull_count(); k++) {
    const Vec3 x = p.vertex(p.hull_vertex(k));
    all.push_back({dot(direction, x), x});
  }
  std::sort(all.begin(), all.end(),
            [](const Vertex& a, const Vertex& b) { return a.height < b.height; });
  return all;
}

// The same if the nearest point of the portal is on an edge: the two pairs of the edge are at the
// height of the contact, and the third pair can be any one.
bool choose_edge(const Polytope p[2], const ContactGeometry& g, PortalFeature& f) {
  const std::vector<Vertex> first = sorted_vertices(p[0], g.normal);
  const std::vector<Vertex> second = sorted_vertices(p[1], g.normal);
  Vec3 level[2][2];
  int count = 0;
  auto is_lower = [](const Vertex& v, double height) { return v.height < height; };
  for (const Vertex& a : first) {
    const double height = a.height + g.distance;
    auto b = std::lower_bound(second.begin(), second.end(), height - kOn, is_lower);
    for (; b != second.end() && b->height < height + kOn; ++b) {
      if (count == 2) return false;  // more than an edge
      level[0][count] = a.point, level[1][count++] = b->point;
    }
  }
  if (count != 2) return false;
  f.facet.size = 2;
  for (int s = 0; s < 2; s++) std::copy(level[s], level[s] + 2, f.facet.point[s]);
  weigh(f.facet);
  const ContactPoint nearest = rederive(f.facet, g.normal);
  if (!(norm(nearest.normal - g.normal) + std::abs(nearest.distance - g.distance) < kOn)) {
    return false;
  }
  double best = f.facet.tolerance;
  PortalFeature tried = f;
  for (const Vertex& a : first) {
    for (const Vertex& b : second) {
      tried.facet.point[0][2] = a.point, tried.facet.point[1][2] = b.point;
      const double error = norm(portal_position(tried) - g.position);
      if (error < best && is_inside(tried)) best = error, f = tried;
    }
  }
  return best < f.facet.tolerance;
}

}  // namespace

bool identify_portal(const ModelView& m, const DataView& d, const ContactView& contact,
                     ContactGeometry& g) {
  if (detection(m, contact) > 0) {
    g.refusal = "the legacy collider (flag nativeccd) rounds geoms with a margin, and stops early";
    return false;
  }
  const Polytope p[2] = {{m, d, contact.geom.v[0], &g.walked[0]},
                         {m, d, contact.geom.v[1], &g.walked[1]}};
  const Outermost part[2] = {{p[0], g.normal}, {p[1], -g.normal}};
  g.refusal =
      "the legacy collider (flag nativeccd) did not end at a vertex and a face, or at two edges";
  PortalFeature found;
  found.facet = {.size = 3, .tolerance = kOn};
  for (int s = 0; s < 2; s++) found.center[s] = p[s].geom().position;
  const bool at_facet = is_transversal(part) && choose_pairs(part, g, found);
  if (!at_facet && !choose_edge(p, g, found)) return false;
  g.feature = found;
  return true;
}

}  // namespace mujacobian
