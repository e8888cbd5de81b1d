// The functions of the loaded MuJoCo library that the core calls, through addresses found at
// import.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "layout/views.h"

namespace mujacobian {

constexpr int kMaxPairContacts = 50;  // mjMAXCONPAIR

// A contact as a collision function returns it: mjPreContact.
struct PreContact {
  double dist, pos[3], normal[3], tangent[3];
};

struct Engine {
  void (*mj_forward)(const void* model, void* data);
  void (*mj_step)(const void* model, void* data);
  void (*mj_resetData)(const void* model, void* data);
  void (*mj_inverse)(const void* model, void* data);
  void (*mj_fwdActuation)(const void* model, void* data);
  void (*mj_collision)(const void* model, void* data);
  void (*mj_makeConstraint)(const void* model, void* data);
  void (*mj_referenceConstraint)(const void* model, void* data);
  void (*mj_island)(const void* model, void* data);
  void (*mj_projectConstraint)(const void* model, void* data);
  void (*mj_forwardSkip)(const void* model, void* data, int stage, int skip_sensors);
  void* (*mj_makeData)(const void* model);
  void (*mj_deleteData)(void* data);
  int (*mj_stateSize)(const void* model, int spec);
  void (*mj_getState)(const void* model, const void* data, double* state, int spec);
  void (*mj_setState)(const void* model, void* data, const double* state, int spec);
  void* (*mj_copyData)(void* to, const void* model, const void* from);
  void (*mj_integratePos)(const void* model, double* qpos, const double* qvel, double dt);
  void (*mj_differentiatePos)(const void* model, double* qvel, double dt, const double* qpos1,
                              const double* qpos2);
  // only to be compared with; mj_stepSkip may be null
  void (*mjd_transitionFD)(const void* model, void* data, double eps, unsigned char centred,
                           double* A, double* B, double* C, double* D);
  void (*mj_stepSkip)(const void* model, void* data, int stage, int skip_sensors);
  const char* (*mj_id2name)(const void* model, int type, int id);
  double (*mju_rayGeom)(const double position[3], const double axes[9], const double size[3],
                        const double point[3], const double direction[3], int type, double* normal);
  double (*mj_ray)(const void* model, const void* data, const double point[3],
                   const double direction[3], const unsigned char* groups, bool statics,
                   int excluded_body, int* geom, double* normal);
  double (*mj_geomDistance)(const void* model, void* data, int geom1, int geom2, double most,
                            double fromto[6]);
  const void* (*mjp_getPluginAtSlot)(int slot);
  void* (*set_log_handler)(void (*handler)(const void* message));
  void* (*get_global_log_handler)();

  // mjCOLLISIONFUNC, by the types of two geoms
  using Collide = int (*)(const void* model, void* data, PreContact* out, int geom1, int geom2,
                          double margin);
  const Collide* collision_functions;

  // addresses of the global callbacks (mjcb_control, ...) that could change what a step computes
  struct Callback {
    const char* name;
    void* const* address;
  };
  Callback callbacks[6];

  int physics_spec;      // mjSTATE_FULLPHYSICS
  int integration_spec;  // mjSTATE_INTEGRATION
  int log_error;         // mjLOG_ERROR
  int eq_stride;         // mjNEQDATA
  int version;           // mj_version(): 4000000 for 4.0.0
};

Engine& engine();

// A MuJoCo error (mju_error), which would end the process if it were not caught.
struct EngineError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// mj_forward, mj_inverse (and mj_fwdActuation on request), and those below, with MuJoCo's errors
// turned into EngineError; `data`'s stack is restored after an error. Safe in worker threads: the
// handler is thread-local.
void forward(const void* model, void* data);
void run_inverse(const void* model, void* data, bool actuation);

// Stages of mj_forward, guarded in the same way: all contacts; the constraint rows of the contacts
// there are; what follows mj_fwdVelocity, which ends in qacc and sensors.
void collide(const void* model, void* data);
void make_constraints(const void* model, void* data);
void solve_constraints(const void* model, void* data);

// The contacts of two geoms, in the order of their types; returns their number.
int collide_pair(const ModelView& m, void* data, int geom1, int geom2, double margin,
                 PreContact out[kMaxPairContacts]);

// An mjData of our own.
struct DeleteData {
  void operator()(void* data) const { engine().mj_deleteData(data); }
};
using OwnedData = std::unique_ptr<void, DeleteData>;
OwnedData make_data(const void* model);

// While one lives, warnings of the calls of its thread are not shown: for simulations that may
// fail.
class Quiet {
 public:
  Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
  ~Quiet();
};

// mj_resetData, which forgets warnings too; mj_step, which returns false if MuJoCo found the state
// bad and reset it, and views the data after it.
void reset(const void* model, void* data);
bool step(const void* model, void* data, DataView& after);

// mj_geomDistance, guarded in the same way: it borrows the data's stack and changes nothing else.
double geom_distance(const void* model, const void* data, int geom1, int geom2, double most,
                     double fromto[6]);

// mj_copyData, guarded.
void copy_data(void* to, const void* model, const void* from);

// mjd_transitionFD, and mj_step without the stages up to `stage`, guarded in the same way.
void transition_fd(const void* model, void* data, double eps, bool centred, double* A, double* B,
                   double* C, double* D);
void step_skip(const void* model, void* data, int stage);

// What a plugin of the model does, bits of mjtPluginCapabilityBit.
int plugin_capabilities(const ModelView& m, int plugin);

// The element's name, or its kind and index when it has none: 'geom "foot"', 'geom 3'.
std::string element_name(const ModelView& m, int object_type, int id);

// 'contact between geom "a" and geom "b"'
std::string contact_name(const ModelView& m, const ContactView& contact);

}  // namespace mujacobian
