// More points of a pair before MuJoCo 3.17, and of the legacy collider. If a pair touches in one
// point, MuJoCo turns both geoms a little, in opposite directions, about this point and an axis of
// its frame. It adds the contact that it then finds, with the distance of the first one. (CON-24)
#pragma once

#include <functional>
#include <vector>

#include "contact/geometry.h"
#include "layout/views.h"

namespace mujacobian {

// A copy of the poses of two geoms, which can be turned about a point.
class PerturbedPoses {
 public:
  PerturbedPoses(const DataView& d, const int geom[2]);

  // Returns a view of the data with the geoms turned about a point, geom 0 by `by` and geom 1 back.
  DataView turn(const int geom[2], Vec3 about, const Mat3& by);

 private:
  const DataView& original_;
  int room_;
  std::vector<double> poses_;
};

// Identifies the contact among geoms at given poses, which are that far apart.
using FindFeatures = std::function<bool(const DataView&, double, ContactGeometry&)>;

// Identifies a contact of geoms that were turned about the contact `first` of the pair.
bool identify_perturbed(const ModelView& m, const DataView& d, const ContactView& contact,
                        const ContactGeometry* first, const FindFeatures& find, ContactGeometry& g);

}  // namespace mujacobian
