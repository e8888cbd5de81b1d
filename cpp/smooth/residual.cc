#include "smooth/residual.h"

#include "spatial/lanes.h"

namespace mujacobian {
namespace {

int find(int* leader, int tree) {
  while (leader[tree] != tree) tree = leader[tree] = leader[leader[tree]];
  return tree;
}

// Component number of every tree: trees that share a tendon or coupling share a component.
int* couple_trees(const ModelView& m, const Coupling* couplings, int coupling_count, int& count,
                  Arena& arena) {
  int* leader = arena.take<int>(m.ntree);
  for (int t = 0; t < m.ntree; t++) leader[t] = t;
  auto join = [&](const int* dofs, int n) {
    for (int k = 1; k < n; k++) {
      int a = find(leader, m.dof_treeid[dofs[0]]), b = find(leader, m.dof_treeid[dofs[k]]);
      if (a != b) leader[a < b ? b : a] = a < b ? a : b;
    }
  };
  for (int t = 0; t < m.ntendon; t++) join(m.ten_J_colind + m.ten_J_rowadr[t], m.ten_J_rownnz[t]);
  for (int k = 0; k < coupling_count; k++) join(couplings[k].dofs, couplings[k].n);
  int* number = arena.take<int>(m.ntree);
  count = 0;
  for (int t = 0; t < m.ntree; t++) {
    int l = find(leader, t);
    number[t] = l == t ? count++ : number[l];
  }
  return number;
}

}  // namespace

Residual make_residual(const ModelView& m, const DataView& d, const Coupling* couplings, int count,
                       bool forces, Arena& arena) {
  Residual r;
  const int* number = couple_trees(m, couplings, count, r.count, arena);
  r.components = arena.zeros<Component>(r.count);

  // count dofs and controls; a control belongs where its actuator's first moment entry is
  int* component = arena.take<int>(m.nv);
  for (int i = 0; i < m.nv; i++) {
    component[i] = number[m.dof_treeid[i]];
    r.components[component[i]].nv++;
  }
  int* ctrl_component = arena.take<int>(m.nu);
  for (int a = 0; a < m.nactuator; a++) {
    int out = m.actuator_outadr[a];
    int dof = d.moment_rownnz[out] ? d.moment_colind[d.moment_rowadr[out]] : -1;
    for (int k = 0; k < m.actuator_ctrlnum[a]; k++) {
      int c = dof < 0 ? -1 : component[dof];
      ctrl_component[m.actuator_ctrladr[a] + k] = c;
      if (c >= 0) r.components[c].nu++;
    }
  }

  // hand out index lists and rows
  int* dofs = arena.take<int>(m.nv);
  int* ctrls = arena.take<int>(m.nu);
  std::size_t total = 0;
  for (int c = 0; c < r.count; c++) {
    Component& part = r.components[c];
    part.dofs = dofs, dofs += part.nv;
    part.ctrls = ctrls, ctrls += part.nu;
    part.nf = forces ? part.nv : 0;
    part.stride = round_to_line(2 * part.nv + part.nu + part.nf);
    total += static_cast<std::size_t>(part.nv) * part.stride;
  }
  double* x = arena.zeros<double>(total);
  int* column = arena.take<int>(m.nv);
  int* ctrl_column = arena.take<int>(m.nu);
  r.row = arena.take<double*>(m.nv);
  for (int c = 0; c < r.count; c++) {
    Component& part = r.components[c];
    part.x = x;
    x += static_cast<std::size_t>(part.nv) * part.stride;
    part.nv = part.nu = 0;
  }
  for (int i = 0; i < m.nv; i++) {
    Component& part = r.components[component[i]];
    const_cast<int*>(part.dofs)[part.nv] = i;
    r.row[i] = part.x + static_cast<std::size_t>(part.nv) * part.stride;
    column[i] = part.nv++;
  }
  for (int u = 0; u < m.nu; u++) {
    if (ctrl_component[u] < 0) {
      ctrl_column[u] = -1;
      continue;
    }
    Component& part = r.components[ctrl_component[u]];
    const_cast<int*>(part.ctrls)[part.nu] = u;
    ctrl_column[u] = 2 * part.nv + part.nu++;
  }
  if (forces) {
    for (int i = 0; i < m.nv; i++) {
      const Component& part = r.components[component[i]];
      r.row[i][2 * part.nv + part.nu + column[i]] = 1;
    }
  }
  r.column = column;
  r.component = component;
  r.ctrl_column = ctrl_column;
  return r;
}

Residual make_like(const ModelView& m, const Residual& other, Arena& arena) {
  Residual r = other;
  r.components = arena.take<Component>(r.count);
  r.row = arena.take<double*>(m.nv);
  for (int c = 0; c < r.count; c++) {
    Component& part = r.components[c];
    part = other.components[c];
    part.x = arena.zeros<double>(static_cast<std::size_t>(part.nv) * part.stride);
    for (int i = 0; i < part.nv; i++) {
      r.row[part.dofs[i]] = part.x + static_cast<std::ptrdiff_t>(i) * part.stride;
    }
  }
  return r;
}

}  // namespace mujacobian
