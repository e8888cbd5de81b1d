#include "contact/identification.h"

#include <cmath>
#include <limits>

#include "contact/agreement.h"
#include "contact/collider.h"
#include "contact/kinematics.h"
#include "contact/pair_table.h"
#include "contact/perturbed_manifold.h"
#include "contact/polytope.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/notice.h"
#include "layout/unsupported.h"

namespace mujacobian {
namespace {

// Centers at a smaller distance, in meters, coincide up to rounding.
constexpr double kCoincident = 1e-12;

// Sets g to MuJoCo's contact, whose features are not known yet.
void load_contact(const ContactView& contact, const ContactGeometry* before, ContactGeometry& g) {
  g.twin.reset();
  g.position = load3(contact.pos.v);
  g.normal = load3(contact.frame.v);
  g.tangent[0] = load3(contact.frame.v + 3);
  g.tangent[1] = load3(contact.frame.v + 6);
  g.distance = contact.dist;
  g.flipped = false;
  g.line = {0, 0, 0};
  g.region = std::numeric_limits<double>::infinity();
  g.excess = 0;
  g.hint_owner = -1;
  g.first = nullptr;
  for (int s = 0; s < 2; s++) {
    g.geom[s] = contact.geom.v[s];
    g.walked[s] = before && before->geom[s] == g.geom[s] ? before->walked[s] : Polytope::kAnywhere;
  }
}

// The vector that directs the first tangent: the axis of a capsule on a plane, otherwise the y axis
// of the world, or its z axis where the normal is close to y.
Vec3 frame_hint(const ContactGeometry& g, const Geom& owner) {
  if (g.hint_owner >= 0) return owner.axis();
  // tie: hint of a frame
  if (g.normal.y < 0.5 && g.normal.y > -0.5) return {0, 1, 0};
  return {0, 0, 1};
}

// Searches for the features of one contact.
class Search {
 public:
  Search(const ModelView& m, const DataView& d, const ContactView& contact)
      : m_(m), d_(d), contact_(contact) {}

  // A function has found features, which need not reproduce the contact.
  bool found_any() const { return found_any_; }

  // Identifies the features of g by `way`; false if they do not reproduce MuJoCo's contact. The
  // functions of the table read only the normal from geom 0 to geom 1.
  bool identify(Identify* way, ContactGeometry& g) { return identify(way, d_, g.between(), g); }
  // The same for the geoms of `d` and a normal that may differ from MuJoCo's.
  bool identify(Identify* way, const DataView& d, Vec3 between, ContactGeometry& g) {
    const Vec3 normal = g.normal;
    g.normal = between;
    double error = std::numeric_limits<double>::infinity(), limit = 0;
    if (way(m_, d, contact_, g)) {
      found_any_ = true;
      auto compare = [&](const auto& feature) {
        error = mismatch(rederive(feature, g.normal), g) + slack(feature, g.normal);
        limit = agreement(feature, curved_agreement(m_));
      };
      std::visit(compare, g.feature);
    }
    g.normal = normal;
    // tie: features of a contact
    return error < limit;
  }

 private:
  const ModelView& m_;
  const DataView& d_;
  const ContactView& contact_;
  bool found_any_ = false;
};

// The center of a sphere or the segment of a capsule is in a mesh. There the collider uses the
// surface of the round geom, and its accuracy is that of other curved geoms.
bool is_deep(const ModelView& m, const ContactView& contact) {
  return contact.dist < -m.geom_size[3 * contact.geom.v[0]];
}

bool has_mesh(const ModelView& m, const ContactView& contact) {
  return m.geom_type[contact.geom.v[0]] == geom::kMesh ||
         m.geom_type[contact.geom.v[1]] == geom::kMesh;
}

// Error of MuJoCo's normals of manifolds, in rad. They are differences of two points divided by the
// distance, so that rounding turns them if the distance is tiny. The points are on the geoms, or on
// geoms that the margin has inflated.                                                     (CON-34)
double rounded_normal_error(const ModelView& m, const ContactView& contact) {
  constexpr double kRounding = 2e-15;  // of the points, relative to their coordinates
  const double inflated = contact.dist - detection(m, contact);
  const double distance = std::fmin(std::abs(contact.dist), std::abs(inflated));
  return kRounding * norm(load3(contact.pos.v)) / distance;
}

// Calls `visit` with the normals, from geom 0 to geom 1, of the faces of both geoms that rounding
// may have turned to MuJoCo's normal, until it returns true.
template <class Visit>
bool find_face_normal(const ModelView& m, const DataView& d, const ContactView& contact,
                      Visit&& visit) {
  constexpr double kMost = 1e-3;  // rad
  const double error = std::fmin(kMost, rounded_normal_error(m, contact));
  if (error < kAgreement) return false;
  const Vec3 normal = load3(contact.frame.v);
  for (int s = 0; s < 2; s++) {
    const int type = m.geom_type[contact.geom.v[s]];
    if (type != geom::kBox && type != geom::kMesh && type != geom::kCylinder) continue;
    const Polytope polytope(m, d, contact.geom.v[s]);
    const double sign = s ? -1 : 1;
    auto is_near = [&](int face) {
      const Vec3 found = sign * polytope.face_normal(face);
      return norm(found - normal) < error && visit(found);
    };
    if (polytope.find_face(sign * normal, 1 - kMost * kMost, is_near)) return true;
  }
  return false;
}

// Features of the contact of a pair, also with a reversed normal or between perturbed geoms.
bool identify_pair(const PairEntry& pair, const ModelView& m, const DataView& d,
                   const ContactView& contact, const ContactGeometry* before, Search& search,
                   ContactGeometry& g) {
  auto attempt = [&](Identify* way, bool everywhere) {
    // some colliders of MuJoCo 3.15 occasionally reverse the normal, but nothing else
    for (bool flipped : {false, true}) {
      if (flipped && !pair.collider) break;
      load_contact(contact, before, g);
      g.flipped = flipped;
      if (everywhere) g.walked[0] = g.walked[1] = Polytope::kEverywhere;
      if (search.identify(way, g)) return true;
    }
    return false;
  };
  // with normals of faces instead of MuJoCo's rounded one, along which other features seem to touch
  auto along = [&](Vec3 normal) {
    load_contact(contact, before, g);
    return search.identify(pair.contact, d, normal, g);
  };
  if (pair.collider && find_face_normal(m, d, contact, along)) return true;
  if (attempt(pair.contact, false)) return true;
  if (pair.deep && is_deep(m, contact) && attempt(pair.deep, false)) return true;
  // hulls are convex to single precision only, so that a walk occasionally ends too early
  if (has_mesh(m, contact) && attempt(pair.contact, true)) return true;
  if (!pair.collider) return false;

  const ContactGeometry* first = before && before->first ? before->first : before;
  auto find = [&](const DataView& perturbed, double separation, ContactGeometry& at) {
    load_contact(contact, nullptr, at);
    at.distance = separation;
    return search.identify(pair.contact, perturbed, at.between(), at);
  };
  return identify_perturbed(m, d, contact, first, find, g);
}

// Returns whether the feature consists of two spheres whose centers coincide up to rounding. The
// span of the centers then has no direction, and MuJoCo takes a normal from the axes of the geoms.
const CenterFeature* coincident_centers(const ContactGeometry& g) {
  const auto* f = std::get_if<CenterFeature>(&g.feature);
  // tie: coincident centers
  return f && norm(f->pair.center[1] - f->pair.center[0]) < kCoincident ? f : nullptr;
}

// Returns whether the contact is level with a point at which the axis of one geom meets an edge of
// the other one. The normal can then be any direction between the faces at this edge.
bool meets_edge(const ModelView& m, const DataView& d, const ContactView& contact) {
  for (int s = 0; s < 2; s++) {
    const int id[2] = {contact.geom.v[s], contact.geom.v[1 - s]};
    const int type[2] = {m.geom_type[id[0]], m.geom_type[id[1]]};
    if (type[0] != geom::kCylinder && type[0] != geom::kCapsule) continue;
    if (type[1] != geom::kBox && type[1] != geom::kMesh) continue;
    const Geom geom = load_geom(m, d, id[0]);
    const Vec3 a = geom.axis();
    const Vec3 on_axis = geom.position + dot(load3(contact.pos.v) - geom.position, a) * a;
    int everywhere = Polytope::kEverywhere;
    Vec3 along;
    if (Polytope(m, d, id[1], &everywhere).edge_through(on_axis, a, along)) return true;
  }
  return false;
}

// Returns the reason why no features reproduce a contact, as far as it is known.
const char* explain_failure(const ModelView& m, const DataView& d, const ContactView& contact,
                            const PairEntry* pair, bool found_any, const ContactGeometry& g) {
  if (!pair) return "contacts between these types of geoms are not supported";
  if (coincident_centers(g)) {
    return "the centers of its geoms coincide, so that its normal is a fallback of MuJoCo";
  }
  if (meets_edge(m, d, contact)) {
    return "the axis of one geom meets an edge of the other one, so that its normal is not unique";
  }
  if (g.refusal) return g.refusal;
  return found_any ? "the nearest parts of its geoms do not reproduce MuJoCo's contact"
                   : "no faces, edges or vertices of its geoms explain MuJoCo's contact";
}

// Sets g to the contact with its features. Returns why they are not known, null if they are.
const char* find_features(const ModelView& m, const DataView& d, const ContactView& contact,
                          const ContactGeometry* before, ContactGeometry& g) {
  const PairEntry* pair = find_pair(m, contact.geom.v);
  PairEntry legacy;
  if (pair && pair->collider && (m.opt.disableflags & disable::kNativeCCD)) {
    if (pair->contact == identify_height_field) {
      return "height fields are not supported with the legacy collider (flag nativeccd)";
    }
    if (pair->contact != identify_convex) {
      return "the result of the legacy collider (flag nativeccd) depends on where its iterations "
             "along a curved geom stop";
    }
    legacy = {pair->first, pair->second, true, identify_portal, nullptr, nullptr};
    pair = &legacy;
  }
  if (pair && !pair->contact) {
    return "one of its geoms is an SDF, and MuJoCo's descent along it stops before it converges";
  }

  // the features
  Search search(m, d, contact);
  const bool found = pair && identify_pair(*pair, m, d, contact, before, search, g);
  if (!found) {
    if (const CenterFeature* centers = coincident_centers(g)) {
      g.pivot = centers->radius[0] == centers->radius[1];
    }
    return explain_failure(m, d, contact, pair, search.found_any(), g);
  }

  // the frame
  g.hint = frame_hint(g, load_geom(m, d, contact.geom.v[g.hint_owner < 0 ? 0 : g.hint_owner]));
  Vec3 tangent = across(g.hint, g.normal);
  g.hint_length = norm(tangent);
  const bool same = norm(tangent - g.hint_length * g.tangent[0]) < kAgreement;
  return same ? nullptr : "its frame was not recognized";
}

// Adds a notice if the collider stopped before the optimum of two polytopes. The error of its
// normal is estimated like that of curved geoms. (CON-28)
void notice_early_stop(const ModelView& m, const ContactGeometry& g) {
  if (g.excess == 0) return;
  const double radius = std::fmin(m.geom_rbound[g.geom[0]], m.geom_rbound[g.geom[1]]);
  const double angle = std::sqrt(2 * g.excess / radius);
  notices().add(Notices::kContact, {angle, kContactLimit, {g.geom[0], g.geom[1]}});
}

}  // namespace

ContactGeometry identify(const ModelView& m, const DataView& d, const ContactView& contact,
                         const ContactGeometry* before) {
  if (contact.geom.v[0] < 0 || contact.geom.v[1] < 0) {
    throw Unsupported(contact_name(m, contact), "contacts of a flex are not supported");
  }
  ContactGeometry g;
  if (d.given_contacts) {
    load_contact(contact, nullptr, g);
    g.fixed = true;
    return g;
  }
  if (before && before->refusal) before = nullptr;
  g.refusal = find_features(m, d, contact, before, g);
  if (g.refusal) load_contact(contact, nullptr, g);
  notice_early_stop(m, g);
  return g;
}

void require_features(const ModelView& m, const ContactView& contact, const ContactGeometry& g) {
  if (g.refusal) throw Unsupported(contact_name(m, contact), g.refusal);
}

bool identify_nearest(const ModelView& m, const DataView& d, const ContactView& contact,
                      ContactGeometry& g) {
  const PairEntry* pair = find_pair(m, contact.geom.v);
  const bool legacy = m.opt.disableflags & disable::kNativeCCD;
  if (!pair || !pair->nearest || (legacy && pair->collider)) return false;
  // the legacy functions find the points of a pair as they find its contacts
  for (Identify* way : {legacy ? pair->contact : pair->nearest, pair->deep}) {
    if (!way) break;
    load_contact(contact, nullptr, g);
    // the nearest points of parallel lines are not unique
    if (Search(m, d, contact).identify(way, g)) return dot(g.line, g.line) == 0;
  }
  return false;
}

std::string describe(const ContactGeometry& g) {
  if (g.refusal) return std::string("unknown: ") + g.refusal;
  std::string name = std::visit([](const auto& feature) { return describe(feature); }, g.feature);
  if (g.twin) name += ", parallel faces";
  if (g.first) name += ", perturbed geoms";
  if (dot(g.line, g.line) > 0) name += ", parallel lines";
  return name;
}

}  // namespace mujacobian
