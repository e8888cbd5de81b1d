// Three-vectors, 3x3 matrices and spatial (six-dimensional) vectors in MuJoCo's order: angular part
// first, linear part second. Motions and forces are different types, so that a wrong pairing does
// not compile. All are in world axes about the center of mass of the kinematic tree, which is
// MuJoCo's reference point for cdof, cvel and cinert.
#pragma once

#include <cmath>
#include <type_traits>

namespace mujacobian {

// Doubles and small structs of them are passed by value, and those of dual numbers by reference.
template <class S, class T>
using Argument = std::conditional_t<std::is_same_v<S, double>, T, const T&>;

// S is double, or a dual number where a formula is differentiated by evaluating it (dual.h). The
// functions are friends, so that a vector of doubles converts to a constant vector of dual numbers
// where the two meet.
template <class S>
struct Vec3T {
  S x, y, z;
  using Arg = Argument<S, Vec3T>;

  template <class T>
    requires std::is_same_v<S, double>
  operator Vec3T<T>() const {
    return {x, y, z};
  }

  friend Vec3T operator+(Arg a, Arg b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend Vec3T operator-(Arg a, Arg b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend Vec3T operator-(Arg a) { return {-a.x, -a.y, -a.z}; }
  friend Vec3T operator*(Argument<S, S> s, Arg a) { return {s * a.x, s * a.y, s * a.z}; }
  friend Vec3T operator*(double s, Arg a)
    requires(!std::is_same_v<S, double>)
  {
    return {s * a.x, s * a.y, s * a.z};
  }
  friend Vec3T& operator+=(Vec3T& a, Arg b) { return a = a + b; }
  friend S dot(Arg a, Arg b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
  friend S norm(Arg a) {
    using std::sqrt;
    return sqrt(dot(a, a));
  }
  friend Vec3T unit(Arg a) { return (1 / norm(a)) * a; }
  friend Vec3T cross(Arg a, Arg b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
  }
};
using Vec3 = Vec3T<double>;

inline Vec3 unit3(int k) { return {k == 0 ? 1.0 : 0, k == 1 ? 1.0 : 0, k == 2 ? 1.0 : 0}; }
inline Vec3 load3(const double* p) { return {p[0], p[1], p[2]}; }
template <class S>
void store3(S* p, Vec3T<S> a) {
  p[0] = a.x, p[1] = a.y, p[2] = a.z;
}

// row-major, as MuJoCo stores xmat
template <class S>
struct Mat3T {
  S m[9];
  S& operator()(int r, int c) { return m[3 * r + c]; }
  S operator()(int r, int c) const { return m[3 * r + c]; }

  template <class T>
    requires std::is_same_v<S, double>
  operator Mat3T<T>() const {
    return {{m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8]}};
  }

  friend Vec3T<S> column(const Mat3T& a, int c) { return {a.m[c], a.m[3 + c], a.m[6 + c]}; }
  friend Vec3T<S> operator*(const Mat3T& a, Argument<S, Vec3T<S>> b) {
    return {a.m[0] * b.x + a.m[1] * b.y + a.m[2] * b.z, a.m[3] * b.x + a.m[4] * b.y + a.m[5] * b.z,
            a.m[6] * b.x + a.m[7] * b.y + a.m[8] * b.z};
  }
  friend Mat3T transposed(const Mat3T& a) {
    return {{a.m[0], a.m[3], a.m[6], a.m[1], a.m[4], a.m[7], a.m[2], a.m[5], a.m[8]}};
  }
  friend Vec3T<S> transpose_mul(const Mat3T& a, Argument<S, Vec3T<S>> b) {
    return {a.m[0] * b.x + a.m[3] * b.y + a.m[6] * b.z, a.m[1] * b.x + a.m[4] * b.y + a.m[7] * b.z,
            a.m[2] * b.x + a.m[5] * b.y + a.m[8] * b.z};
  }
  friend Mat3T operator+(const Mat3T& a, const Mat3T& b) {
    Mat3T c;
    for (int i = 0; i < 9; i++) c.m[i] = a.m[i] + b.m[i];
    return c;
  }
  friend Mat3T operator*(Argument<S, S> s, const Mat3T& a) {
    Mat3T c;
    for (int i = 0; i < 9; i++) c.m[i] = s * a.m[i];
    return c;
  }
  friend Mat3T operator*(const Mat3T& a, const Mat3T& b) {
    Mat3T c;
    for (int r = 0; r < 3; r++)
      for (int k = 0; k < 3; k++)
        c.m[3 * r + k] =
            a.m[3 * r] * b.m[k] + a.m[3 * r + 1] * b.m[3 + k] + a.m[3 * r + 2] * b.m[6 + k];
    return c;
  }
};
using Mat3 = Mat3T<double>;

inline Mat3 load9(const double* p) {
  return {{p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8]}};
}
inline Mat3 identity3() { return {{1, 0, 0, 0, 1, 0, 0, 0, 1}}; }
// a b^T
template <class S>
Mat3T<S> outer(Vec3T<S> a, Vec3T<S> b) {
  return {{a.x * b.x, a.x * b.y, a.x * b.z, a.y * b.x, a.y * b.y, a.y * b.z, a.z * b.x, a.z * b.y,
           a.z * b.z}};
}
// [a]x, with [a]x b = a x b
template <class S>
Mat3T<S> skew(Vec3T<S> a) {
  return {{0, -a.z, a.y, a.z, 0, -a.x, -a.y, a.x, 0}};
}

template <class S>
struct MotionT {
  Vec3T<S> ang, lin;
  using Arg = Argument<S, MotionT>;

  template <class T>
    requires std::is_same_v<S, double>
  operator MotionT<T>() const {
    return {ang, lin};
  }

  friend MotionT operator+(Arg a, Arg b) { return {a.ang + b.ang, a.lin + b.lin}; }
  friend MotionT operator*(Argument<S, S> s, Arg a) { return {s * a.ang, s * a.lin}; }

  // Returns the velocity of the material point at offset r from the reference point.
  friend Vec3T<S> at_point(Arg v, Argument<S, Vec3T<S>> r) { return v.lin + cross(v.ang, r); }

  // Returns the same motion about the point at offset r from the reference point.
  friend MotionT about(Arg v, Argument<S, Vec3T<S>> r) { return {v.ang, at_point(v, r)}; }
};
using Motion = MotionT<double>;

struct Force {
  Vec3 ang, lin;
};

inline void store_motion(double* p, Motion v) { store3(p, v.ang), store3(p + 3, v.lin); }
inline Motion load_motion(const double* p) { return {load3(p), load3(p + 3)}; }
inline Force operator+(Force a, Force b) { return {a.ang + b.ang, a.lin + b.lin}; }
inline Force operator-(Force a, Force b) { return {a.ang - b.ang, a.lin - b.lin}; }
inline Force operator*(double s, Force a) { return {s * a.ang, s * a.lin}; }
inline Force& operator+=(Force& a, Force b) { return a = a + b; }
inline double dot(Motion a, Force f) { return dot(a.ang, f.ang) + dot(a.lin, f.lin); }

// rate of a motion vector that moves rigidly with v
inline Motion cross(Motion v, Motion m) {
  return {cross(v.ang, m.ang), cross(v.ang, m.lin) + cross(v.lin, m.ang)};
}
// rate of a force vector that moves rigidly with v
inline Force cross(Motion v, Force f) {
  return {cross(v.ang, f.ang) + cross(v.lin, f.lin), cross(v.ang, f.lin)};
}

// A spatial inertia as MuJoCo packs it (cinert, crb): xx yy zz xy xz yz of the rotational part,
// mass times center of mass, mass.
struct Inertia {
  const double* i;
  Vec3 rotate(Vec3 w) const {
    return {i[0] * w.x + i[3] * w.y + i[4] * w.z, i[3] * w.x + i[1] * w.y + i[5] * w.z,
            i[4] * w.x + i[5] * w.y + i[2] * w.z};
  }
  Vec3 moment() const { return load3(i + 6); }
  double mass() const { return i[9]; }
};
inline Force operator*(Inertia a, Motion v) {
  return {a.rotate(v.ang) + cross(a.moment(), v.lin), a.mass() * v.lin - cross(a.moment(), v.ang)};
}

}  // namespace mujacobian
