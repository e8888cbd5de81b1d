#include "tree/dof_rows.h"

#include "linear/lanes.h"

namespace mujacobian {
namespace {

// Returns the representative of the set that contains the tree, and shortens the path to it.
int find(int* leader, int tree) {
  while (leader[tree] != tree) tree = leader[tree] = leader[leader[tree]];
  return tree;
}

// Returns the component of every tree. Trees that share a tendon, an actuator or a coupling are in
// the same component.
int* couple_trees(const ModelView& m, const Coupling* couplings, int coupling_count,
                  const Coupling* actuators, int& count, Arena& arena) {
  // join the sets of trees that share something
  int* leader = arena.take<int>(m.ntree);
  for (int t = 0; t < m.ntree; t++) leader[t] = t;
  auto join = [&](const int* dofs, int n) {
    for (int k = 1; k < n; k++) {
      int a = find(leader, m.dof_treeid[dofs[0]]), b = find(leader, m.dof_treeid[dofs[k]]);
      if (a != b) leader[a < b ? b : a] = a < b ? a : b;
    }
  };
  for (int t = 0; t < m.ntendon; t++) join(m.ten_J_colind + m.ten_J_rowadr[t], m.ten_J_rownnz[t]);
  for (int a = 0; actuators && a < m.nactuator; a++) join(actuators[a].dofs, actuators[a].n);
  for (int k = 0; k < coupling_count; k++) join(couplings[k].dofs, couplings[k].n);

  // number the sets
  int* number = arena.take<int>(m.ntree);
  count = 0;
  for (int t = 0; t < m.ntree; t++) {
    int l = find(leader, t);
    number[t] = l == t ? count++ : number[l];
  }
  return number;
}

// Returns the component of every input, activations first: the component of the dofs of its
// actuator, or -1 if the actuator has no dofs.
int* place_inputs(const ModelView& m, const Coupling* actuators, const int* component,
                  Arena& arena) {
  int* place = arena.take<int>(m.na + m.nu);
  for (int a = 0; a < m.nactuator; a++) {
    int c = actuators && actuators[a].n ? component[actuators[a].dofs[0]] : -1;
    for (int k = 0; k < m.actuator_actnum[a]; k++) place[m.actuator_actadr[a] + k] = c;
    for (int k = 0; k < m.actuator_ctrlnum[a]; k++) place[m.na + m.actuator_ctrladr[a] + k] = c;
  }
  return place;
}

// Numbers the members of one kind (dofs, activations or controls) within their components. Writes
// the numbers to `column`, and a list of members to each component.
void number_members(Component* components, int count, const int* component, int n,
                    int Component::* size, const int* Component::* members, int* column,
                    Arena& arena) {
  int* list = arena.take<int>(n);
  // one component, as in most models: the number of members is a local variable
  if (count == 1) {
    int number = 0;
    for (int k = 0; k < n; k++) {
      const bool is_member = component[k] >= 0;
      column[k] = is_member ? number : -1;
      list[number] = k;
      number += is_member;
    }
    components[0].*members = list;
    components[0].*size = number;
    return;
  }
  // count
  for (int k = 0; k < n; k++) {
    if (component[k] >= 0) components[component[k]].*size += 1;
  }
  // reserve the lists
  for (int c = 0; c < count; c++) {
    components[c].*members = list;
    list += components[c].*size;
    components[c].*size = 0;
  }
  // fill them
  for (int k = 0; k < n; k++) {
    column[k] = -1;
    if (component[k] < 0) continue;
    Component& part = components[component[k]];
    column[k] = part.*size;
    const_cast<int*>(part.*members)[part.*size] = k;
    part.*size += 1;
  }
}

// Takes memory for the rows of every component, and sets them to zero.
void take_rows(const ModelView& m, DofRows& r, Arena& arena) {
  r.row = arena.take<double*>(m.nv);
  for (int c = 0; c < r.count; c++) {
    Component& part = r.components[c];
    part.x = arena.zeros<double>(static_cast<std::size_t>(part.nv) * part.stride);
    for (int i = 0; i < part.nv; i++) {
      r.row[part.dofs[i]] = part.x + static_cast<std::ptrdiff_t>(i) * part.stride;
    }
  }
}

}  // namespace

DofRows make_dof_rows(const ModelView& m, const Coupling* couplings, int count,
                      const Coupling* actuators, bool forces, Arena& arena) {
  // component of every dof and input
  DofRows r;
  const int* number = couple_trees(m, couplings, count, actuators, r.count, arena);
  r.components = arena.zeros<Component>(r.count);
  int* component = arena.take<int>(m.nv);
  for (int i = 0; i < m.nv; i++) component[i] = number[m.dof_treeid[i]];
  const int* place = place_inputs(m, actuators, component, arena);

  // columns within the components
  int* column = arena.take<int>(m.nv);
  int* input_column = arena.take<int>(m.na + m.nu);
  number_members(r.components, r.count, component, m.nv, &Component::nv, &Component::dofs, column,
                 arena);
  number_members(r.components, r.count, place, m.na, &Component::na, &Component::acts, input_column,
                 arena);
  number_members(r.components, r.count, place + m.na, m.nu, &Component::nu, &Component::ctrls,
                 input_column + m.na, arena);
  // the columns of applied force come last; input columns count from the first column of their kind
  for (int c = 0; c < r.count; c++) {
    Component& part = r.components[c];
    part.nf = forces ? part.nv : 0;
    part.stride = round_to_line(part.end_column());
  }
  for (int k = 0; k < m.na + m.nu; k++) {
    if (place[k] < 0) continue;
    const Component& part = r.components[place[k]];
    input_column[k] += k < m.na ? part.act_column() : part.ctrl_column();
  }

  // rows of zeros, and the identity for applied forces
  r.column = column;
  r.component = component;
  r.input_column = input_column;
  take_rows(m, r, arena);
  for (int i = 0; forces && i < m.nv; i++) {
    r.row[i][r.components[component[i]].force_column() + column[i]] = 1;
  }
  return r;
}

DofRows make_like(const ModelView& m, const DofRows& other, Arena& arena) {
  DofRows r = other;
  r.components = arena.take<Component>(r.count);
  for (int c = 0; c < r.count; c++) r.components[c] = other.components[c];
  take_rows(m, r, arena);
  return r;
}

DofRows make_vector(const ModelView& m, const DofRows& other, Arena& arena) {
  return make_columns(m, other, 1, arena);
}

DofRows make_columns(const ModelView& m, const DofRows& other, int count, Arena& arena) {
  DofRows r = other;
  r.components = arena.take<Component>(r.count);
  for (int c = 0; c < r.count; c++) {
    r.components[c] = other.components[c];
    r.components[c].stride = (count + kLanes - 1) / kLanes * kLanes;
  }
  take_rows(m, r, arena);
  return r;
}

}  // namespace mujacobian
