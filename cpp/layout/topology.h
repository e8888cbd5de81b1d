// The forest of dofs: their ancestors, and the dofs that move a body.
#pragma once

#include "layout/arena.h"
#include "layout/enums.h"
#include "layout/views.h"

namespace mujacobian {

struct Topology {
  int max_depth;     // number of dofs on the longest chain
  const int* depth;  // number of ancestors of dof i
  const int* end;    // one past the last dof that i moves; dofs are numbered depth first

  // Returns whether a is b or one of its ancestors.
  bool is_ancestor(int a, int b) const { return a <= b && b < end[a]; }
  bool is_related(int a, int b) const { return a <= b ? b < end[a] : a < end[b]; }
};

inline Topology topology(const ModelView& m, Arena& arena) {
  int* depth = arena.take<int>(m.nv);
  int* end = arena.take<int>(m.nv);
  int max_depth = 0;
  for (int i = 0; i < m.nv; i++) {
    int parent = m.dof_parentid[i];
    depth[i] = parent < 0 ? 0 : depth[parent] + 1;
    end[i] = i + 1;
    if (depth[i] >= max_depth) max_depth = depth[i] + 1;
  }
  for (int i = m.nv - 1; i >= 0; i--) {
    int parent = m.dof_parentid[i];
    if (parent >= 0 && end[parent] < end[i]) end[parent] = end[i];
  }
  return {max_depth, depth, end};
}

// Returns the last dof that moves the body, a negative number if nothing moves it. The dofs that
// move a body are this dof and its ancestors.
inline int last_dof(const ModelView& m, int body) {
  int weld = m.body_weldid[body];
  return m.body_dofadr[weld] + m.body_dofnum[weld] - 1;
}

// Returns the body of a tree that consists of one free joint, -1 for other trees.
inline int free_body(const ModelView& m, int tree) {
  if (m.tree_dofnum[tree] != 6) return -1;
  int dof = m.tree_dofadr[tree];
  return m.jnt_type[m.dof_jntid[dof]] == joint::kFree ? m.dof_bodyid[dof] : -1;
}

// Returns whether dof k moves the axis of dof j, for two dofs on one chain. This holds if j comes
// after k, and if both are rotations of one ball or free joint, whose axes turn with the body.
inline bool moves_axis(const ModelView& m, int k, int j) {
  if (k <= j) return true;
  int id = m.dof_jntid[j];
  if (id != m.dof_jntid[k]) return false;
  return j >= m.jnt_dofadr[id] + (m.jnt_type[id] == joint::kFree ? 3 : 0);
}

// Writes the dofs that move body0 or body1, in increasing order, and returns their number. Bit s of
// moves[k], if `moves` is not null, is set if dofs[k] moves body s.
inline int merge_chains(const ModelView& m, int body0, int body1, int* dofs,
                        unsigned char* moves = nullptr) {
  int at[2] = {last_dof(m, body0), last_dof(m, body1)}, n = 0;
  for (int i = at[0], j = at[1]; i >= 0 || j >= 0; n++) {
    int dof = i > j ? i : j;
    if (i == dof) i = m.dof_parentid[i];
    if (j == dof) j = m.dof_parentid[j];
  }
  for (int k = n - 1; k >= 0; k--) {
    dofs[k] = at[0] > at[1] ? at[0] : at[1];
    unsigned char bits = (at[0] == dofs[k]) | (at[1] == dofs[k]) << 1;
    for (int s = 0; s < 2; s++) {
      if (bits >> s & 1) at[s] = m.dof_parentid[at[s]];
    }
    if (moves) moves[k] = bits;
  }
  return n;
}

}  // namespace mujacobian
