// The table of pairs: which function identifies the features of a contact, by the types of its
// geoms. The functions set the feature and, if another one is near, the region of a
// ContactGeometry that holds MuJoCo's numbers. They return false if no feature of the pair explains
// the contact. Their geoms are in the order of their types.
#pragma once

#include "contact/geometry.h"
#include "layout/enums.h"
#include "layout/views.h"

namespace mujacobian {

using Identify = bool(const ModelView& m, const DataView& d, const ContactView& contact,
                      ContactGeometry& geometry);

Identify identify_plane;                               // plane_pair.cc
Identify identify_height_field;                        // height_field_pair.cc
Identify identify_sphere;                              // sphere_pair.cc
Identify identify_capsules;                            // capsule_pair.cc
Identify identify_capsule_box;                         // capsule_box_pair.cc
Identify identify_boxes;                               // box_pair.cc
Identify identify_convex, identify_nearest_convex;     // convex_pair.cc
Identify identify_round_mesh, identify_nearest_round;  // round_mesh_pair.cc
Identify identify_curved, identify_supports;           // curved_pair.cc
Identify identify_portal;                              // portal_pair.cc: the legacy collider

// A row of the table. The first row that contains both types is taken.
struct PairEntry {
  unsigned first, second;  // types of the geoms, one bit each
  bool collider;           // MuJoCo's convex collider finds the contacts
  Identify* contact;       // identifies a contact; null: a descent along a distance field finds it
  // identifies the nearest points that mj_geomDistance finds; null: not supported
  Identify* nearest;
  // identifies both if the core of the first geom is in the second geom; null: does not occur
  Identify* deep;
};

constexpr unsigned type_bit(int type) { return 1u << type; }

inline constexpr unsigned kAnyType = ~0u, kPlaneBit = type_bit(geom::kPlane),
                          kFieldBit = type_bit(geom::kHField), kSphereBit = type_bit(geom::kSphere),
                          kCapsuleBit = type_bit(geom::kCapsule),
                          kCylinderBit = type_bit(geom::kCylinder),
                          kCurvedBits = type_bit(geom::kEllipsoid) | kCylinderBit,
                          kBoxBit = type_bit(geom::kBox), kMeshBit = type_bit(geom::kMesh),
                          kSdfBit = type_bit(geom::kSdf);

inline constexpr PairEntry kPairs[] = {
    // first, second, collider, contact, nearest, deep
    {kPlaneBit, kAnyType, false, identify_plane, identify_plane, nullptr},
    {kAnyType, kSdfBit, false, nullptr, nullptr, nullptr},
    {kFieldBit, kAnyType, true, identify_height_field, nullptr, nullptr},
    {kSphereBit, kCylinderBit, false, identify_sphere, identify_sphere, nullptr},
    {kAnyType, kCurvedBits, true, identify_curved, identify_supports, nullptr},
    {kCurvedBits, kAnyType, true, identify_curved, identify_supports, nullptr},
    {kSphereBit, kSphereBit | kCapsuleBit | kBoxBit, false, identify_sphere, identify_sphere,
     nullptr},
    {kSphereBit | kCapsuleBit, kMeshBit, true, identify_round_mesh, identify_nearest_round,
     identify_supports},
    {kCapsuleBit, kCapsuleBit, false, identify_capsules, identify_capsules, nullptr},
    {kCapsuleBit, kBoxBit, false, identify_capsule_box, identify_capsule_box, nullptr},
    {kBoxBit, kBoxBit, false, identify_boxes, identify_nearest_convex, nullptr},
    {kBoxBit | kMeshBit, kMeshBit, true, identify_convex, identify_nearest_convex, nullptr},
};

// The row of a pair, null if no row contains it. Both geoms exist: no flexible body is involved.
const PairEntry* find_pair(const ModelView& m, const int geom[2]);

// Whether MuJoCo's convex collider finds the contacts of the pair; no if a flexible body is
// involved.
bool uses_collider(const ModelView& m, const int geom[2]);

// Whether a contact depends on opt.ccd_tolerance. Contacts between boxes, meshes and height fields
// without margin and gap do not, because the collider stops at the optimum.
bool is_iterative(const ModelView& m, const ContactView& contact);

}  // namespace mujacobian
