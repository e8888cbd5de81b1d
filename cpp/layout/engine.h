// The functions and global variables of the loaded MuJoCo library that the core uses. Python finds
// their addresses at import.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "layout/views.h"

namespace mujacobian {

constexpr int kMaxPairContacts = 50;  // mjMAXCONPAIR

// A contact as a collision function returns it: mjPreContact.
struct PreContact {
  double dist, pos[3], normal[3], tangent[3];
};

// The functions of MuJoCo that the core calls: REQ(result, name, arguments). A function marked OPT
// is null if the library does not export it.
#define MUJACOBIAN_FUNCTIONS(REQ, OPT)                                                           \
  REQ(void, mj_forward, (const void* model, void* data))                                         \
  REQ(void, mj_step, (const void* model, void* data))                                            \
  REQ(void, mj_resetData, (const void* model, void* data))                                       \
  REQ(void, mj_inverse, (const void* model, void* data))                                         \
  REQ(void, mj_fwdActuation, (const void* model, void* data))                                    \
  REQ(void, mj_collision, (const void* model, void* data))                                       \
  REQ(void, mj_fwdPosition, (const void* model, void* data))                                     \
  REQ(void, mj_transmission, (const void* model, void* data))                                    \
  REQ(int, mj_addContact, (const void* model, void* data, const void* contact))                  \
  REQ(void, mj_makeConstraint, (const void* model, void* data))                                  \
  REQ(void, mj_referenceConstraint, (const void* model, void* data))                             \
  REQ(void, mj_island, (const void* model, void* data))                                          \
  REQ(void, mj_projectConstraint, (const void* model, void* data))                               \
  REQ(void, mj_forwardSkip, (const void* model, void* data, int stage, int skip_sensors))        \
  REQ(void*, mj_makeData, (const void* model))                                                   \
  REQ(void, mj_deleteData, (void* data))                                                         \
  REQ(int, mj_stateSize, (const void* model, int spec))                                          \
  REQ(void, mj_getState, (const void* model, const void* data, double* state, int spec))         \
  REQ(void, mj_setState, (const void* model, void* data, const double* state, int spec))         \
  REQ(void*, mj_copyData, (void* to, const void* model, const void* from))                       \
  REQ(void, mj_integratePos, (const void* model, double* qpos, const double* qvel, double dt))   \
  REQ(void, mj_differentiatePos,                                                                 \
      (const void* model, double* qvel, double dt, const double* qpos1, const double* qpos2))    \
  REQ(void, mjd_transitionFD,                                                                    \
      (const void* model, void* data, double eps, unsigned char centered, double* A, double* B,  \
       double* C, double* D))                                                                    \
  OPT(void, mj_stepSkip, (const void* model, void* data, int stage, int skip_sensors))           \
  REQ(const char*, mj_id2name, (const void* model, int type, int id))                            \
  REQ(double, mju_rayGeom,                                                                       \
      (const double position[3], const double axes[9], const double size[3],                     \
       const double point[3], const double direction[3], int type, double* normal))              \
  REQ(double, mj_ray,                                                                            \
      (const void* model, const void* data, const double point[3], const double direction[3],    \
       const unsigned char* groups, bool statics, int excluded_body, int* geom, double* normal)) \
  REQ(double, mj_geomDistance,                                                                   \
      (const void* model, void* data, int geom1, int geom2, double most, double fromto[6]))      \
  REQ(int, mj_sleepState, (const void* model, const void* data, int object_type, int id))        \
  REQ(const double*, mj_readCtrl,                                                                \
      (const void* model, const void* data, int actuator, double time, double* result,           \
       int interpolation))                                                                       \
  REQ(const void*, mjp_getPluginAtSlot, (int slot))                                              \
  REQ(const char*, mj_getPluginConfig, (const void* model, int plugin, const char* attribute))   \
  REQ(void*, _mjPRIVATE_setTlsLogHandler, (void (*handler)(const void* message)))                \
  REQ(void*, _mjPRIVATE_getGlobalLogHandler, ())

struct Engine {
#define MUJACOBIAN_MEMBER(RESULT, NAME, ARGUMENTS) RESULT(*NAME) ARGUMENTS;
  MUJACOBIAN_FUNCTIONS(MUJACOBIAN_MEMBER, MUJACOBIAN_MEMBER)
#undef MUJACOBIAN_MEMBER

  // the collision functions, by the types of two geoms
  using Collide = int (*)(const void* model, void* data, PreContact* out, int geom1, int geom2,
                          double margin);
  const Collide* mjCOLLISIONFUNC;

  // the global callbacks that can change the result of a step: mjcb_control, ...
  struct Callback {
    const char* name;
    void* const* address;
  };
  Callback callbacks[6];

  int physics_spec;      // mjSTATE_FULLPHYSICS
  int integration_spec;  // mjSTATE_INTEGRATION
  int log_error;         // mjLOG_ERROR
  int eq_stride;         // mjNEQDATA
  int version;           // mj_version(), which is compared with kMuJoCo400, ...
};

// A name that the core looks up in the library.
struct Symbol {
  const char* name;
  bool is_function;  // false: a variable
  bool optional;
};

// All names that `set_engine` expects.
const std::vector<Symbol>& symbols();

// Sets the addresses of all symbols (0: absent) and the constants of the installed MuJoCo.
void set_engine(const std::map<std::string, std::uintptr_t>& addresses,
                const std::map<std::string, int>& constants);

Engine& engine();

// A MuJoCo error (mju_error), which would end the process if it were not caught.
struct EngineError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The following functions call MuJoCo and turn its errors into EngineError. After an error they
// restore the stack of `data`. They are safe in worker threads, because the handler is
// thread-local.

// mj_forward; mj_inverse, followed by mj_fwdActuation if `actuation` is true.
void forward(const void* model, void* data);
void run_inverse(const void* model, void* data, bool actuation);

// mj_forward with the contacts of the caller. No geoms of the model collide with each other.
void forward_with_contacts(const void* model, void* data, const std::vector<ContactView>& given);

// Stages of mj_forward: finding all contacts; making the constraint rows of the contacts in `data`;
// everything after mj_fwdVelocity, up to qacc and the sensors.
void collide(const void* model, void* data);
void make_constraints(const void* model, void* data);
void solve_constraints(const void* model, void* data);

// Writes the contacts of two geoms, which are in the order of their types, and returns their
// number.
int collide_pair(const ModelView& m, void* data, int geom1, int geom2, double margin,
                 PreContact out[kMaxPairContacts]);

// An mjData that the core owns.
struct DeleteData {
  void operator()(void* data) const { engine().mj_deleteData(data); }
};
using OwnedData = std::unique_ptr<void, DeleteData>;
OwnedData make_data(const void* model);

// While an object of this class lives, MuJoCo's warnings on its thread are not shown. Simulations
// that may fail use it.
class Quiet {
 public:
  Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
  ~Quiet();
};

// mj_resetData, which also clears the warnings.
void reset(const void* model, void* data);

// mj_step. Sets `after` to a view of the new state, and returns false if MuJoCo detected NaN or
// diverging values and reset the state.
bool step(const void* model, void* data, DataView& after);

// mj_geomDistance, which uses the stack of `data` and changes nothing else.
double geom_distance(const void* model, const void* data, int geom1, int geom2, double most,
                     double fromto[6]);

// mj_copyData.
void copy_data(void* to, const void* model, const void* from);

// mjd_transitionFD, and mj_step without the stages up to `stage`. Only the finite-difference
// backends of control.ILQR call them.
void transition_fd(const void* model, void* data, double eps, bool centered, double* A, double* B,
                   double* C, double* D);
void step_skip(const void* model, void* data, int stage);

// The plugins that MuJoCo's package contains and whose derivatives are known.
inline constexpr const char* kPidPlugin = "mujoco.pid";
inline constexpr const char* kTouchGridPlugin = "mujoco.sensor.touch_grid";

// Return the name under which a plugin is registered, whether it is `name`, its capabilities (bits
// of mjtPluginCapabilityBit), and the text of one of its attributes (null or empty: not given).
const char* plugin_name(const ModelView& m, int plugin);
bool is_plugin(const ModelView& m, int plugin, const char* name);
int plugin_capabilities(const ModelView& m, int plugin);
const char* plugin_attribute(const ModelView& m, int plugin, const char* attribute);

// Returns the kind of an element and its name or index: 'geom "foot"', 'geom 3'.
std::string element_name(const ModelView& m, int object_type, int id);

// Returns 'contact between geom "a" and geom "b"'. One of them may be a flex.
std::string contact_name(const ModelView& m, const ContactView& contact);

}  // namespace mujacobian
