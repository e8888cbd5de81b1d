// The frame of a contact: its first tangent is in the plane of the normal and the hint.     (CON-6)
#pragma once

#include "contact/geometry.h"

namespace mujacobian {

// Rotation of the frame for changes dn of the normal and dhint of the hint. T is S or double.
template <class T, class S>
Vec3T<S> frame_turn(const ContactGeometryT<T>& g, Vec3T<S> dn, Vec3T<S> dhint);

// The transpose: `bar . turn = normal . dn + hint . dhint`.                               (CON-42)
struct FrameCotangent {
  Vec3 normal, hint;
};
FrameCotangent frame_cotangent(const ContactGeometry& g, Vec3 bar);

// Change of the transpose at fixed `bar`, when the frame turns by `turn` and the hint changes.
FrameCotangent vary_frame_cotangent(const ContactGeometry& g, Vec3 bar, Vec3 turn, Vec3 dhint);

}  // namespace mujacobian
