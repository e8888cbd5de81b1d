#include "adjoint/virtual_dof.h"

#include <algorithm>

#include "forces/tendon.h"
#include "layout/enums.h"
#include "layout/topology.h"

namespace mujacobian {
namespace {

// Inertia of a virtual dof, so large that no force moves it.
constexpr double kImmovable = 1e300;

class Extender {
 public:
  Extender(const ModelView& m, const DataView& d, const VirtualDof* virtual_dofs, int count,
           Arena& arena)
      : m_(m),
        d_(d),
        virtual_dofs_(virtual_dofs),
        count_(count),
        arena_(arena),
        e_{m, d, nullptr, nullptr} {}

  Extension run() {
    number();
    set_joints();
    set_dofs();
    set_trees();
    set_inertia();
    set_motion();
    set_tendons();
    return e_;
  }

 private:
  // Returns rows of `from` (`width` numbers each): row i is row source[i], `fill` if that is
  // negative.
  template <class T>
  T* gather(const T* from, const int* source, int n, int width, T fill) {
    if (!from) return nullptr;
    T* to = arena_.take<T>(static_cast<std::size_t>(n) * width);
    for (int i = 0; i < n; i++)
      for (int k = 0; k < width; k++) {
        to[i * width + k] = source[i] < 0 ? fill : from[source[i] * width + k];
      }
    return to;
  }
  template <class T>
  T* of_joints(const T* from, int width, T fill) {
    return gather(from, joint_source_, joints_, width, fill);
  }
  template <class T>
  T* of_dofs(const T* from, int width, T fill) {
    return gather(from, dof_source_, e_.m.nv, width, fill);
  }
  int* integers(int n) { return arena_.take<int>(n); }

  // Numbers the dofs depth first. Each body has its virtual dofs `before`, its own dofs, and its
  // other virtual dofs. Joints keep their numbers. The joints of a body must be consecutive, so
  // that a body with virtual dofs gets copies of its joints at the end of the list.
  void number() {
    // arrays of the extended model: dofs, joints and bodies
    const int nv = e_.m.nv = m_.nv + count_, most = 2 * m_.njnt + count_;
    int *real = integers(m_.nv), *virtual_dof = integers(count_);
    dof_source_ = integers(nv);
    joint_source_ = integers(most);
    int *body = integers(nv), *parent = integers(nv), *joint = integers(nv),
        *last = integers(m_.nbody);
    joint_dof_ = integers(most);
    joint_body_ = integers(most);
    int *dofadr = integers(m_.nbody), *dofnum = integers(m_.nbody), *weld = integers(m_.nbody);
    int *jntadr = integers(m_.nbody), *jntnum = integers(m_.nbody);

    // joints keep their numbers
    joints_ = m_.njnt;
    for (int j = 0; j < m_.njnt; j++) {
      joint_source_[j] = j;
      joint_body_[j] = m_.jnt_bodyid[j];
    }

    // walk over the bodies, which are depth first, and append their dofs
    int next = 0;
    for (int b = 0; b < m_.nbody; b++) {
      last[b] = b ? last[m_.body_parentid[b]] : -1;
      const int first = next, first_joint = joints_;

      // append a dof or a joint; a negative source makes a virtual one
      auto add_dof = [&](int source, int of_joint) {
        body[next] = b, parent[next] = last[b], joint[next] = of_joint, dof_source_[next] = source;
        return last[b] = next++;
      };
      auto add_joint = [&](int source, int dof) {
        joint_source_[joints_] = source, joint_dof_[joints_] = dof, joint_body_[joints_] = b;
        return joints_++;
      };
      auto add_virtual_dofs = [&](bool before) {
        for (int k = 0; k < count_; k++) {
          if (virtual_dofs_[k].body != b || virtual_dofs_[k].before != before) continue;
          virtual_dof[k] = add_dof(-1, add_joint(-1, next));
        }
      };

      // virtual dofs before the joints, the dofs of the joints, virtual dofs after them
      add_virtual_dofs(true);
      for (int j = m_.body_jntadr[b], end = j + m_.body_jntnum[b]; j < end; j++) {
        joint_dof_[j] = next;
        add_joint(j, next);
        for (int i = m_.jnt_dofadr[j]; i < m_.nv && m_.dof_jntid[i] == j; i++)
          real[i] = add_dof(i, j);
      }
      add_virtual_dofs(false);

      // the ranges of the body; without virtual dofs, drop the copies of its joints
      jntadr[b] = first_joint, jntnum[b] = joints_ - first_joint;
      if (jntnum[b] == m_.body_jntnum[b]) {
        joints_ = first_joint;
        jntadr[b] = m_.body_jntadr[b];
      }
      dofnum[b] = next - first;
      dofadr[b] = dofnum[b] ? first : -1;
      weld[b] = dofnum[b] || b == 0 ? b : weld[m_.body_parentid[b]];
    }

    e_.real = real, e_.virtual_dof = virtual_dof;
    e_.m.body_dofadr = dofadr, e_.m.body_dofnum = dofnum, e_.m.body_weldid = weld;
    e_.m.body_jntadr = jntadr, e_.m.body_jntnum = jntnum;
    e_.m.dof_bodyid = body, e_.m.dof_parentid = parent, e_.m.dof_jntid = joint;
  }

  // Virtual dofs belong to joints without springs, limits and actuators. m.njnt does not change, so
  // that these joints are only reached through their bodies and dofs.
  void set_joints() {
    ModelView& m = e_.m;
    m.jnt_type = of_joints(m_.jnt_type, 1, joint::kSlide);
    m.jnt_qposadr = of_joints(m_.jnt_qposadr, 1, 0);
    m.jnt_dofadr = joint_dof_;
    m.jnt_bodyid = joint_body_;
    m.jnt_actuatorid = of_joints(m_.jnt_actuatorid, 1, -1);
    m.jnt_actfrclimited = of_joints<unsigned char>(m_.jnt_actfrclimited, 1, 0);
    m.jnt_actgravcomp = of_joints<unsigned char>(m_.jnt_actgravcomp, 1, 0);
    m.jnt_actfrcrange = of_joints(m_.jnt_actfrcrange, 2, 0.);
    m.jnt_range = of_joints(m_.jnt_range, 2, 0.);
    m.jnt_axis = of_joints(m_.jnt_axis, 3, 0.);
    m.jnt_stiffness = of_joints(m_.jnt_stiffness, 1, 0.);
    m.jnt_stiffnesspoly = of_joints(m_.jnt_stiffnesspoly, kNPoly, 0.);
    m.jnt_plasticadr = of_joints(m_.jnt_plasticadr, 1, -1);
  }

  void set_dofs() {
    e_.m.dof_damping = of_dofs(m_.dof_damping, 1, 0.);
    e_.m.dof_dampingpoly = of_dofs(m_.dof_dampingpoly, kNPoly, 0.);
    DataView& d = e_.d;
    d.qvel = of_dofs(d_.qvel, 1, 0.);
    d.qacc = of_dofs(d_.qacc, 1, 0.);
    d.qfrc_applied = of_dofs(d_.qfrc_applied, 1, 0.);
    d.qfrc_gravcomp = of_dofs(d_.qfrc_gravcomp, 1, 0.);
    d.qfrc_actuator = of_dofs(d_.qfrc_actuator, 1, 0.);
    d.qfrc_smooth = of_dofs(d_.qfrc_smooth, 1, 0.);
    d.qfrc_constraint = of_dofs(d_.qfrc_constraint, 1, 0.);
    d.efm_sdiag = of_dofs(d_.efm_sdiag, 1, 0.);
    int* id = integers(d_.nefc);
    for (int r = 0; r < d_.nefc; r++) {
      const bool dof = d_.efc_type[r] == constraint::kFrictionDof;
      id[r] = dof ? e_.real[d_.efc_id[r]] : d_.efc_id[r];
    }
    d.efc_id = id;
  }

  void set_trees() {
    ModelView& m = e_.m;
    int *tree = integers(m.nv), *adr = integers(m.nv), *num = integers(m.nv), count = 0;
    for (int i = 0; i < m.nv; i++) {
      if (m.dof_parentid[i] < 0) adr[count] = i, num[count++] = 0;
      tree[i] = count - 1;
      num[count - 1]++;
    }
    m.ntree = count;
    m.dof_treeid = tree, m.tree_dofadr = adr, m.tree_dofnum = num;
  }

  // M couples a virtual dof with no other dof.
  void set_inertia() {
    ModelView& m = e_.m;
    const Topology tree = topology(m, arena_);
    int *nnz = integers(m.nv), *adr = integers(m.nv);
    m.nC = 0;
    for (int i = 0; i < m.nv; i++) {
      const int source = dof_source_[i];
      nnz[i] = source < 0 || m_.M_rownnz[source] == 1 ? 1 : tree.depth[i] + 1;
      adr[i] = m.nC;
      m.nC += nnz[i];
    }
    int* column = integers(m.nC);
    double *inertia = arena_.zeros<double>(m.nC), *factor = arena_.zeros<double>(m.nC);
    for (int i = 0; i < m.nv; i++) {
      const int source = dof_source_[i], diagonal = adr[i] + nnz[i] - 1;
      if (source < 0) {
        column[diagonal] = i;
        inertia[diagonal] = factor[diagonal] = kImmovable;
        continue;
      }
      int from = m_.M_rowadr[source] + m_.M_rownnz[source] - 1;
      for (int p = diagonal, j = i; p >= adr[i]; p--, j = m.dof_parentid[j]) {
        column[p] = j;
        if (dof_source_[j] < 0) continue;
        inertia[p] = d_.M[from], factor[p] = d_.qLD[from];
        from--;
      }
    }
    m.M_rownnz = nnz, m.M_rowadr = adr, m.M_colind = column;
    e_.d.M = inertia, e_.d.qLD = factor;
    e_.d.qLDiagInv = of_dofs(d_.qLDiagInv, 1, 0.);
  }

  void set_motion() {
    double* axes = of_dofs(d_.cdof, 6, 0.);
    double* rates = of_dofs(d_.cdof_dot, 6, 0.);
    for (int k = 0; k < count_; k++) {
      const VirtualDof& c = virtual_dofs_[k];
      const int from = c.before ? m_.body_parentid[c.body] : c.body;
      store_motion(axes + 6 * e_.virtual_dof[k], c.axis);
      store_motion(rates + 6 * e_.virtual_dof[k], cross(load_motion(d_.cvel + 6 * from), c.axis));
    }
    e_.d.cdof = axes, e_.d.cdof_dot = rates;
  }

  // Marks the virtual dofs that move a body of the tendon's path.
  void mark_virtual_dofs(int tendon, bool* used) const {
    for (int w = m_.tendon_adr[tendon], end = w + m_.tendon_num[tendon]; w < end; w++) {
      const int type = m_.wrap_type[w], id = m_.wrap_objid[w];
      if (type == wrap::kJoint || type == wrap::kPulley) continue;
      const int body = type == wrap::kSite ? m_.site_bodyid[id] : m_.geom_bodyid[id];
      for (int i = last_dof(e_.m, body); i >= 0; i = e_.m.dof_parentid[i]) {
        if (dof_source_[i] < 0) used[i] = true;
      }
    }
  }

  void set_tendons() {
    ModelView& m = e_.m;
    const int nv = m.nv;
    int *nnz = integers(m.ntendon), *adr = integers(m.ntendon);
    int* column = integers(m.ntendon * nv);
    double* row = arena_.zeros<double>(static_cast<std::size_t>(m.ntendon) * nv);
    bool* used = arena_.take<bool>(nv);
    double* value = arena_.take<double>(nv);
    for (int t = 0; t < m.ntendon; t++) {
      std::fill(used, used + nv, false);
      std::fill(value, value + nv, 0.);
      for (int p = m_.ten_J_rowadr[t], end = p + m_.ten_J_rownnz[t]; p < end; p++) {
        used[e_.real[m_.ten_J_colind[p]]] = true;
        value[e_.real[m_.ten_J_colind[p]]] = d_.ten_J[p];
      }
      mark_virtual_dofs(t, used);
      adr[t] = t * nv, nnz[t] = 0;
      for (int i = 0; i < nv; i++) {
        if (!used[i]) continue;
        column[adr[t] + nnz[t]] = i;
        row[adr[t] + nnz[t]++] = value[i];
      }
    }
    m.ten_J_rownnz = nnz, m.ten_J_rowadr = adr, m.ten_J_colind = column;
    e_.d.ten_J = row;
    for (int t = 0; t < m.ntendon; t++) {
      if (tendon_is_fixed(m, t)) continue;
      const double* moment = tendon_moment(m, e_.d, t, arena_);
      for (int k = 0; k < nnz[t]; k++) {
        if (dof_source_[column[adr[t] + k]] < 0) row[adr[t] + k] = moment[k];
      }
    }
  }

  const ModelView& m_;
  const DataView& d_;
  const VirtualDof* virtual_dofs_;
  const int count_;
  Arena& arena_;
  Extension e_;
  int joints_ = 0;  // number of all joints, with copies and virtual ones
  int *joint_source_, *joint_dof_, *joint_body_;
  int* dof_source_;  // -1: a virtual dof
};

}  // namespace

Extension extend(const ModelView& m, const DataView& d, const VirtualDof* virtual_dofs, int count,
                 Arena& arena) {
  return Extender(m, d, virtual_dofs, count, arena).run();
}

double* extended(const ModelView& m, const Extension& e, const double* from, Arena& arena) {
  double* to = arena.zeros<double>(e.m.nv);
  for (int i = 0; i < m.nv; i++) to[e.real[i]] = from[i];
  return to;
}

}  // namespace mujacobian
