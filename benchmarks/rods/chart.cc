// Replacement of cpp/rods/chart.cc with rotation vectors: R = exp([r]x), |r| <= pi. Derivatives
// with respect to r are computed by automatic differentiation. With ANALYTIC_INERTIA, those of
// inertia have a closed form.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "jet.h"
#include "rods/algebra.h"
#include "rods/problem.h"
#include "rotation_vector.h"

namespace mujacobian::rods {
namespace {

template <class T>
struct Triple {
  T x, y, z;
};

template <class T>
T dot(const Triple<T>& a, const Triple<T>& b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}

// Returns the variables first, first + 1, first + 2
template <class T>
Triple<T> variables(Vec3 a, int first) {
  return {T::variable(a.x, first), T::variable(a.y, first + 1), T::variable(a.z, first + 2)};
}

// Returns the columns of exp([r]x)
template <class T>
struct Axes {
  T c1, c2, xx, yy, zz;
  Triple<T> r;

  explicit Axes(const Triple<T>& vector) : r(vector) {
    xx = r.x * r.x, yy = r.y * r.y, zz = r.z * r.z;
    T t = xx + yy + zz;
    const Coefficients c(t.v);
    c1 = t.chain(c.c1, c.d1, c.dd1);
    c2 = t.chain(c.c2, c.d2, c.dd2);
  }
  Triple<T> first() const {
    T xy = c2 * (r.x * r.y), xz = c2 * (r.x * r.z);
    return {T(1) - c2 * (yy + zz), xy + c1 * r.z, xz - c1 * r.y};
  }
  Triple<T> second() const {
    T xy = c2 * (r.x * r.y), yz = c2 * (r.y * r.z);
    return {xy - c1 * r.z, T(1) - c2 * (xx + zz), yz + c1 * r.x};
  }
  Triple<T> third() const {
    T xz = c2 * (r.x * r.z), yz = c2 * (r.y * r.z);
    return {xz + c1 * r.y, yz - c1 * r.x, T(1) - c2 * (xx + yy)};
  }
};

// Adds a potential that depends on the variables of these slots
template <int kSlots, class T>
void add(Sum& sum, const int (&slots)[kSlots], const T& psi) {
  sum.add(psi.v);
  for (int a = 0; a < kSlots; a++) {
    if (sum.gradient) (*sum.gradient)[slots[a]] += load3(psi.g + 3 * a);
    if constexpr (T::kPairs > 0) {
      for (int b = 0; b <= a; b++) {
        Mat3 block;
        for (int k = 0; k < 9; k++) block.m[k] = psi.hessian(3 * a + k / 3, 3 * b + k % 3);
        sum.hessian->add(slots[a], slots[b], block);
      }
    }
  }
}

template <bool kSecond>
void add_spin(const Problem& p, const std::vector<Vec3>& r, Sum& sum) {
  using T = Jet<3, kSecond>;
  for (size_t i = 0; i < r.size(); i++) {
    const Mat3& W = p.pull[i];
    Axes<T> R(variables<T>(r[i], 0));
    Triple<T> a = R.first(), b = R.second(), c = R.third();
    T psi = W(0, 0) * a.x + W(1, 0) * a.y + W(2, 0) * a.z;
    psi = psi + W(0, 1) * b.x + W(1, 1) * b.y + W(2, 1) * b.z;
    psi = psi + W(0, 2) * c.x + W(1, 2) * c.y + W(2, 2) * c.z;
    add<1>(sum, {p.model.frame_slot[i]}, -1.0 * psi);
    sum.add(inner(p.previous.R[i], W));  // the same constant as in add_frames
  }
}

// -tr(R W^T) = c_1 a . r + c_2 r^T B r and a constant
void add_spin_analytic(const Problem& p, const std::vector<Vec3>& rs, Sum& sum) {
  for (size_t i = 0; i < rs.size(); i++) {
    Vec3 r = rs[i];
    Mat3 S = symmetric_part(p.pull[i]);
    Mat3 B = difference(scaled_identity(trace(S)), S);
    Vec3 a = -axial(p.pull[i]), Br = B * r;
    const Coefficients c(dot(r, r));
    const double ar = dot(a, r), rBr = dot(r, Br);
    const int slot = p.model.frame_slot[i];
    sum.add(c.c1 * ar + c.c2 * rBr - trace(S));
    sum.add(inner(p.previous.R[i], p.pull[i]));  // the same constant as in add_frames
    const double along = 2 * (c.d1 * ar + c.d2 * rBr);
    if (sum.gradient) (*sum.gradient)[slot] += c.c1 * a + (2 * c.c2) * Br + along * r;
    if (!sum.hessian) continue;
    Mat3 arr = outer((2 * c.d1) * a + (4 * c.d2) * Br + (2 * (c.dd1 * ar + c.dd2 * rBr)) * r, r);
    Mat3 H = arr + transposed(arr) + (2 * c.c2) * B + scaled_identity(along);
    sum.hessian->add(slot, slot, H);
  }
}

// Stretch does not depend on rotations; the terms are the same as in cpp/rods/edge.cc
void add_stretch(const Problem& p, const State& q, Sum& sum) {
  const Model& m = p.model;
  for (size_t i = 0; i < m.edges.size(); i++) {
    const Edge& e = m.edges[i];
    Vec3 along = q.x[e.end] - q.x[e.start];
    const double length = norm(along), rate = e.damping * p.rate;
    const double strain = length / e.length - 1, change = (length - p.lengths[i]) / e.length;
    const double tension = e.stretch * strain + rate * change;
    sum.add(0.5 * e.length * (e.stretch * strain * strain + rate * change * change));
    const int a = m.point_slot[e.start], b = m.point_slot[e.end];
    Vec3 d = (1 / length) * along;
    if (sum.gradient) (*sum.gradient)[a] += -tension * d, (*sum.gradient)[b] += tension * d;
    if (!sum.hessian) continue;
    Mat3 dd = outer(d, d), across = difference(identity3(), dd);
    Mat3 K = ((e.stretch + rate) / e.length) * dd + (tension / length) * across;
    sum.hessian->add(a, a, K);
    sum.hessian->add(b, b, K);
    sum.hessian->add(b, a, (-1.0) * K);
  }
}

template <bool kSecond>
void add_shear(const Problem& p, const State& q, const std::vector<Vec3>& r, Sum& sum) {
  using T = Jet<9, kSecond>;
  const Model& m = p.model;
  for (const Edge& e : m.edges) {
    Triple<T> a = variables<T>(q.x[e.start], 0), b = variables<T>(q.x[e.end], 3);
    Triple<T> along = {b.x - a.x, b.y - a.y, b.z - a.z};
    Triple<T> u = Axes<T>(variables<T>(r[e.frame], 6)).third();
    T cosine = dot(along, u) * inverse_root(dot(along, along));
    T psi = (0.5 * e.shear * e.length) * (T(1) - cosine);
    const int slots[] = {m.point_slot[e.start], m.point_slot[e.end], m.frame_slot[e.frame]};
    add(sum, slots, psi);
  }
}

template <bool kSecond>
void add_bend(const Problem& p, const std::vector<Vec3>& r, Sum& sum) {
  using T = Jet<6, kSecond>;
  const Model& m = p.model;
  for (size_t i = 0; i < m.bends.size(); i++) {
    const Bend& b = m.bends[i];
    const int first = m.edges[b.first].frame, second = m.edges[b.second].frame;
    Axes<T> A(variables<T>(r[first], 0)), B(variables<T>(r[second], 3));
    Triple<T> a1 = A.first(), a2 = A.second(), a3 = A.third();
    Triple<T> b1 = B.first(), b2 = B.second(), b3 = B.third();
    const double s = 0.5 / b.length;
    T omega[3] = {s * (dot(a3, b2) - dot(a2, b3)), s * (dot(a1, b3) - dot(a3, b1)),
                  s * (dot(a2, b1) - dot(a1, b2))};
    double rest[3], before[3], K[3], D[3];
    store3(rest, load3(p.inputs.rest + 3 * i)), store3(before, p.curvatures[i]);
    store3(K, b.stiffness), store3(D, b.damping);
    T psi(0);
    for (int k = 0; k < 3; k++) {
      T strain = omega[k] - T(rest[k]);
      psi = psi + (0.5 * b.length * K[k]) * (strain * strain);
      if (D[k] == 0) continue;
      T change = omega[k] - T(before[k]);
      psi = psi + (0.5 * b.length * D[k] * p.rate) * (change * change);
    }
    add<2>(sum, {m.frame_slot[first], m.frame_slot[second]}, psi);
  }
}

template <bool kSecond>
void add_rotating(const Problem& p, const State& q, const std::vector<Vec3>& r, Sum& sum) {
  if constexpr (ANALYTIC_INERTIA) {
    add_spin_analytic(p, r, sum);
  } else {
    add_spin<kSecond>(p, r, sum);
  }
  add_shear<kSecond>(p, q, r, sum);
  add_bend<kSecond>(p, r, sum);
}

// The other elements must not depend on rotations
void refuse_frames(const Model& m) {
  bool found = !m.welds.empty() || !m.cables.empty();
  for (const Bend& b : m.bends) found |= b.first < 0 || b.second < 0 || b.is_tangent;
  for (const Spring& s : m.springs) found |= s.first.frame >= 0 || s.second.frame >= 0;
  for (const Contact& c : m.contacts) found |= c.sample.frame >= 0 || c.rolling[0] >= 0;
  for (const Surface& s : m.surfaces) found |= s.body_frame >= 0;
  if (found) throw std::runtime_error("the baseline has springs and contacts of nodes only");
}

// Returns the rotation vectors; the vectors of the last call are cached
const std::vector<Vec3>& rotation_logs(const std::vector<Mat3>& R) {
  thread_local std::vector<Mat3> last;
  thread_local std::vector<Vec3> r;
  if (last.size() == R.size() && !std::memcmp(last.data(), R.data(), R.size() * sizeof(Mat3))) {
    return r;
  }
  last = R;
  r.resize(R.size());
  std::transform(R.begin(), R.end(), r.begin(), rotation_log);
  return r;
}

}  // namespace

void move(const Model& m, const State& q, const Tangent& d, double scale, State& moved) {
  for (size_t i = 0; i < q.x.size(); i++) moved.x[i] = q.x[i] + scale * d[m.point_slot[i]];
  const std::vector<Vec3>& r = rotation_logs(q.R);
  for (size_t i = 0; i < q.R.size(); i++) {
    moved.R[i] = rotation_exp(r[i] + scale * d[m.frame_slot[i]]);
  }
}

void evaluate(const Problem& p, const State& q, Sum& sum) {
  sum.energy = sum.magnitude = sum.leverage = 0;
  if (!sum.gradient && !sum.hessian) {  // energies are the same in all coordinates
    add_points(p, q, sum);
    add_frames(p, q, sum);
    add_elements(p, q, sum);
    return;
  }
  refuse_frames(p.model);
  if (sum.gradient) std::fill(sum.gradient->begin(), sum.gradient->end(), Vec3{});
  if (sum.hessian) sum.hessian->clear();
  const std::vector<Vec3>& r = rotation_logs(q.R);
  add_points(p, q, sum);
  add_stretch(p, q, sum);
  if (sum.hessian) {
    add_rotating<true>(p, q, r, sum);
  } else {
    add_rotating<false>(p, q, r, sum);
  }
  add_springs(p, q, sum);
  add_contacts(p, q, sum);
}

}  // namespace mujacobian::rods
