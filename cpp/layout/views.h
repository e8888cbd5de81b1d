// Views of the caller's mjModel and mjData: plain structs of sizes and pointers, filled from
// run-time offsets. Every call makes new ones, so that they are never out of date.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/arena.h"
#include "layout/fields.h"

namespace mujacobian {

namespace kind {
using SIZE = int;
using INT = int;
using NUM = double;
using FLAG = bool;
using WORD = std::uint64_t;
using NUMS = const double*;
using INTS = const int*;
using FLAGS = const unsigned char*;
using FLOATS = const float*;
using VOID = const char*;
struct VEC3 {
  double v[3];
};
struct NUM2 {
  double v[2];
};
struct NUM5 {
  double v[5];
};
struct NUM9 {
  double v[9];
};
struct INT2 {
  int v[2];
};
struct INT20 {
  const int* v;
};
struct WARNINGS {
  struct {
    int last, number;
  } v[7];
};
struct STATISTIC {
  double meaninertia;
};
struct TEXT {
  const char* text;
};
}  // namespace kind

#define MUJACOBIAN_MEMBER(KIND, NAME, ...) kind::KIND NAME;
struct OptionView {
  MUJACOBIAN_OPTION_FIELDS(MUJACOBIAN_MEMBER, MUJACOBIAN_MEMBER, MUJACOBIAN_MEMBER)
};
struct ModelView {
  OptionView opt;
  const void* address;
  // The controls that delayed actuators read are inputs of the step, and sensors with a history are
  // differentiated as if the step computed them.                                         (ADJ-9)
  bool open_histories = false;
  MUJACOBIAN_MODEL_FIELDS(MUJACOBIAN_MEMBER, MUJACOBIAN_MEMBER, MUJACOBIAN_MEMBER)
};
struct DataView {
  const void* address;
  // The contacts are inputs of the caller and do not move with their geoms.
  bool given_contacts = false;
  MUJACOBIAN_DATA_FIELDS(MUJACOBIAN_MEMBER, MUJACOBIAN_MEMBER, MUJACOBIAN_MEMBER)
};
struct ContactView {
  MUJACOBIAN_CONTACT_FIELDS(MUJACOBIAN_MEMBER, MUJACOBIAN_MEMBER, MUJACOBIAN_MEMBER)
};
struct LogView {
  MUJACOBIAN_LOG_FIELDS(MUJACOBIAN_MEMBER, MUJACOBIAN_MEMBER, MUJACOBIAN_MEMBER)
};
#undef MUJACOBIAN_MEMBER

// Size of the tangent vector (q, v, act) of a state: the number of rows of A.
inline int state_size(const ModelView& m) { return 2 * m.nv + m.na; }

struct Field {
  const char* structure;  // "mjModel", "mjData", ..., as in mujoco.introspect
  const char* name;
  const char* kind;
  bool optional;
  const char* old_name;  // in older versions of MuJoCo; null: the field was not renamed
};

// The place of a field of the installed MuJoCo: the offset in its struct (-1: absent) and its size.
struct Place {
  int offset, size;
};

// All fields that the core reads, in the order of the places that `set_layout` expects.
const std::vector<Field>& fields();

// Sets the places of all fields, the offset of mjOption inside mjModel, sizeof(mjContact) and
// sizeof(mjModel).
void set_layout(const std::vector<Place>& places, int option_offset, int contact_size,
                int model_size);

ModelView view_model(const void* model);
DataView view_data(const void* data);
ContactView view_contact(const DataView& data, int index);
const int* contact_geoms(const DataView& data, int index);  // of one contact
LogView view_log(const void* message);

// A copy of the struct mjModel. It shares all arrays with the original.
class ModelCopy {
 public:
  void take(const void* model);

  const void* address() const { return bytes_.data(); }
  void set_collider(double ccd_tolerance, int ccd_iterations);
  void enlarge_arena(std::uint64_t bytes);

 private:
  std::vector<char> bytes_;
};

// The sizes at the beginning of mjModel, as bytes. The layout of an mjData depends only on them.
std::string model_sizes(const void* model);
bool has_sizes(const void* model, const std::string& sizes);

// Copies the results of mj_forward up to the constraints, and the contacts, to an mjData of the
// same sizes. The arena of `to` may be larger. Models with plugins are not allowed.
void copy_contacts(const ModelView& m, const DataView& from, void* to);

// Returns a view of a copy of the arrays that `from` points to, in `memory`. Its address is still
// that of the original, whose arrays may change.
DataView copy_arrays(const ModelView& m, const DataView& from, Arena& memory);

// Overwrites distance, position and frame of a contact. The rows of the frame are the normal and
// two tangents.
void write_contact(const DataView& data, int index, double dist, const double pos[3],
                   const double frame[9]);

// Writes a contact as the struct mjContact, in which all other fields are zero.
void encode_contact(const ContactView& contact, std::vector<char>& bytes);

// The state of mjData's stack.
struct Stack {
  std::uint64_t top, base;
};
Stack view_stack(const void* data);
void restore_stack(void* data, const Stack& stack);

}  // namespace mujacobian
