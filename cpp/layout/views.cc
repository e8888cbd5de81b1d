#include "layout/views.h"

#include <cstring>
#include <stdexcept>

namespace mujacobian {
namespace {

std::vector<Field> list_fields() {
  std::vector<Field> all;
  const char* structure;
#define MUJACOBIAN_REQUIRED(KIND, NAME) all.push_back({structure, #NAME, #KIND, false, nullptr});
#define MUJACOBIAN_OPTIONAL(KIND, NAME) all.push_back({structure, #NAME, #KIND, true, nullptr});
#define MUJACOBIAN_RENAMED(KIND, NAME, OLD) all.push_back({structure, #NAME, #KIND, false, #OLD});
  structure = "mjOption";
  MUJACOBIAN_OPTION_FIELDS(MUJACOBIAN_REQUIRED, MUJACOBIAN_OPTIONAL, MUJACOBIAN_RENAMED)
  structure = "mjModel";
  MUJACOBIAN_MODEL_FIELDS(MUJACOBIAN_REQUIRED, MUJACOBIAN_OPTIONAL, MUJACOBIAN_RENAMED)
  structure = "mjData";
  MUJACOBIAN_DATA_FIELDS(MUJACOBIAN_REQUIRED, MUJACOBIAN_OPTIONAL, MUJACOBIAN_RENAMED)
  structure = "mjContact";
  MUJACOBIAN_CONTACT_FIELDS(MUJACOBIAN_REQUIRED, MUJACOBIAN_OPTIONAL, MUJACOBIAN_RENAMED)
  structure = "mjLogMessage";
  MUJACOBIAN_LOG_FIELDS(MUJACOBIAN_REQUIRED, MUJACOBIAN_OPTIONAL, MUJACOBIAN_RENAMED)
  return all;
}

// places of the five structs within `places`
#define MUJACOBIAN_COUNT(KIND, NAME, ...) +1
constexpr int kOptionCount =
    0 MUJACOBIAN_OPTION_FIELDS(MUJACOBIAN_COUNT, MUJACOBIAN_COUNT, MUJACOBIAN_COUNT);
constexpr int kModelCount =
    0 MUJACOBIAN_MODEL_FIELDS(MUJACOBIAN_COUNT, MUJACOBIAN_COUNT, MUJACOBIAN_COUNT);
constexpr int kDataCount =
    0 MUJACOBIAN_DATA_FIELDS(MUJACOBIAN_COUNT, MUJACOBIAN_COUNT, MUJACOBIAN_COUNT);
constexpr int kContactCount =
    0 MUJACOBIAN_CONTACT_FIELDS(MUJACOBIAN_COUNT, MUJACOBIAN_COUNT, MUJACOBIAN_COUNT);
constexpr int kModelFirst = kOptionCount;
constexpr int kDataFirst = kModelFirst + kModelCount;
constexpr int kContactFirst = kDataFirst + kDataCount;
constexpr int kLogFirst = kContactFirst + kContactCount;

std::vector<Place> places;
int option_offset = 0, contact_size = 0, model_size = 0;
int stack_place = 0, frame_place = 0, arena_place = 0, tolerance_place = 0, iterations_place = 0;
int buffer_place = 0, statistic_place = 0, signature_place = 0;
int awake_place[4];  // the numbers of awake trees, bodies, ...
int time_place = 0, contacts_place = 0, dist_place = 0, pos_place = 0, normal_place = 0;
int geoms_place = 0;

template <class T>
void read(const char* base, Place place, T& value) {
  if (place.offset < 0) {
    value = T{};
  } else {
    std::memcpy(&value, base + place.offset, sizeof(T));
  }
}

// Reads an int that MuJoCo stores as int or as mjtSize.
void read(const char* base, Place place, int& value) {
  if (place.offset < 0) {
    value = 0;
  } else if (place.size == 8) {
    std::int64_t wide;
    std::memcpy(&wide, base + place.offset, sizeof wide);
    value = static_cast<int>(wide);
  } else {
    std::memcpy(&value, base + place.offset, sizeof value);
  }
}

// Arrays inside the struct that are rarely read are not copied.
void read(const char* base, Place place, kind::TEXT& value) { value.text = base + place.offset; }
void read(const char* base, Place place, kind::INT20& value) {
  value.v = reinterpret_cast<const int*>(base + place.offset);
}

template <class T>
void write(char* base, Place place, const T& value) {
  std::memcpy(base + place.offset, &value, sizeof(T));
}

int find_place(const std::string& structure, const std::string& name) {
  int i = 0;
  while (fields()[i].structure != structure || fields()[i].name != name) i++;
  return i;
}

}  // namespace

// not a global variable, whose initialization would run before the processor is checked
const std::vector<Field>& fields() {
  static const std::vector<Field> all = list_fields();
  return all;
}

void set_layout(const std::vector<Place>& all, int option, int contact, int model) {
  if (all.size() != fields().size())
    throw std::invalid_argument("set_layout: wrong number of places");
  places = all;
  option_offset = option;
  contact_size = contact;
  model_size = model;
  stack_place = find_place("mjData", "pstack");
  frame_place = find_place("mjData", "pbase");
  arena_place = find_place("mjModel", "narena");
  buffer_place = find_place("mjModel", "buffer");
  statistic_place = find_place("mjModel", "stat");
  signature_place = find_place("mjModel", "signature");
  tolerance_place = find_place("mjOption", "ccd_tolerance");
  iterations_place = find_place("mjOption", "ccd_iterations");
  time_place = find_place("mjData", "time");
  contacts_place = find_place("mjData", "ncon");
  awake_place[0] = find_place("mjData", "ntree_awake");
  awake_place[1] = find_place("mjData", "nbody_awake");
  awake_place[2] = find_place("mjData", "nparent_awake");
  awake_place[3] = find_place("mjData", "nv_awake");
  dist_place = find_place("mjContact", "dist");
  pos_place = find_place("mjContact", "pos");
  normal_place = find_place("mjContact", "frame");
  geoms_place = find_place("mjContact", "geom");
}

#define MUJACOBIAN_READ(KIND, NAME, ...) read(base, *place++, view.NAME);

namespace {

OptionView view_option(const char* base) {
  OptionView view;
  const Place* place = places.data();
  MUJACOBIAN_OPTION_FIELDS(MUJACOBIAN_READ, MUJACOBIAN_READ, MUJACOBIAN_READ)
  return view;
}

}  // namespace

ModelView view_model(const void* model) {
  thread_local ModelView view{};
  thread_local std::string sizes;
  const char* base = static_cast<const char*>(model);
  // MuJoCo places all arrays in one buffer, in an order that depends only on the sizes. A model
  // whose sizes and buffer are those of the thread's last view therefore has the same pointers.
  const char* buffer;
  read(base, places[buffer_place], buffer);
  if (view.address != model || view.buffer != buffer || !has_sizes(model, sizes)) {
    const Place* place = places.data() + kModelFirst;
    MUJACOBIAN_MODEL_FIELDS(MUJACOBIAN_READ, MUJACOBIAN_READ, MUJACOBIAN_READ)
    sizes = model_sizes(model);
    view.address = model;
  }
  view.opt = view_option(base + option_offset);
  read(base, places[statistic_place], view.stat);
  read(base, places[signature_place], view.signature);
  return view;
}

DataView view_data(const void* data) {
  DataView view;
  const Place* place = places.data() + kDataFirst;
  const char* base = static_cast<const char*>(data);
  MUJACOBIAN_DATA_FIELDS(MUJACOBIAN_READ, MUJACOBIAN_READ, MUJACOBIAN_READ)
  view.address = data;
  return view;
}

ContactView view_contact(const DataView& data, int index) {
  ContactView view;
  const Place* place = places.data() + kContactFirst;
  const char* base = data.contact + static_cast<std::size_t>(contact_size) * index;
  MUJACOBIAN_CONTACT_FIELDS(MUJACOBIAN_READ, MUJACOBIAN_READ, MUJACOBIAN_READ)
  return view;
}

const int* contact_geoms(const DataView& data, int index) {
  return reinterpret_cast<const int*>(
      data.contact + static_cast<std::size_t>(contact_size) * index + places[geoms_place].offset);
}

LogView view_log(const void* message) {
  LogView view;
  const Place* place = places.data() + kLogFirst;
  const char* base = static_cast<const char*>(message);
  MUJACOBIAN_LOG_FIELDS(MUJACOBIAN_READ, MUJACOBIAN_READ, MUJACOBIAN_READ)
  return view;
}

Stack view_stack(const void* data) {
  Stack stack;
  const char* base = static_cast<const char*>(data);
  read(base, places[stack_place], stack.top);
  read(base, places[frame_place], stack.base);
  return stack;
}

void restore_stack(void* data, const Stack& stack) {
  char* base = static_cast<char*>(data);
  write(base, places[stack_place], stack.top);
  write(base, places[frame_place], stack.base);
}

void ModelCopy::take(const void* model) {
  const char* from = static_cast<const char*>(model);
  bytes_.assign(from, from + model_size);
}

void ModelCopy::set_collider(double ccd_tolerance, int ccd_iterations) {
  write(bytes_.data() + option_offset, places[tolerance_place], ccd_tolerance);
  write(bytes_.data() + option_offset, places[iterations_place], ccd_iterations);
}

void ModelCopy::enlarge_arena(std::uint64_t bytes) {
  std::uint64_t size;
  read(bytes_.data(), places[arena_place], size);
  write(bytes_.data(), places[arena_place], size + bytes);
}

namespace {

// The buffer of an mjData without most of bvh_active, which is large for meshes and only used for
// visualization.
struct Buffer {
  std::size_t head, tail;  // number of bytes before it, and first byte after it
};

Buffer used_buffer(const ModelView& m, const DataView& d) {
  constexpr std::size_t kAlign = 64;  // of MuJoCo's arrays, which the part after it has to keep
  if (!d.bvh_active) return {d.nbuffer, d.nbuffer};
  const std::size_t head = reinterpret_cast<const char*>(d.bvh_active) - d.buffer;
  return {head, (head + m.nbvh) / kAlign * kAlign};
}

void copy_buffer(const ModelView& m, const DataView& from, char* buffer) {
  const Buffer b = used_buffer(m, from);
  std::memcpy(buffer, from.buffer, b.head);
  std::memcpy(buffer + b.tail, from.buffer + b.tail, from.nbuffer - b.tail);
}

// Moves pointers into an array of bytes to a copy of this array.
struct Move {
  const char* from;
  std::size_t size;
  const char* to;

  template <class T>
  void operator()(const T*& pointer) const {
    const auto place =
        reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(from);
    if (pointer && place < size) pointer = reinterpret_cast<const T*>(to + place);
  }
  template <class T>
  void operator()(T&) const {}  // not a pointer
};

}  // namespace

DataView copy_arrays(const ModelView& m, const DataView& from, Arena& memory) {
  const Buffer b = used_buffer(m, from);
  auto copy = [&](const char* bytes, std::size_t size) {
    char* to = memory.take<char>(size);
    std::memcpy(to, bytes, size);
    return Move{bytes, size, to};
  };
  const Move moves[] = {copy(from.buffer, b.head),
                        copy(from.buffer + b.tail, from.nbuffer - b.tail),
                        copy(from.arena, from.parena)};
  DataView view = from;
#define MUJACOBIAN_MOVE(KIND, NAME, ...) move(view.NAME);
  for (const Move& move : moves) {
    MUJACOBIAN_DATA_FIELDS(MUJACOBIAN_MOVE, MUJACOBIAN_MOVE, MUJACOBIAN_MOVE)
  }
#undef MUJACOBIAN_MOVE
  return view;
}

void copy_contacts(const ModelView& m, const DataView& from, void* to) {
  const DataView view = view_data(to);
  copy_buffer(m, from, const_cast<char*>(view.buffer));
  std::memcpy(const_cast<char*>(view.contact), from.contact,
              static_cast<std::size_t>(contact_size) * from.ncon);
  char* base = static_cast<char*>(to);
  std::memcpy(const_cast<int*>(view.solver_niter.v), from.solver_niter.v, 20 * sizeof(int));
  write(base, places[time_place], from.time);
  write(base, places[contacts_place], from.ncon);
  for (int place : awake_place) {
    std::memcpy(base + places[place].offset,
                static_cast<const char*>(from.address) + places[place].offset, places[place].size);
  }
}

void write_contact(const DataView& data, int index, double dist, const double pos[3],
                   const double frame[9]) {
  char* base = const_cast<char*>(data.contact) + static_cast<std::size_t>(contact_size) * index;
  write(base, places[dist_place], dist);
  std::memcpy(base + places[pos_place].offset, pos, 3 * sizeof(double));
  std::memcpy(base + places[normal_place].offset, frame, 9 * sizeof(double));
}

void encode_contact(const ContactView& view, std::vector<char>& bytes) {
  bytes.assign(contact_size, 0);
  const Place* place = places.data() + kContactFirst;
#define MUJACOBIAN_WRITE(KIND, NAME, ...) write(bytes.data(), *place++, view.NAME);
  MUJACOBIAN_CONTACT_FIELDS(MUJACOBIAN_WRITE, MUJACOBIAN_WRITE, MUJACOBIAN_WRITE)
#undef MUJACOBIAN_WRITE
}

bool has_sizes(const void* model, const std::string& sizes) {
  return sizes.size() == static_cast<std::size_t>(option_offset) &&
         std::memcmp(model, sizes.data(), sizes.size()) == 0;
}

std::string model_sizes(const void* model) {
  return {static_cast<const char*>(model), static_cast<std::size_t>(option_offset)};
}

}  // namespace mujacobian
