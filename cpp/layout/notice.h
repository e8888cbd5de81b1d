// Facts that the reader of a result should know, found while it is computed: how far MuJoCo's
// solver stopped from the optimum, say. Every thread keeps the worst of each kind; those of worker
// threads are merged into the calling thread's, and the bindings hand them to Python, which warns.
#pragma once

namespace mujacobian {

struct Notice {
  double value = 0;           // how far off
  double limit = 0;           // up to which nothing is worth a word
  int element[2] = {-1, -1};  // ids of what it is about, such as the geoms of a contact; -1: none
};

class Notices {
 public:
  // kContact: a contact is far from that of a converged collider; kCollider: accelerations are.
  enum Kind { kSolver, kContact, kCollider, kCount };

  // Keep the notice if its value exceeds its limit, by more than that of the one kept so far.
  void add(Kind kind, const Notice& notice) {
    if (notice.value > notice.limit && excess(notice) > excess(kept_[kind])) kept_[kind] = notice;
  }
  void merge(const Notices& other) {
    for (int k = 0; k < kCount; k++) add(static_cast<Kind>(k), other.kept_[k]);
  }
  // Of two kinds with the same remedy, keep the one that exceeds its limit by more.
  void keep_worse(Kind one, Kind other) {
    kept_[excess(kept_[one]) < excess(kept_[other]) ? one : other] = {};
  }
  bool has(int kind) const { return kept_[kind].value > 0; }
  const Notice& operator[](int kind) const { return kept_[kind]; }

 private:
  static double excess(const Notice& notice) {
    return notice.value > 0 ? notice.value / notice.limit : 0;
  }
  Notice kept_[kCount];
};

// Those of this thread.
inline Notices& notices() {
  thread_local Notices mine;
  return mine;
}

// The same, which are forgotten.
inline Notices take_notices() {
  const Notices taken = notices();
  notices() = {};
  return taken;
}

}  // namespace mujacobian
