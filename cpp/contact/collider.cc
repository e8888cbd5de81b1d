#include "contact/collider.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "contact/pair_table.h"
#include "contact/recollision.h"
#include "contact/standing_cylinder.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/notice.h"
#include "layout/sleep.h"

namespace mujacobian {
namespace {

// Bytes for the collider's polytopes, which MuJoCo takes from the arena of mjData.
constexpr std::uint64_t kMoreArena = 4 << 20;

// A contact follows a facet if the error of its normal, times the smaller radius of the two geoms,
// is at least this part of the error of its position. (CON-45)
constexpr double kFaceted = 0.1;

// Error of a contact that has no counterpart.
constexpr double kNone = std::numeric_limits<double>::infinity();

bool has_converged_collider(const ModelView& m) {
  return m.opt.ccd_tolerance <= kColliderTolerance && m.opt.ccd_iterations >= collider_iterations();
}

void copy(const double* to, const double* from, int n) {
  std::memcpy(const_cast<double*>(to), from, n * sizeof(double));
}

// Whether a quantity that mj_forward computes before the constraint solver, other than the rows,
// depends on contacts or cannot be copied.
bool depends_on_contacts_early(const ModelView& m) {
  if (m.nplugin || m.nflex || m.opt.integrator == integrator::kDiscrete) return true;
  const int* transmissions = m.actuator_trntype;
  return std::find(transmissions, transmissions + m.nactuator, transmission::kBody) !=
         transmissions + m.nactuator;
}

// Whether the derivative needs more than contacts and rows: rows have the exact diagonal only after
// MuJoCo has solved.
bool needs_solution(const ModelView& m) {
  return m.opt.noslip_iterations > 0 || m.opt.integrator == integrator::kRK4 ||
         (m.opt.enableflags & enable::kDiagExact);
}

// Whether a contact depends on the user's ccd_tolerance.
bool depends_on_tolerance(const ModelView& m, const DataView& d) {
  if (has_converged_collider(m)) return false;
  for (int k = 0; k < d.ncon; k++) {
    if (!uses_collider(m, contact_geoms(d, k))) continue;
    const ContactView contact = view_contact(d, k);
    if (contact.efc_address >= 0 && is_iterative(m, contact)) return true;
  }
  return false;
}

// The model and data of one thread with a converged collider.
class Converged {
 public:
  const ModelView& model(const ModelView& m) {
    model_.take(m.address);
    model_.set_collider(std::min(kColliderTolerance, m.opt.ccd_tolerance),
                        std::max(collider_iterations(), m.opt.ccd_iterations));
    model_.enlarge_arena(kMoreArena);
    m_ = view_model(model_.address());
    m_.opt.enableflags = m.opt.enableflags;  // the caller may have removed flags from its view
    m_.open_histories = m.open_histories;
    return m_;
  }

  // Returns an mjData of that model.
  void* data(const ModelView& m) {
    // it serves every model of the same sizes, unless plugins store state in it
    if (!data_ || !has_sizes(m.address, sizes_) || m.nplugin) {
      data_ = make_data(model_.address());
      sizes_ = model_sizes(m.address);
    }
    unsolved_ = false;
    given_ = nullptr;
    return data_.get();
  }

  // Returns the same with the caller's state.
  void* data(const ModelView& m, const DataView& d) {
    // with the flag sleep, MuJoCo computes the poses of static bodies only once
    if (m.opt.enableflags & enable::kSleep) data_.reset();
    data(m);
    const int spec = engine().integration_spec;
    state_.resize(engine().mj_stateSize(m.address, spec));
    engine().mj_getState(m.address, d.address, state_.data(), spec);
    engine().mj_setState(m.address, data_.get(), state_.data(), spec);
    return data_.get();
  }

  const DataView& view() { return d_ = view_data(data_.get()); }

  // Evaluates the caller's state again; `view` returns the result.
  void evaluate(const ModelView& m, const DataView& d) {
    const Quiet quiet;
    is_tolerant_ = depends_on_tolerance(m, d);
    if (depends_on_contacts_early(m)) {
      require_awake(m, d);
      forward(model_.address(), data(m, d));
      given_ = &d;
      return;
    }
    // with the warm start: if MuJoCo's solver runs again, it stops as early as the caller's solver
    copy_contacts(m, d, data(m));
    given_ = &d;
    view();
    find_contacts_again(m_, d_);
    make_constraints(model_.address(), data_.get());
    unsolved_ = true;
  }

  // Whether the contacts of the caller's data depend on its ccd_tolerance.
  bool is_tolerant() const { return is_tolerant_; }

  // Returns the caller's data if `d` is this one, otherwise null.
  const DataView* given(const DataView& d) const {
    return d.address == data_.get() ? given_ : nullptr;
  }

  bool is_unsolved(const DataView& d) const { return unsolved_ && d.address == data_.get(); }

  // Lets MuJoCo solve for qacc and forces if needed. Returns false if `d` is another data.
  bool solve(const DataView& d) {
    if (!is_unsolved(d)) return false;
    const Quiet quiet;
    unsolved_ = false;
    solve_constraints(model_.address(), data_.get());
    view();  // islands may have moved; holders of the view get the new pointers
    return true;
  }

 private:
  ModelCopy model_;
  ModelView m_;
  DataView d_;
  OwnedData data_;
  std::string sizes_;
  std::vector<double> state_;
  const DataView* given_ = nullptr;
  bool is_tolerant_ = false;
  bool unsolved_ = false;  // qacc and forces are still the caller's
};

Converged& converged() {
  thread_local Converged mine;
  return mine;
}

struct Range {
  int first, last;  // without the last one
  int size() const { return last - first; }
};

// Returns the contacts between two geoms, which follow one another, probably around contact `near`.
Range find_pair(const DataView& d, const int geoms[2], int near) {
  const auto is_here = [&](int k) { return is_same_pair(geoms, contact_geoms(d, k)); };
  if (near >= d.ncon || !is_here(near)) {
    for (near = 0; near < d.ncon && !is_here(near);) near++;
  }
  Range found{near, near};
  while (found.first > 0 && is_here(found.first - 1)) found.first--;
  while (found.last < d.ncon && is_here(found.last)) found.last++;
  return found;
}

double difference(const ContactView& a, const ContactView& b) {
  return norm(load3(a.pos.v) - load3(b.pos.v)) + std::abs(a.dist - b.dist) +
         norm(load3(a.frame.v) - load3(b.frame.v));
}

// Whether contact k of one is close to contact k of the other, which is so with few exceptions.
bool agree(const DataView& one, const DataView& other, int k) {
  return k < one.ncon && k < other.ncon &&
         is_same_pair(contact_geoms(one, k), contact_geoms(other, k)) &&
         difference(view_contact(one, k), view_contact(other, k)) <= kContactLimit;
}

// Adds notices for contacts of the user's collider that are far from the converged ones, or that
// have no counterpart.
void notice_contacts(const DataView& d, const DataView& converged) {
  auto notice = [](double error, const ContactView& c) {
    notices().add(Notices::kContact, {error, kContactLimit, {c.geom.v[0], c.geom.v[1]}});
  };
  for (int k = 0; k < std::max(d.ncon, converged.ncon); k++) {
    if (agree(d, converged, k)) continue;
    if (k < converged.ncon) notice(contact_error(d, converged, k), view_contact(converged, k));
    if (k >= d.ncon) continue;
    const ContactView c = view_contact(d, k);
    if (find_pair(converged, c.geom.v, k).size() == 0) notice(kNone, c);
  }
}

}  // namespace

int collider_iterations() {
  return engine().version < kMuJoCo317 ? kColliderIterations315 : kColliderIterations;
}

const ModelView& converged_model(const ModelView& m) {
  return has_converged_collider(m) ? m : converged().model(m);
}

bool has_inexact_contacts(const ModelView& m, const DataView& d) {
  return depends_on_tolerance(m, d) || has_standing_cylinder(m, d);
}

Evaluation converge_collider(const ModelView& m, const DataView& d, bool solved) {
  if (d.ncon == 0 || d.given_contacts) return {m, d};
  if (depends_on_contacts_early(m)) {
    require_no_standing_cylinder(m, d);
    if (!depends_on_tolerance(m, d)) return {m, d};
  } else if (!has_inexact_contacts(m, d)) {
    return {m, d};
  }
  Converged& mine = converged();
  const ModelView& converging = mine.model(m);
  mine.evaluate(m, d);
  notice_contacts(d, mine.view());
  if (solved || needs_solution(m)) mine.solve(mine.view());
  return {converging, mine.view()};
}

bool solve_again(const DataView& d) { return converged().solve(d); }

bool is_unsolved(const DataView& d) { return converged().is_unsolved(d); }

const double* given_acceleration(const DataView& d) {
  const DataView* given = converged().given(d);
  return given ? given->qacc : nullptr;
}

bool find_faceted(const ModelView& m, const DataView& d, int geoms[2]) {
  const DataView* given = converged().given(d);
  if (!given) return false;
  double largest = 0;
  for (int k = 0; k < std::min(d.ncon, given->ncon); k++) {
    const int* id = contact_geoms(d, k);
    if (!is_same_pair(id, contact_geoms(*given, k)) || id[0] < 0 || id[1] < 0) continue;
    const ContactView a = view_contact(d, k), b = view_contact(*given, k);
    if (a.efc_address < 0) continue;
    const double turn = norm(load3(a.frame.v) - load3(b.frame.v));
    const double shift = norm(load3(a.pos.v) - load3(b.pos.v));
    const double radius = std::fmin(m.geom_rbound[id[0]], m.geom_rbound[id[1]]);
    if (turn <= largest || radius * turn <= kFaceted * shift) continue;
    geoms[0] = id[0], geoms[1] = id[1];
    largest = turn;
  }
  return largest > 0;
}

void notice_collider(const DataView& d, double error) {
  if (error <= kColliderLimit || !converged().is_tolerant()) return;
  Notice notice{error, kColliderLimit};
  double largest = -1;
  for (int k = 0; k < d.ncon; k++) {
    const double off = contact_error(*converged().given(d), d, k);
    if (off <= largest) continue;
    const ContactView c = view_contact(d, k);
    notice.element[0] = c.geom.v[0], notice.element[1] = c.geom.v[1];
    largest = off;
  }
  notices().add(Notices::kCollider, notice);
}

Evaluation converge_inverse(const ModelView& m, const DataView& d, bool actuation) {
  require_no_standing_cylinder(m, d);
  if (!depends_on_tolerance(m, d)) return {m, d};
  Converged& mine = converged();
  const ModelView& converging = mine.model(m);
  void* data = mine.data(m, d);
  const DataView to = view_data(data);
  copy(to.qacc, d.qacc, m.nv);
  copy(to.qfrc_actuator, d.qfrc_actuator, m.nv);
  copy(to.actuator_force, d.actuator_force, m.nactuator);
  const Quiet quiet;
  run_inverse(converging.address, data, actuation);
  notice_contacts(d, mine.view());
  return {converging, mine.view()};
}

double converged_distance(const ModelView& m, const DataView& d, int geom1, int geom2, double most,
                          double fromto[6]) {
  ContactView pair{};
  const bool ordered = m.geom_type[geom1] <= m.geom_type[geom2];
  pair.geom.v[0] = ordered ? geom1 : geom2, pair.geom.v[1] = ordered ? geom2 : geom1;
  if (has_converged_collider(m) || !is_iterative(m, pair)) {
    return geom_distance(m.address, d.address, geom1, geom2, most, fromto);
  }
  // in our own data, because the caller's arena may be too small; only poses are needed
  const ModelView& converging = converged().model(m);
  const DataView to = view_data(converged().data(m));
  copy(to.geom_xpos, d.geom_xpos, 3 * m.ngeom);
  copy(to.geom_xmat, d.geom_xmat, 9 * m.ngeom);
  const Quiet quiet;
  return geom_distance(converging.address, to.address, geom1, geom2, most, fromto);
}

double contact_error(const DataView& d, const DataView& converged, int k) {
  const ContactView c = view_contact(converged, k);
  const Range found = find_pair(d, c.geom.v, k);
  if (found.size() != find_pair(converged, c.geom.v, k).size()) return kNone;
  double least = kNone;
  for (int j = found.first; j < found.last; j++) {
    least = std::fmin(least, difference(view_contact(d, j), c));
  }
  return least;
}

}  // namespace mujacobian
