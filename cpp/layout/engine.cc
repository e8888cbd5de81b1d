#include "layout/engine.h"

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "layout/enums.h"

namespace mujacobian {
namespace {

using Handler = void (*)(const void* message);

thread_local std::jmp_buf jump;
thread_local Handler next_handler;
thread_local char text[1200];
thread_local int quiet = 0;

// Handles a message of MuJoCo. An error jumps back into `guarded`. Every other message goes to the
// handler that was installed before.
void handle_log(const void* message) {
  LogView log = view_log(message);
  if (log.level != engine().log_error) {
    if (next_handler && !quiet) next_handler(message);
    return;
  }
  std::snprintf(text, sizeof text, "%s%s%s", log.func ? log.func : "", log.func ? ": " : "",
                log.subject.text);
  std::longjmp(jump, 1);
}

// Runs f(), which only calls C code, and returns false if MuJoCo raised an error.
template <class F>
bool guarded(F f) {
  auto previous = reinterpret_cast<Handler>(engine()._mjPRIVATE_setTlsLogHandler(handle_log));
  next_handler =
      previous ? previous : reinterpret_cast<Handler>(engine()._mjPRIVATE_getGlobalLogHandler());
  bool ok = false;
  if (setjmp(jump) == 0) {
    f();
    ok = true;
  } else {
    ok = false;
  }
  engine()._mjPRIVATE_setTlsLogHandler(previous);
  return ok;
}

// Runs f(), which works on `data`, and turns MuJoCo's errors into EngineError.
template <class F>
void run(void* data, F f) {
  const Stack before = view_stack(data);
  if (!guarded(f)) {
    restore_stack(data, before);
    throw EngineError(text);
  }
}

void call(void (*stage)(const void*, void*), const void* model, void* data) {
  run(data, [=] { stage(model, data); });
}

// The first members of mjpPlugin, whose layout is part of the interface of compiled plugins.
struct PluginHead {
  const char* name;
  int nattribute;
  const char* const* attributes;
  int capabilities;
};

const PluginHead& plugin_head(const ModelView& m, int plugin) {
  return *static_cast<const PluginHead*>(engine().mjp_getPluginAtSlot(m.plugin[plugin]));
}

constexpr const char* kCallbacks[] = {"mjcb_control",  "mjcb_passive",  "mjcb_act_dyn",
                                      "mjcb_act_gain", "mjcb_act_bias", "mjcb_contactfilter"};

std::vector<Symbol> list_symbols() {
  std::vector<Symbol> all;
#define MUJACOBIAN_REQUIRED(RESULT, NAME, ARGUMENTS) all.push_back({#NAME, true, false});
#define MUJACOBIAN_OPTIONAL(RESULT, NAME, ARGUMENTS) all.push_back({#NAME, true, true});
  MUJACOBIAN_FUNCTIONS(MUJACOBIAN_REQUIRED, MUJACOBIAN_OPTIONAL)
  all.push_back({"mjCOLLISIONFUNC", false, false});
  for (const char* name : kCallbacks) all.push_back({name, false, false});
  return all;
}

}  // namespace

Engine& engine() {
  static Engine instance{};
  return instance;
}

const std::vector<Symbol>& symbols() {
  static const std::vector<Symbol> all = list_symbols();
  return all;
}

void set_engine(const std::map<std::string, std::uintptr_t>& addresses,
                const std::map<std::string, int>& constants) {
  Engine& e = engine();
  auto set = [&](auto& pointer, const char* name) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(addresses.at(name));
  };
#define MUJACOBIAN_SET(RESULT, NAME, ARGUMENTS) set(e.NAME, #NAME);
  MUJACOBIAN_FUNCTIONS(MUJACOBIAN_SET, MUJACOBIAN_SET)
  set(e.mjCOLLISIONFUNC, "mjCOLLISIONFUNC");
  static_assert(std::size(kCallbacks) == std::size(Engine{}.callbacks));
  for (std::size_t k = 0; k < std::size(kCallbacks); k++) {
    e.callbacks[k].name = kCallbacks[k];
    set(e.callbacks[k].address, kCallbacks[k]);
  }
  e.physics_spec = constants.at("mjSTATE_FULLPHYSICS");
  e.integration_spec = constants.at("mjSTATE_INTEGRATION");
  e.log_error = constants.at("mjLOG_ERROR");
  e.eq_stride = constants.at("mjNEQDATA");
  e.version = constants.at("version");
}

Quiet::Quiet() { quiet++; }
Quiet::~Quiet() { quiet--; }

void forward(const void* model, void* data) { call(engine().mj_forward, model, data); }

void forward_with_contacts(const void* model, void* data, const std::vector<ContactView>& given) {
  call(engine().mj_fwdPosition, model, data);
  thread_local std::vector<char> bytes;
  static thread_local int full;
  for (const ContactView& contact : given) {
    encode_contact(contact, bytes);
    const void* encoded = bytes.data();
    run(data, [=] { full = engine().mj_addContact(model, data, encoded); });
    if (full) throw EngineError("mj_addContact: there is no room for all contacts");
  }
  // the stages of mj_fwdPosition that depend on contacts
  call(engine().mj_makeConstraint, model, data);
  call(engine().mj_island, model, data);
  call(engine().mj_projectConstraint, model, data);
  call(engine().mj_transmission, model, data);
  run(data, [=] { engine().mj_forwardSkip(model, data, stage::kPos, 0); });
}

void run_inverse(const void* model, void* data, bool actuation) {
  call(engine().mj_inverse, model, data);
  if (actuation) call(engine().mj_fwdActuation, model, data);
}

void collide(const void* model, void* data) { call(engine().mj_collision, model, data); }

void make_constraints(const void* model, void* data) {
  call(engine().mj_makeConstraint, model, data);
  call(engine().mj_referenceConstraint, model, data);
}

void solve_constraints(const void* model, void* data) {
  call(engine().mj_island, model, data);
  call(engine().mj_projectConstraint, model, data);
  run(data, [=] { engine().mj_forwardSkip(model, data, stage::kVel, 0); });
}

int collide_pair(const ModelView& m, void* data, int geom1, int geom2, double margin,
                 PreContact out[kMaxPairContacts]) {
  const int type = m.geom_type[geom1] * geom::kCount + m.geom_type[geom2];
  const Engine::Collide function = engine().mjCOLLISIONFUNC[type];
  const void* model = m.address;
  static thread_local int count;
  run(data, [=] { count = function(model, data, out, geom1, geom2, margin); });
  return count;
}

void reset(const void* model, void* data) { call(engine().mj_resetData, model, data); }

bool step(const void* model, void* data, DataView& after) {
  call(engine().mj_step, model, data);
  after = view_data(data);
  for (int k : {warning::kBadQpos, warning::kBadQvel, warning::kBadQacc, warning::kBadCtrl}) {
    if (after.warning.v[k].number) return false;
  }
  return true;
}

void copy_data(void* to, const void* model, const void* from) {
  run(to, [=] { engine().mj_copyData(to, model, from); });
}

void transition_fd(const void* model, void* data, double eps, bool centered, double* A, double* B,
                   double* C, double* D) {
  run(data, [=] { engine().mjd_transitionFD(model, data, eps, centered, A, B, C, D); });
}

void step_skip(const void* model, void* data, int stage) {
  if (!engine().mj_stepSkip) throw EngineError("this MuJoCo does not export mj_stepSkip");
  run(data, [=] { engine().mj_stepSkip(model, data, stage, 0); });
}

OwnedData make_data(const void* model) {
  static thread_local void* data;
  data = nullptr;
  if (!guarded([=] { data = engine().mj_makeData(model); })) throw EngineError(text);
  if (!data) throw EngineError("mj_makeData: out of memory");
  return OwnedData(data);
}

double geom_distance(const void* model, const void* data, int geom1, int geom2, double most,
                     double fromto[6]) {
  const Stack before = view_stack(data);
  void* borrowed = const_cast<void*>(data);
  double distance = most;
  auto measure = [&] {
    distance = engine().mj_geomDistance(model, borrowed, geom1, geom2, most, fromto);
  };
  if (!guarded(measure)) {
    restore_stack(borrowed, before);
    throw EngineError(text);
  }
  return distance;
}

const char* plugin_name(const ModelView& m, int plugin) { return plugin_head(m, plugin).name; }

bool is_plugin(const ModelView& m, int plugin, const char* name) {
  return std::strcmp(plugin_name(m, plugin), name) == 0;
}

int plugin_capabilities(const ModelView& m, int plugin) {
  return plugin_head(m, plugin).capabilities;
}

const char* plugin_attribute(const ModelView& m, int plugin, const char* attribute) {
  return engine().mj_getPluginConfig(m.address, plugin, attribute);
}

std::string element_name(const ModelView& m, int object_type, int id) {
  const char* kind = object_type == object::kBody       ? "body"
                     : object_type == object::kJoint    ? "joint"
                     : object_type == object::kGeom     ? "geom"
                     : object_type == object::kTendon   ? "tendon"
                     : object_type == object::kActuator ? "actuator"
                     : object_type == object::kSensor   ? "sensor"
                     : object_type == object::kFlex     ? "flex"
                     : object_type == object::kPlugin   ? "plugin"
                     : object_type == object::kEquality ? "equality"
                                                        : "element";
  const char* name = engine().mj_id2name(m.address, object_type, id);
  if (name && *name) return std::string(kind) + " \"" + name + "\"";
  return std::string(kind) + " " + std::to_string(id);
}

std::string contact_name(const ModelView& m, const ContactView& contact) {
  auto name = [&](int side) {
    const int geom = contact.geom.v[side];
    return geom < 0 ? element_name(m, object::kFlex, contact.flex.v[side])
                    : element_name(m, object::kGeom, geom);
  };
  return "contact between " + name(0) + " and " + name(1);
}

}  // namespace mujacobian
