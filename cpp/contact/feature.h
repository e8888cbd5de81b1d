// All kinds of contact features. contact_point.h lists the functions that each of them has.
#pragma once

#include <variant>

#include "contact/center_feature.h"
#include "contact/edge_feature.h"
#include "contact/face_feature.h"
#include "contact/portal_feature.h"
#include "contact/simplex_feature.h"
#include "contact/support_feature.h"

namespace mujacobian {

// The first one is the smallest, because it is cleared before the features of a contact are known.
template <class S>
using FeatureT = std::variant<EdgeFeatureT<S>, FaceFeatureT<S>, CenterFeatureT<S>,
                              SupportFeatureT<S>, SimplexFeatureT<S>, PortalFeatureT<S>>;
using Feature = FeatureT<double>;

}  // namespace mujacobian
