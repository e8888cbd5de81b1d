// Equality constraints: polynomial couplings of joints or tendons, and the choice between these and
// point_equality.cc.
#include "constraint/block.h"
#include "forces/tendon.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"

namespace mujacobian {

Polynomial polynomial(const ModelView& m, const DataView& d, int eq) {
  if (m.eq_obj2id[eq] < 0) return {0, 0, 0};
  const double* c = m.eq_data + engine().eq_stride * eq;
  int id = m.eq_obj2id[eq];
  double x;
  if (m.eq_type[eq] == equality::kJoint) {
    int adr = m.jnt_qposadr[id];
    x = d.qpos[adr] - m.qpos0[adr];
  } else {
    x = d.ten_length[id] - m.tendon_length0[id];
  }
  return {c[1] + x * (2 * c[2] + x * (3 * c[3] + x * 4 * c[4])),
          2 * c[2] + x * (6 * c[3] + x * 12 * c[4]), 6 * c[3] + x * 24 * c[4]};
}

namespace {

// Returns the path of a joint or tendon in a coupling, empty if there is none.
Path coupled_path(const ModelView& m, const DataView& d, int eq, int id, Arena& arena) {
  if (id < 0) return {0, nullptr, nullptr, nullptr, nullptr};
  if (m.eq_type[eq] == equality::kJoint) {
    static const double one = 1;
    return {1, m.jnt_dofadr + id, &one, &one, nullptr};
  }
  return tendon_path(m, d, id, arena);
}

void make_coupling(const ModelView& m, const DataView& d, Block& b, Arena& arena) {
  b.count = b.edges = 1;
  b.path[0] = coupled_path(m, d, b.id, m.eq_obj1id[b.id], arena);
  b.path[1] = coupled_path(m, d, b.id, m.eq_obj2id[b.id], arena);

  // merge the dofs of the two paths
  int* dofs = arena.take<int>(b.path[0].n + b.path[1].n);
  int i = 0, j = 0, n = 0;
  while (i < b.path[0].n || j < b.path[1].n) {
    int a = i < b.path[0].n ? b.path[0].dofs[i] : m.nv;
    int c = j < b.path[1].n ? b.path[1].dofs[j] : m.nv;
    dofs[n++] = a < c ? a : c;
    i += a <= c, j += c <= a;
  }
  take_jacobian(b, n, dofs, arena);

  // J = J_y - P' J_x
  Polynomial p = polynomial(m, d, b.id);
  for (int s = 0; s < 2; s++) {
    const Path& path = b.path[s];
    for (int k = 0, at = 0; k < path.n; k++) {
      while (b.dofs[at] != path.dofs[k]) at++;
      b.J[at] += s ? -p.slope * path.moment[k] : path.moment[k];
    }
  }
}

void differentiate_coupling(const ModelView& m, const DataView& d, const Block& b,
                            const BlockMotion& motion, BlockChange& change, Arena& arena) {
  const ReferenceAcceleration r = reference_acceleration(m, d, b);
  const double position_slope = r.stiffness + r.through(d.efc_pos[b.row] - d.efc_margin[b.row],
                                                        d.efc_vel[b.row], d.efc_aref[b.row]);
  const int n = b.n;
  for (int k = 0; k < n; k++) change.rho_v[k] = r.damping * b.J[k];
  Polynomial p = polynomial(m, d, b.id);
  int* place = arena.take<int>(n);
  for (int s = 0; s < 2; s++) {
    const Path& path = b.path[s];
    // the position of the row
    for (int k = 0, at = 0; k < path.n; k++) {
      while (b.dofs[at] != path.dofs[k]) at++;
      place[k] = at;
      double dpos = (s ? -p.slope : 1) * path.dlength[k];
      change.rho_q[at] += position_slope * dpos;
      change.dlogD[at] += r.dlogD * dpos;
    }
    // dJ = H_y - P' H_x - P'' J_x^T J_x
    for (int i = 0; i < path.n; i++) {
      for (int k = 0; k < path.n; k++) {
        double h = path.hessian ? path.hessian[i * path.n + k] : 0;
        if (s) h = -p.slope * h - p.curvature * path.moment[i] * path.dlength[k];
        change.geometric_stiffness[place[i] * b.stride + place[k]] += b.force[0] * h;
        change.rho_q[place[k]] += h * (motion.acc[path.dofs[i]] + r.damping * d.qvel[path.dofs[i]]);
      }
    }
  }
}

}  // namespace

void make_equality(const ModelView& m, const DataView& d, Block& b, Arena& arena) {
  switch (m.eq_type[b.id]) {
    case equality::kConnect:
    case equality::kWeld:
      return make_point_equality(m, d, b, arena);
    case equality::kJoint:
    case equality::kTendon:
      return make_coupling(m, d, b, arena);
    default:
      throw Unsupported(element_name(m, object::kEquality, b.id),
                        "equalities of flexible bodies are not supported");
  }
}

void differentiate_equality(const ModelView& m, const DataView& d, const Block& b,
                            const BlockMotion& motion, BlockChange& change, Arena& arena) {
  if (m.eq_type[b.id] == equality::kConnect || m.eq_type[b.id] == equality::kWeld) {
    return differentiate_point_equality(m, d, b, motion, change);
  }
  differentiate_coupling(m, d, b, motion, change, arena);
}

}  // namespace mujacobian
