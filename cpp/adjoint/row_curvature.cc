// Second derivatives with respect to the numbers that shape the forces of contacts and limits of
// joints: friction, solref, solimp and the bounds of limits.                             (HVP-12)
#include <cmath>

#include "adjoint/curve.h"
#include "constraint/contact.h"
#include "layout/engine.h"
#include "layout/enums.h"
#include "layout/unsupported.h"
#include "spatial/jet.h"

namespace mujacobian {
namespace {

// The variables of the force law of a block: J a and J v of its rows, the distance, and the numbers
// of the contact.
enum Variable {
  kAcceleration = 0,
  kVelocity = kMaxRows,
  kDistance = 2 * kMaxRows,
  kFriction,  // sliding, torsion, rolling
  kSolref = kFriction + 3,
  kSolimp = kSolref + 2,
  kVariables = kSolimp + 5
};
using RowNumber = Jet<kVariables>;

RowNumber log(const RowNumber& x) { return chain(std::log(x.v), 1 / x.v, -1 / (x.v * x.v), x); }
RowNumber exp(const RowNumber& x) {
  const double value = std::exp(x.v);
  return chain(value, value, value, x);
}
RowNumber power(const RowNumber& x, const RowNumber& p) { return exp(p * log(x)); }

// MuJoCo clamps a number to a range, beyond which it is constant.
RowNumber clamp(const RowNumber& x, double low, double high) {
  return x.v < low ? RowNumber(low) : x.v > high ? RowNumber(high) : x;
}

// Returns MuJoCo's impedance at a distance from the margin.                              (PAR-10)
RowNumber impedance(const double solimp[5], const RowNumber& gap) {
  RowNumber given[5];
  for (int k = 0; k < 5; k++) given[k] = jet_variable<kVariables>(solimp[k], kSolimp + k);
  const RowNumber d0 = clamp(given[0], kMinImp, kMaxImp), d1 = clamp(given[1], kMinImp, kMaxImp);
  const RowNumber width = clamp(given[2], 0, INFINITY), middle = clamp(given[3], kMinImp, kMaxImp);
  const RowNumber p = clamp(given[4], 1, INFINITY);
  if (width.v <= kMinVal) return 0.5 * (d0 + d1);
  const RowNumber x = (gap.v < 0 ? -gap : gap) / width;
  if (x.v >= 1) return d1;
  if (x.v <= 0) return d0;
  const bool early = x.v <= middle.v;
  const RowNumber from = early ? x : 1 - x, end = early ? middle : 1 - middle;
  const RowNumber rest = end * power(from / end, p);
  return d0 + (early ? rest : 1 - rest) * (d1 - d0);
}

// Stiffness and damping of the reference acceleration.                                   (PAR-11)
struct Spring {
  RowNumber stiffness, damping;
};

Spring spring(const ModelView& m, const RowNumber ref[2], const RowNumber& top) {
  // MuJoCo replaces a solref of mixed signs by its default
  if ((ref[0].v > 0) != (ref[1].v > 0)) {
    const RowNumber fallback[2] = {0.02, 1};
    return spring(m, fallback, top);
  }
  if (ref[0].v <= 0) return {-ref[0] / (top * top), -ref[1] / top};
  const bool safe = !(m.opt.disableflags & disable::kRefSafe);
  const double least = safe ? 2 * m.opt.timestep : 0;
  // tie: solref of two timesteps
  const RowNumber time =
      ref[0].v == least ? chain(least, 0.5, 0, ref[0]) : clamp(ref[0], least, INFINITY);
  const RowNumber period = top * time * ref[1];
  return {1.0 / (period * period), 2.0 / (top * time)};
}

// The numbers of a row that are not in MuJoCo's efc arrays.
struct RowLaw {
  const double *solref, *solimp;
  const double* friction_solref;  // of the tangential rows; null: the same
};

RowLaw row_law(const ModelView& m, const Block& b) {
  if (!b.geometry) return {m.jnt_solref + 2 * b.id, m.jnt_solimp + kNImp * b.id, nullptr};
  const ContactView& c = b.contact;
  const bool own = b.type == constraint::kContactElliptic &&
                   (c.solreffriction.v[0] != 0 || c.solreffriction.v[1] != 0);
  return {c.solref.v, c.solimp.v, own ? c.solreffriction.v : nullptr};
}

// The forces of a block as functions of the variables.
class RowForces {
 public:
  RowForces(const ModelView& m, const DataView& d, const Block& b, const double* acc)
      : d_(d), b_(b) {
    for (int k = 0; k < 5; k++) {
      constexpr int kSource[5] = {0, 0, 1, 2, 2};
      friction_[k] = jet_variable<kVariables>(b.contact.friction.v[k], kFriction + kSource[k]);
    }
    const RowLaw law = row_law(m, b);
    const RowNumber gap =
        jet_variable<kVariables>(d.efc_pos[b.row] - d.efc_margin[b.row], kDistance);
    const RowNumber imp = impedance(law.solimp, gap);
    const RowNumber top =
        clamp(jet_variable<kVariables>(law.solimp[1], kSolimp + 1), kMinImp, kMaxImp);
    const RowNumber ref[2] = {jet_variable<kVariables>(law.solref[0], kSolref),
                              jet_variable<kVariables>(law.solref[1], kSolref + 1)};
    const Spring normal = spring(m, ref, top);
    RowNumber sliding = normal.damping;
    if (law.friction_solref) {
      const RowNumber own[2] = {law.friction_solref[0], law.friction_solref[1]};
      sliding = spring(m, own, top).damping;
    }
    for (int r = 0; r < b.count; r++) {
      RowNumber rate[2] = {jet_variable<kVariables>(0, kAcceleration + r),
                           jet_variable<kVariables>(0, kVelocity + r)};
      for (int k = 0; k < b.n; k++) {
        rate[0].v += b.J[r * b.stride + k] * acc[b.dofs[k]];
        rate[1].v += b.J[r * b.stride + k] * d.qvel[b.dofs[k]];
      }
      x_[r] = rate[0] + (r > 0 ? sliding : normal.damping) * rate[1];
    }
    x_[0] = x_[0] + normal.stiffness * imp * gap;
    // D, relative to its present value; R at its floor is a constant
    constant_ = has_least_softness(d, b);
    const RowNumber odds = imp / (1 - imp);
    scale_ = constant_ ? RowNumber(1) : odds / odds.v;
  }

  void evaluate(RowNumber force[kMaxRows]) const {
    for (int r = 0; r < b_.count; r++) force[r] = 0;
    if (b_.count > 1 && b_.type == constraint::kContactPyramidal) return pyramid(force);
    if (b_.count > 1 && slides()) return slide(force);
    for (int r = 0; r < b_.count; r++) {
      RowNumber D = d_.efc_D[b_.row + r] * scale_;
      if (r > 1) D = D * square(relative(r - 1) / relative(0));
      force[r] = -(D * x_[r]);
    }
  }

 private:
  static RowNumber square(const RowNumber& x) { return x * x; }
  // Returns a friction coefficient relative to its present value.
  RowNumber relative(int k) const { return friction_[k] / friction_[k].v; }

  // Sliding couples the normal with a tangent.
  bool slides() const {
    for (int r = 1; r < b_.count; r++) {
      if (b_.hessian[r] != 0) return true;
    }
    return false;
  }

  // Edges n +- mu_k t_k with R = 2 mu^2 R_n, R_n ~ 1 + mu^2 or constant                   (PAR-8)
  void pyramid(RowNumber force[kMaxRows]) const {
    const RowNumber rise = 1 + square(friction_[0]);
    RowNumber softness = square(relative(0));
    if (!constant_) softness = softness * (rise / rise.v);
    for (int k = 1; k < b_.count; k++) {
      for (int side = 0; side < 2; side++) {
        const RowNumber friction = (side ? -1.0 : 1.0) * friction_[k - 1];
        const RowNumber x = x_[0] + friction * x_[k];
        if (x.v >= 0) continue;
        const RowNumber f = -((d_.efc_D[b_.row + 2 * (k - 1) + side] * scale_ / softness) * x);
        force[0] = force[0] + f;
        force[k] = force[k] + friction * f;
      }
    }
  }

  // On the cone                                                                           (PAR-9)
  void slide(RowNumber force[kMaxRows]) const {
    RowNumber t2 = 0;
    for (int r = 1; r < b_.count; r++) t2 = t2 + square(friction_[r - 1] * x_[r]);
    const RowNumber t = sqrt(t2);
    const double mu = b_.contact.mu;
    const RowNumber D = d_.efc_D[b_.row] * scale_ / (1 + mu * mu * square(relative(0)));
    force[0] = -(D * (x_[0] - t));
    for (int r = 1; r < b_.count; r++) {
      force[r] = -(force[0] / t * square(friction_[r - 1]) * x_[r]);
    }
  }

  const DataView& d_;
  const Block& b_;
  RowNumber friction_[5], x_[kMaxRows], scale_;
  bool constant_;
};

// A parameter that the force law of a block contains: d(variable) = weight d(parameter).
struct Term {
  int parameter, variable;
  double weight;
};

// Appends the terms of a parameter of a geom, or of the limit of a joint.
void append_terms(const CurveContext& x, const Block& b, const Parameter& p, int k, Term* terms,
                  int& count) {
  const Family family = family_of(p);
  if (family == Family::kContact && b.geometry) {
    const int first = p.kind == Parameter::kFriction ? kFriction
                      : p.kind == Parameter::kSolref ? kSolref
                                                     : kSolimp;
    for (int side = 0; side < 2; side++) {
      const double weight = contact_weight(x.m, b.contact, side, p);
      if (weight != 0) terms[count++] = {k, first + p.component, weight};
    }
  }
  if (family != Family::kLimit || b.type != constraint::kLimitJoint || b.id != p.id) return;
  if (p.kind == Parameter::kLimitSolref) {
    terms[count++] = {k, kSolref + p.component, 1};
  } else if ((p.component == 0) == (b.J[0] > 0)) {
    terms[count++] = {k, kDistance, -b.J[0]};
  }
}

// The changes of the rows of a block with the position, (count, n).
struct RowChanges {
  const double *virt, *acc, *velocity;  // of J mu, J a and J v
};

// Adds the slopes of one term: those of sum_r (J mu)_r df_r/d(variable).
void add_slopes(const CurveContext& x, const Block& b, const Term& term, const RowNumber& sum,
                const RowNumber* force, const RowChanges& moved, const ParameterSlopes& to) {
  const int variable = term.variable;
  for (int k = 0; k < b.n; k++) {
    const int dof = b.dofs[k];
    double q = sum.second(variable, kDistance) * b.J[k], v = 0, a = 0;
    for (int r = 0; r < b.count; r++) {
      const int at = r * b.stride + k;
      const double by_acceleration = sum.second(variable, kAcceleration + r);
      const double by_velocity = sum.second(variable, kVelocity + r);
      q += force[r].d[variable] * moved.virt[at] + by_acceleration * moved.acc[at] +
           by_velocity * moved.velocity[at];
      v += by_velocity * b.J[at];
      a += by_acceleration * b.J[at];
    }
    to.state[dof] += term.weight * q;
    to.state[x.m.nv + dof] += term.weight * v;
    to.early[dof] += term.weight * a;
  }
}

}  // namespace

void curve_rows(CurveContext& x, const ParameterList& params, const ParameterCurvature& all,
                ParameterPairs& pairs) {
  const Blocks& blocks = x.s.forward.blocks;
  Term* terms = x.arena.take<Term>(2 * params.count);
  for (int i = 0; i < blocks.count; i++) {
    const Block& b = blocks.block[i];
    if (!b.active || b.n == 0) continue;
    int count = 0;
    for (int k = 0; k < params.count; k++) append_terms(x, b, params.item[k], k, terms, count);
    if (count == 0) continue;
    if (b.geometry && (surface_velocity(x.m, x.d, b).any || b.contact.adhesion != 0)) {
      throw Unsupported(contact_name(x.m, b.contact),
                        "second derivatives of its parameters are not supported with adhesion or a "
                        "moving surface");
    }

    // the forces, and their sum with the virtual velocities
    const Arena::Mark mark = x.arena.mark();
    const double *acc = x.s.forward.solved, *mu = x.curved.mu.g;
    RowNumber force[kMaxRows], sum = 0;
    RowForces(x.m, x.d, b, acc).evaluate(force);
    for (int r = 0; r < b.count; r++) {
      double virt = 0;
      for (int k = 0; k < b.n; k++) virt += b.J[r * b.stride + k] * mu[b.dofs[k]];
      sum = sum + virt * force[r];
    }
    auto change = [&](const double* y) { return jacobian_change(x.m, x.d, blocks, b, y, x.arena); };
    const RowChanges moved{change(mu), change(acc), change(x.d.qvel)};
    for (int j = 0; j < count; j++) {
      add_slopes(x, b, terms[j], sum, force, moved, slopes_at(x.m, all, terms[j].parameter));
    }
    x.arena.rewind(mark);

    for (int j = 0; j < count; j++) {
      const Term& own = terms[j];
      for (int k = 0; k <= j; k++) {
        pairs.add(own.parameter, terms[k].parameter,
                  own.weight * terms[k].weight * sum.second(own.variable, terms[k].variable));
      }
      // all forces are inversely proportional to the weights in R                        (HVP-11)
      for (int k = 0; k < params.count; k++) {
        if (family_of(params.item[k]) != Family::kWeight) continue;
        const double dlog = weight_share(x, b, params.item[k]);
        pairs.add(own.parameter, k, -dlog * own.weight * sum.d[own.variable]);
      }
    }
  }
}

}  // namespace mujacobian
