// Wrenches on sites, and pairs of sites, for transmissions that act on them.
#pragma once

#include "tree/point.h"

namespace mujacobian {

// Returns the wrench with the force and torque `gear` (6) in the axes of the site.
Force site_wrench(const ModelView& m, const DataView& d, int site, const double* gear);

// Two sites and the dofs that move either of them.
struct SitePair {
  int site[2];
  Point point[2];
  int n;
  const int* dofs;
  const unsigned char* moves;  // bit s: the dof moves site s

  bool moved(int s, int k) const { return moves[k] >> s & 1; }
  // +1: the dof moves only the first site, -1: only the second one, 0: both
  double sign(int k) const { return moves[k] == 3 ? 0 : moves[k] == 1 ? 1 : -1; }
  int mover(int k) const { return moves[k] == 1 ? 0 : 1; }
};

SitePair site_pair(const ModelView& m, const DataView& d, int first, int second, Arena& arena);

// Returns the rotation vector of the first site relative to the second one, which has the same
// components in both frames.
Vec3 relative_angle(const ModelView& m, const DataView& d, const SitePair& p);

// Returns the angular part of the axis of a dof.
inline Vec3 turn_axis(const DataView& d, int dof) { return load3(d.cdof + 6 * dof); }

}  // namespace mujacobian
