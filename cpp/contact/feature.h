// All kinds of contact features. contact_point.h lists the functions that each of them has.
#pragma once

#include <variant>

#include "contact/center_feature.h"
#include "contact/edge_feature.h"
#include "contact/face_feature.h"
#include "contact/simplex_feature.h"
#include "contact/support_feature.h"

namespace mujacobian {

using Feature =
    std::variant<FaceFeature, CenterFeature, EdgeFeature, SupportFeature, SimplexFeature>;

}  // namespace mujacobian
