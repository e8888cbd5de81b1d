// Pairs of a height field: one prism of the field against a convex geom.
#include <algorithm>
#include <cmath>
#include <optional>

#include "contact/agreement.h"
#include "contact/curved_pair.h"
#include "contact/pair_table.h"
#include "contact/prism.h"
#include "contact/vertex_pairs.h"
#include "layout/engine.h"
#include "layout/enums.h"

namespace mujacobian {
namespace {

constexpr double kOn = 1e-9;   // distance within which a point is on a feature
constexpr double kWider = 10;  // growth of a tolerance until features are found; the first are best

// The grid of a height field.
class HeightField {
 public:
  HeightField(const ModelView& m, const DataView& d, int geom_id, double margin)
      : geom_(load_geom(m, d, geom_id)) {
    const int id = m.geom_dataid[geom_id];
    rows_ = m.hfield_nrow[id], columns_ = m.hfield_ncol[id];
    size_ = m.hfield_size + 4 * id;
    heights_ = m.hfield_data + m.hfield_adr[id];
    step_[0] = 2 * size_[0] / (columns_ - 1), step_[1] = 2 * size_[1] / (rows_ - 1);
    // before 3.16 the detection distance lifts the field, and half of it inflates the other geom
    lift_ = engine().version < kMuJoCo316 ? margin : 0;
    fuzz_ = kOn + rounded_point_error(m, margin);
  }

  // Calls `visit` with the prisms under or over the world point p until it returns true.
  template <class Visit>
  bool find(Vec3 p, Visit&& visit) const {
    const Vec3 local = geom_.to_local(p);
    const double x = (local.x + size_[0]) / step_[0], y = (local.y + size_[1]) / step_[1];
    const double slack[2] = {fuzz_ / step_[0], fuzz_ / step_[1]};
    for (int r = cell(y - slack[1], rows_); r <= cell(y + slack[1], rows_); r++) {
      for (int c = cell(x - slack[0], columns_); c <= cell(x + slack[0], columns_); c++) {
        double above = (y - r) - (x - c);  // the cell's diagonal
        // tie: diagonal of a height field
        if (above > -slack[0] - slack[1] && visit(prism(r, c, r + 1, c))) return true;
        if (above < slack[0] + slack[1] && visit(prism(r, c, r, c + 1))) return true;
      }
    }
    return false;
  }

  // Radius that MuJoCo adds to the other geom.
  double inflation() const { return lift_ / 2; }

 private:
  static int cell(double x, int lines) {
    return static_cast<int>(std::clamp(std::floor(x), 0.0, lines - 2.0));
  }

  Vec3 top(int r, int c) const {
    return {step_[0] * c - size_[0], step_[1] * r - size_[1],
            heights_[r * columns_ + c] * size_[2] + lift_};
  }

  // Returns the prism over the triangle of the cell's diagonal and one of its other corners.
  Prism prism(int r, int c, int corner_r, int corner_c) const {
    const Vec3 tops[3] = {top(r, c), top(r + 1, c + 1), top(corner_r, corner_c)};
    Prism p;
    p.inflation = inflation();
    p.fuzz = fuzz_;
    for (int k = 0; k < 3; k++) {
      p.vertex[k] = geom_.to_world({tops[k].x, tops[k].y, -size_[3]});
      p.vertex[3 + k] = geom_.to_world(tops[k]);
    }
    return p;
  }

  Geom geom_;
  int rows_, columns_;
  const double* size_;  // half x, half y, height, depth of the base
  const float* heights_;
  double step_[2], lift_, fuzz_;
};

// Whether contacts of spheres and capsules within margins depend on the collider's tolerance, as
// those of boxes and meshes always do. Measured: MuJoCo 3.16 behaves as if margins rounded prisms.
bool rounds_fields() { return engine().version >= kMuJoCo316 && engine().version < kMuJoCo317; }

// Returns the other geom as a core with a radius.
Core make_core(const Geom& geom, const Polytope* polytope) {
  if (polytope) return {polytope, polytope->vertex_count(), {}, 0};
  if (geom.type == geom::kSphere) return {nullptr, 1, {geom.position, {}}, geom.size[0]};
  const Vec3 half = geom.size[1] * geom.axis();
  return {nullptr, 2, {geom.position - half, geom.position + half}, geom.size[0]};
}

}  // namespace

bool identify_height_field(const ModelView& m, const DataView& d, const ContactView& contact,
                           ContactGeometry& g) {
  const int id = contact.geom.v[1];
  const Geom other = load_geom(m, d, id);
  const bool sharp = other.type == geom::kBox || other.type == geom::kMesh;
  const bool round = other.type == geom::kSphere || other.type == geom::kCapsule;
  const bool curved = other.type == geom::kEllipsoid || other.type == geom::kCylinder;
  const double margin = detection(m, contact);
  const HeightField field(m, d, contact.geom.v[0], margin);
  const Vec3 witness = g.position - (g.distance / 2) * g.normal;
  if (sharp || round) {
    const std::optional<Polytope> polytope =
        sharp ? std::optional(Polytope(m, d, id)) : std::nullopt;
    Core core = make_core(other, polytope ? &*polytope : nullptr);
    core.radius += field.inflation();
    auto find = [&](const PairSearch& search) {
      return field.find(witness, [&](const Prism& prism) {
        return identify_simplex(prism.vertex, 6, core, search, g);
      });
    };
    // fewer than three pairs only if the cores are apart; otherwise MuJoCo may stop early
    const bool apart = g.distance + core.radius > 0;
    const int least = apart ? 1 : 3;
    if (find({least, kOn, kOn, apart})) return true;
    if (margin > 0 && (sharp || rounds_fields())) {
      const double most = rounded_agreement(m, margin), reach = m.geom_rbound[id];
      for (double error = kWider * kOn; error < kWider * most; error *= kWider) {
        if (find({least, error * reach, std::fmin(error, most), true})) return true;
      }
    }
    if (sharp) return false;
    // inside the prism MuJoCo uses the surface of the round geom, not its core
    if (g.distance + core.radius > m.opt.ccd_tolerance) return false;
  }
  // a witness point on a side that two prisms share belongs to only one of them
  return (round || curved) && field.find(witness, [&](const Prism& prism) {
    if (!find_supports(m, d, contact, &prism, g)) return false;
    const Vec3 point = std::get<SupportFeature>(g.feature).side[0].point;
    return norm(point - witness) < curved_agreement(m);
  });
}

}  // namespace mujacobian
