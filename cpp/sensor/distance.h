// Distances between two geoms or bodies, with the segment between their nearest points. The nearest
// geoms and their features are part of the branch.
#pragma once

#include "contact/identification.h"
#include "contact/parallel_features.h"
#include "sensor/sensing.h"

namespace mujacobian {

// The nearest pair of geoms of a sensor, as a contact whose normal points from the first geom to
// the second.
struct NearestPair {
  bool found;    // within the cutoff
  bool swapped;  // the first geom is the sensor's second
  ContactView contact;
  ContactGeometry geometry;
  Parallel parallel;  // features that are parallel; not determined for distances

  // The sign of the normal that is reported: it points from one point to the other, also in
  // penetration.
  double towards() const;
};

// Throws Unsupported if the nearest points have no derivative.
NearestPair nearest_pair(const Sensing& s, int sensor);

}  // namespace mujacobian
