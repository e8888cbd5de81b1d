// The links of a spatial tendon: its pieces from one site to the next, straight or around a geom.
#pragma once

#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/views.h"
#include "spatial/vector.h"

namespace mujacobian {

struct Link {
  int site_body[2];
  const double* end[2];  // positions of the sites
  double scale;          // one over the divisor of the pulley
  int wrap;              // element of the model's path that is the geom; -1: straight
  int wrapped;           // the body of this geom
  const double* points;  // the two points where the tendon touches it, in mjData.wrap_xpos

  // Returns whether all of its points belong to one body, so that its length is constant.
  bool rigid() const {
    return site_body[0] == site_body[1] && (wrap < 0 || wrapped == site_body[0]);
  }
};

// Calls visit(link) for the links of a spatial tendon. `w` runs over the elements of the model's
// path and `entry` over the points of the path in mjData.
template <class F>
void visit_links(const ModelView& m, const DataView& d, int tendon, F visit) {
  double scale = 1;
  const int last = m.tendon_adr[tendon] + m.tendon_num[tendon] - 1;
  int entry = d.ten_wrapadr[tendon];
  for (int w = m.tendon_adr[tendon]; w < last;) {
    // a pulley begins a branch, and the site before it ends one
    if (m.wrap_type[w] == wrap::kPulley) {
      scale = 1 / m.wrap_prm[w];
      entry++, w++;
      continue;
    }
    if (m.wrap_type[w + 1] == wrap::kPulley) {
      entry++, w++;
      continue;
    }

    // two sites, possibly with a geom between them
    const bool over_geom = m.wrap_type[w + 1] != wrap::kSite;
    const int next = over_geom ? w + 2 : w + 1;
    const int site[2] = {m.wrap_objid[w], m.wrap_objid[next]};
    Link link{{m.site_bodyid[site[0]], m.site_bodyid[site[1]]},
              {d.site_xpos + 3 * site[0], d.site_xpos + 3 * site[1]},
              scale,
              -1,
              -1,
              nullptr};
    entry++;
    // tie: tendon that touches a geom
    if (over_geom && d.wrap_obj[entry] >= 0) {
      link.wrap = w + 1;
      link.wrapped = m.geom_bodyid[m.wrap_objid[w + 1]];
      link.points = d.wrap_xpos + 3 * entry;
      entry += 2;
    }
    visit(link);
    w = next;
  }
}

}  // namespace mujacobian
