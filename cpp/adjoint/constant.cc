// Columns of constants that mj_setConst derives from the model and that constraints read: the
// weights that scale R, lengths of tendons at qpos0, and anchors of connects.
#include <cmath>

#include "adjoint/curve.h"
#include "constraint/contact.h"
#include "constraint/effective_diagonal.h"
#include "constraint/point_equality.h"
#include "constraint/regularization.h"
#include "layout/engine.h"
#include "layout/unsupported.h"
#include "linear/combine.h"
#include "spatial/rotation.h"
#include "tree/point.h"

namespace mujacobian {
namespace {

// The sum of weights to which R of a row is proportional, and the number of times that the
// parameter is one of them.
class WeightSum {
 public:
  WeightSum(const ModelView& m, const Parameter& p) : m_(m), p_(p) {}

  void add_dof(int dof) { add(Parameter::kDofWeight, dof, 0, m_.dof_invweight0[dof]); }
  void add_joint(int joint) {
    if (joint >= 0) add_dof(m_.jnt_dofadr[joint]);
  }
  void add_tendon(int tendon) {
    if (tendon >= 0) add(Parameter::kTendonWeight, tendon, 0, m_.tendon_invweight0[tendon]);
  }
  void add_body(int body, bool rotation) {
    add(Parameter::kBodyWeight, body, rotation, m_.body_invweight0[2 * body + rotation]);
  }

  // d(log of the sum)
  double dlog() const { return sum_ > kMinVal ? share_ / sum_ : 0; }

 private:
  void add(int kind, int id, int component, double weight) {
    sum_ += weight;
    if (p_.kind == kind && p_.id == id && p_.component == component) share_ += 1;
  }

  const ModelView& m_;
  const Parameter& p_;
  double sum_ = 0, share_ = 0;
};

void add_equality_weight(const ModelView& m, int eq, int row, WeightSum& sum) {
  const int object[2] = {m.eq_obj1id[eq], m.eq_obj2id[eq]};
  for (int id : object) {
    switch (m.eq_type[eq]) {
      case equality::kJoint:
        sum.add_joint(id);
        break;
      case equality::kTendon:
        sum.add_tendon(id);
        break;
      default:
        sum.add_body(m.eq_objtype[eq] == object::kBody ? id : m.site_bodyid[id], row > 2);
    }
  }
}

double dlog_weight(const ModelView& m, const Block& b, int row, const Parameter& p) {
  WeightSum sum(m, p);
  switch (b.type) {
    case constraint::kEquality:
      add_equality_weight(m, b.id, row, sum);
      break;
    case constraint::kFrictionDof:
      sum.add_dof(b.id);
      break;
    case constraint::kLimitJoint:
      sum.add_joint(b.id);
      break;
    case constraint::kFrictionTendon:
    case constraint::kLimitTendon:
      sum.add_tendon(b.id);
      break;
    default:
      for (int side = 0; b.geometry && side < 2; side++) {
        sum.add_body(m.geom_bodyid[b.contact.geom.v[side]], false);
      }
  }
  return sum.dlog();
}

// The changes of the rows of an equality at fixed state.
struct RowShift {
  double* jacobian;       // (count, n), with the block's stride
  double pos[kMaxRows];   // positions of the rows
  double bias[kMaxRows];  // Jdot v
  double length;          // norm of the positions, on which the impedance depends
};

// df = f dlogD - H (dJ (a + B v) + d(reference))                                          (ROW-12)
void shift_force(const ModelView& m, const DataView& d, const Block& b, const RowShift& shift,
                 const BlockMotion& motion, double change[kMaxRows], Arena& arena) {
  const ReferenceAcceleration ref = reference_acceleration(m, d, b);
  double rho[kMaxRows];
  for (int r = 0; r < b.count; r++) {
    const int row = b.row + r;
    const double gap = d.efc_pos[row] - d.efc_margin[row];
    rho[r] = ref.bias * shift.bias[r] + ref.stiffness * shift.pos[r] +
             ref.through(gap, d.efc_vel[row], d.efc_aref[row]) * shift.length;
    for (int i = 0; i < b.n; i++) {
      const double y = motion.acc[b.dofs[i]] + ref.damping * d.qvel[b.dofs[i]];
      rho[r] += shift.jacobian[r * b.stride + i] * y;
    }
  }
  for (int r = 0; r < b.count; r++) {
    change[r] = b.force[r] * ref.dlogD * shift.length;
    for (int c = 0; c < b.count; c++) change[r] -= b.hessian[r * b.count + c] * rho[c];
  }
  if (!has_metric(m)) return;
  visit_regularization(d, b, [&](const Source& source, const double* force) {
    const double dlogR = effective_change(m, d, b, source, shift.jacobian, arena);
    for (int r = source.first; r < source.last; r++) change[r] += dlogR * force[r];
  });
}

// Returns the shift for a reference length of a coupling of tendons: y - y0 = P(x - x0)   (PAR-20)
RowShift length_shift(const ModelView& m, const DataView& d, const Block& b, int tendon,
                      Arena& arena) {
  const Polynomial p = polynomial(m, d, b.id);
  RowShift shift{arena.zeros<double>(b.stride), {}, {}, 0};
  if (m.eq_obj1id[b.id] == tendon) shift.pos[0] -= 1;
  if (m.eq_obj2id[b.id] == tendon) {
    shift.pos[0] += p.slope;
    const Path& path = b.path[1];
    for (int k = 0, at = 0; k < path.n; k++) {
      while (b.dofs[at] != path.dofs[k]) at++;
      shift.jacobian[at] += p.curvature * path.moment[k];
    }
  }
  shift.length = shift.pos[0];
  return shift;
}

// Returns the shift for an anchor that moves in one body of a connect or weld.            (PAR-19)
RowShift anchor_shift(const ModelView& m, const DataView& d, const Block& b,
                      const BlockMotion& motion, int body, Vec3 moved, Arena& arena) {
  RowShift shift{arena.zeros<double>(b.count * b.stride), {}, {}, 0};
  for (int k = b.n - 1, at = last_dof(m, body); k >= 0; k--) {
    if (b.dofs[k] != at) continue;
    at = m.dof_parentid[at];
    double row[3];
    store3(row, cross(moved, dof_axis(d, b.dofs[k]).ang));
    for (int r = 0; r < 3; r++) shift.jacobian[r * b.stride + k] = row[r];
  }
  const Vec3 spin = load_motion(d.cvel + 6 * body).ang;
  store3(shift.pos, -moved);
  store3(shift.bias,
         -(cross(motion.velocity.acceleration[body].ang, moved) + cross(spin, cross(spin, moved))));
  double square = 0;
  for (int r = 0; r < b.count; r++) square += d.efc_pos[b.row + r] * d.efc_pos[b.row + r];
  const double length = std::sqrt(square);
  shift.length = length > 0 ? -dot(load3(d.efc_pos + b.row), moved) / length : 0;
  return shift;
}

// Returns the shift for a coefficient of the polynomial of a coupling of joints: y - y0 = P(x - x0)
RowShift polynomial_shift(const ModelView& m, const DataView& d, const Block& b, int power,
                          Arena& arena) {
  RowShift shift{arena.zeros<double>(b.stride), {}, {}, 0};
  const int joint = m.eq_obj2id[b.id];
  double x = 0;
  if (joint >= 0) x = d.qpos[m.jnt_qposadr[joint]] - m.qpos0[m.jnt_qposadr[joint]];
  shift.length = shift.pos[0] = -std::pow(x, power);
  if (power == 0 || joint < 0) return shift;
  int at = 0;
  while (b.dofs[at] != m.jnt_dofadr[joint]) at++;
  shift.jacobian[at] = -power * std::pow(x, power - 1);
  return shift;
}

// Returns the shift for a number of the relative quaternion of a weld, 0 to 3, or for its torque
// scale, 4. The rotation rows are linear in both.                                         (PAR-31)
RowShift rotation_shift(const ModelView& m, const DataView& d, const Block& b, int number,
                        const BlockMotion& motion, Arena& arena) {
  RowShift shift{arena.zeros<double>(b.count * b.stride), {}, {}, 0};
  PointEquality h = point_equality(m, d, b.id);
  if (number == 4) {
    h.scale = 1;
  } else {
    const Quaternion first = load_quaternion(d.xquat + 4 * m.eq_obj1id[b.id]);
    const Quaternion second = load_quaternion(d.xquat + 4 * m.eq_obj2id[b.id]);
    const Vec3 imaginary = number > 0 ? unit3(number - 1) : Vec3{0, 0, 0};
    h.error = conjugate(second) * first * Quaternion{number == 0 ? 1. : 0., imaginary};
  }
  const RotationRows rows = rotation_rows(m, d, b, motion, h, shift.jacobian + 3 * b.stride);
  double square = 0, product = 0;
  for (int r = 0; r < b.count; r++) square += d.efc_pos[b.row + r] * d.efc_pos[b.row + r];
  for (int r = 0; r < 3; r++) {
    shift.pos[3 + r] = rows.pos[r];
    shift.bias[3 + r] = rows.bias[r];
    product += d.efc_pos[b.row + 3 + r] * rows.pos[r];
  }
  const double length = std::sqrt(square);
  shift.length = length > 0 ? product / length : 0;
  return shift;
}

// Returns the shift for a number of eq_data: an anchor in either body, the relative orientation and
// the torque scale of a weld, or a coefficient.                                           (PAR-27)
RowShift data_shift(const ModelView& m, const DataView& d, const Block& b, const Parameter& p,
                    const BlockMotion& motion, Arena& arena) {
  const int type = m.eq_type[b.id];
  if (type == equality::kJoint) return polynomial_shift(m, d, b, p.component, arena);
  if (p.component >= 6) return rotation_shift(m, d, b, p.component - 6, motion, arena);
  // connect: anchors in the first and in the second body; weld: the other way around
  const bool second = (p.component < 3) == (type == equality::kWeld);
  const int body = second ? m.eq_obj2id[b.id] : m.eq_obj1id[b.id];
  const Vec3 moved = load9(d.xmat + 9 * body) * unit3(p.component % 3);
  // the rows are the difference of the first and the second point
  return anchor_shift(m, d, b, motion, body, second ? moved : -moved, arena);
}

RowShift row_shift(const ModelView& m, const DataView& d, const Block& b, const Parameter& p,
                   const BlockMotion& motion, Arena& arena) {
  if (p.kind == Parameter::kTendonLength) return length_shift(m, d, b, p.id, arena);
  if (p.kind == Parameter::kEqualityData) return data_shift(m, d, b, p, motion, arena);
  return anchor_shift(m, d, b, motion, m.eq_obj2id[b.id], anchor_motion(m, d, p), arena);
}

// Returns whether R of a row contains the weight. The last rows of a weld have weights of
// rotations.
bool reads_weight(const ModelView& m, const Block& b, const Parameter& p) {
  return dlog_weight(m, b, 0, p) != 0 || (b.count > 3 && dlog_weight(m, b, b.count - 1, p) != 0);
}

bool reads(const ModelView& m, const Block& b, const Parameter& p) {
  if (b.type == kMetricTerm) return false;
  if (family_of(p) == Family::kWeight) return reads_weight(m, b, p);
  if (b.type != constraint::kEquality || !b.active) return false;
  if (p.kind == Parameter::kAnchor || p.kind == Parameter::kEqualityData) return b.id == p.id;
  const bool coupling = m.eq_type[b.id] == equality::kTendon;
  return coupling && (m.eq_obj1id[b.id] == p.id || m.eq_obj2id[b.id] == p.id);
}

// R is proportional to a sum of weights: d(force) = force[r] dlogR                         (PAR-17)
void weight_change(const ModelView& m, const DataView& d, const Block& b, const Parameter& p,
                   double change[kMaxRows]) {
  if (m.opt.enableflags & enable::kDiagExact) return;  // R follows the exact diagonal
  visit_regularization(d, b, [&](const Source& source, const double* force) {
    const double dlog = dlog_weight(m, b, source.first, p);
    for (int r = source.first; r < source.last; r++) change[r] += dlog * force[r];
  });
}

// Returns the power of some rows of a block with the multipliers: sum_r J_r mu f_r.
double row_power(const Block& b, const double* virt, const Source& source) {
  double sum = 0;
  for (int r = source.first; r < source.last; r++) sum += virt[r] * b.force[r];
  return sum;
}

// Calls visit(source, virtual rates) for the rows of the block whose R is proportional to a weight.
template <class F>
void visit_weighted(CurveContext& x, const Block& b, const Parameter& p, F visit) {
  if (b.type == kMetricTerm || !reads_weight(x.m, b, p)) return;
  if (b.geometry && adhesive_reference(x.d, b) != 0) {
    throw Unsupported(
        contact_name(x.m, b.contact),
        "second derivatives of adhesive contacts with respect to parameters are not supported");
  }
  double virt[kMaxRows] = {};
  for (int r = 0; r < b.count; r++) {
    for (int k = 0; k < b.n; k++) virt[r] += b.J[r * b.stride + k] * x.curved.mu.g[b.dofs[k]];
  }
  visit_regularization(x.d, b, [&](const Source& source, const double*) { visit(source, virt); });
}

}  // namespace

// The forces of the rows are inversely proportional to R: phi = -dlogR sum_r (J mu)_r f_r (HVP-11)
void curve_weight(CurveContext& x, const Parameter& p, const ParameterSlopes& to) {
  const ModelView& m = x.m;
  const Blocks& blocks = x.s.forward.blocks;
  for (int i = 0; i < blocks.count; i++) {
    const Block& b = blocks.block[i];
    const double* turned = nullptr;
    visit_weighted(x, b, p, [&](const Source& source, const double* virt) {
      const double dlog = dlog_weight(m, b, source.first, p);
      if (dlog == 0) return;
      if (!turned) turned = jacobian_change(m, x.d, blocks, b, x.curved.mu.g, x.arena);
      const ForceSlopes& slopes = blocks.slopes[i];
      for (int r = source.first; r < source.last; r++) {
        for (int k = 0; k < b.n; k++) {
          const int at = r * b.stride + k, dof = b.dofs[k];
          to.state[dof] -= dlog * (turned[at] * b.force[r] + virt[r] * slopes.q[at]);
          to.state[m.nv + dof] -= dlog * virt[r] * slopes.v[at];
          for (int c = 0; c < b.count; c++) {
            const double pull = b.hessian[r * b.count + c] * b.J[c * b.stride + k];
            to.early[dof] += dlog * virt[r] * pull;
          }
        }
      }
    });
  }
}

double weight_share(const CurveContext& x, const Block& b, const Parameter& p) {
  if (has_least_softness(x.d, b)) return 0;
  return dlog_weight(x.m, b, 0, p);
}

// Two weights of one sum: d2f = 2 f dlogR dlogR
void couple_weights(CurveContext& x, const ParameterList& params, ParameterPairs& pairs) {
  const Blocks& blocks = x.s.forward.blocks;
  for (int i = 0; i < blocks.count; i++) {
    const Block& b = blocks.block[i];
    for (int j = 0; j < params.count; j++) {
      const Parameter& p = params.item[j];
      if (family_of(p) != Family::kWeight) continue;
      visit_weighted(x, b, p, [&](const Source& source, const double* virt) {
        const double own = dlog_weight(x.m, b, source.first, p);
        for (int k = 0; own != 0 && k <= j; k++) {
          const Parameter& other = params.item[k];
          if (family_of(other) != Family::kWeight) continue;
          const double dlog = dlog_weight(x.m, b, source.first, other);
          pairs.add(j, k, 2 * own * dlog * row_power(b, virt, source));
        }
      });
    }
  }
}

Vec3 anchor_motion(const ModelView& m, const DataView& d, const Parameter& p) {
  return load9(d.xmat + 9 * m.eq_obj2id[p.id]) * unit3(p.component);
}

void constant_change(const ModelView& m, const DataView& d, const Block& b, const Parameter& p,
                     const BlockMotion& motion, double change[kMaxRows], Arena& arena) {
  for (int r = 0; r < kMaxRows; r++) change[r] = 0;
  if (!reads(m, b, p)) return;
  if (family_of(p) == Family::kWeight) return weight_change(m, d, b, p, change);
  shift_force(m, d, b, row_shift(m, d, b, p, motion, arena), motion, change, arena);
}

void add_constant(ColumnContext& x, const Parameter& p, const Column& column) {
  const ModelView& m = x.m;
  const DataView& d = x.d;
  const Blocks& blocks = x.s.forward.blocks;
  BlockMotion motion{};
  for (int k = 0; k < blocks.count; k++) {
    const Block& b = blocks.block[k];
    if (!reads(m, b, p)) continue;
    const double* dJ = nullptr;
    if (family_of(p) != Family::kWeight) {
      if (!motion.acc) motion = block_motion(m, d, blocks, x.s.forward.solved, x.arena);
      dJ = row_shift(m, d, b, p, motion, x.arena).jacobian;
    }
    double change[kMaxRows];
    constant_change(m, d, b, p, motion, change, x.arena);
    // d(J^T f)
    for (int r = 0; r < b.count; r++) {
      for (int i = 0; i < b.n; i++) {
        const int at = r * b.stride + i;
        column.early[b.dofs[i]] += b.J[at] * change[r] + (dJ ? dJ[at] * b.force[r] : 0);
      }
    }
  }
}

void require_equality(const ModelView& m, const Parameter& p) {
  if (p.kind == Parameter::kEqualityData) {
    const int type = m.eq_type[p.id];
    const bool points = type == equality::kConnect || type == equality::kWeld;
    if (type != equality::kJoint && !(points && m.eq_objtype[p.id] == object::kBody)) {
      throw Unsupported(element_name(m, object::kEquality, p.id),
                        "its data are supported as parameters for joints and bodies only");
    }
  }
  if (!(m.opt.enableflags & enable::kDiagExact)) return;
  throw Unsupported(element_name(m, kind_of(p).element, p.id),
                    "an equality reads its value at qpos0, which is not supported as a "
                    "parameter with diagexact");
}

}  // namespace mujacobian
