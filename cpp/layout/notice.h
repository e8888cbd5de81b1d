// Notices: facts about a result that the user should know, such as the distance between the iterate
// of MuJoCo's solver and the optimum. Every thread keeps the worst notice of each kind. Worker
// threads merge their notices into those of the calling thread, and the bindings pass them to
// Python, which warns.
#pragma once

namespace mujacobian {

struct Notice {
  double value = 0;           // size of the error
  double limit = 0;           // largest error without a warning
  int element[2] = {-1, -1};  // ids of the elements, such as the geoms of a contact; -1: none
};

class Notices {
 public:
  enum Kind {
    kSolver,    // accelerations of MuJoCo's solver differ from the optimum
    kContact,   // a contact differs from the contact of a converged collider
    kCollider,  // accelerations differ from those with a converged collider
    kSlope,     // slopes of accelerations may differ from those with a converged collider
    kCount
  };

  // Keeps the notice if it exceeds its limit by a larger factor than the notice kept so far.
  void add(Kind kind, const Notice& notice) {
    if (notice.value > notice.limit && excess(notice) > excess(kept_[kind])) kept_[kind] = notice;
  }
  void merge(const Notices& other) {
    for (int k = 0; k < kCount; k++) add(static_cast<Kind>(k), other.kept_[k]);
  }
  // Drops one of two kinds that have the same remedy: the one that exceeds its limit less.
  void keep_worse(Kind one, Kind other) {
    kept_[excess(kept_[one]) < excess(kept_[other]) ? one : other] = {};
  }
  void drop(Kind kind) { kept_[kind] = {}; }
  // By which factor a notice exceeds its limit, 0 if there is none.
  double excess(Kind kind) const { return excess(kept_[kind]); }
  bool has(int kind) const { return kept_[kind].value > 0; }
  bool is_empty() const {
    for (int k = 0; k < kCount; k++) {
      if (has(k)) return false;
    }
    return true;
  }
  const Notice& operator[](int kind) const { return kept_[kind]; }

 private:
  static double excess(const Notice& notice) {
    return notice.value > 0 ? notice.value / notice.limit : 0;
  }
  Notice kept_[kCount];
};

// The notices of this thread.
inline Notices& notices() {
  thread_local Notices mine;
  return mine;
}

// Returns the notices of this thread and clears them.
inline Notices take_notices() {
  const Notices taken = notices();
  notices() = {};
  return taken;
}

}  // namespace mujacobian
