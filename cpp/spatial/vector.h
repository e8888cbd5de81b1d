// Three-vectors, 3x3 matrices and spatial (six-dimensional) vectors in MuJoCo's order: angular part
// first, linear part second. Motions and forces are different types, so that a wrong pairing does
// not compile. All are in world axes about the center of mass of the kinematic tree, which is
// MuJoCo's reference point for cdof, cvel and cinert.
#pragma once

#include <cmath>

namespace mujacobian {

struct Vec3 {
  double x, y, z;
};

inline Vec3 unit3(int k) { return {k == 0 ? 1.0 : 0, k == 1 ? 1.0 : 0, k == 2 ? 1.0 : 0}; }
inline Vec3 load3(const double* p) { return {p[0], p[1], p[2]}; }
inline void store3(double* p, Vec3 a) { p[0] = a.x, p[1] = a.y, p[2] = a.z; }
inline Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline Vec3 operator-(Vec3 a) { return {-a.x, -a.y, -a.z}; }
inline Vec3 operator*(double s, Vec3 a) { return {s * a.x, s * a.y, s * a.z}; }
inline Vec3& operator+=(Vec3& a, Vec3 b) { return a = a + b; }
inline double dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline double norm(Vec3 a) { return std::sqrt(dot(a, a)); }
inline Vec3 unit(Vec3 a) { return (1 / norm(a)) * a; }
inline Vec3 cross(Vec3 a, Vec3 b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// row-major, as MuJoCo stores xmat
struct Mat3 {
  double m[9];
  double& operator()(int r, int c) { return m[3 * r + c]; }
  double operator()(int r, int c) const { return m[3 * r + c]; }
};

inline Mat3 load9(const double* p) {
  return {{p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8]}};
}
inline Mat3 identity3() { return {{1, 0, 0, 0, 1, 0, 0, 0, 1}}; }
inline Vec3 column(const Mat3& a, int c) { return {a.m[c], a.m[3 + c], a.m[6 + c]}; }
inline Vec3 operator*(const Mat3& a, Vec3 b) {
  return {a.m[0] * b.x + a.m[1] * b.y + a.m[2] * b.z, a.m[3] * b.x + a.m[4] * b.y + a.m[5] * b.z,
          a.m[6] * b.x + a.m[7] * b.y + a.m[8] * b.z};
}
inline Mat3 transposed(const Mat3& a) {
  return {{a.m[0], a.m[3], a.m[6], a.m[1], a.m[4], a.m[7], a.m[2], a.m[5], a.m[8]}};
}
inline Vec3 transpose_mul(const Mat3& a, Vec3 b) {
  return {a.m[0] * b.x + a.m[3] * b.y + a.m[6] * b.z, a.m[1] * b.x + a.m[4] * b.y + a.m[7] * b.z,
          a.m[2] * b.x + a.m[5] * b.y + a.m[8] * b.z};
}
inline Mat3 operator+(const Mat3& a, const Mat3& b) {
  Mat3 c;
  for (int i = 0; i < 9; i++) c.m[i] = a.m[i] + b.m[i];
  return c;
}
// a b^T
inline Mat3 outer(Vec3 a, Vec3 b) {
  return {{a.x * b.x, a.x * b.y, a.x * b.z, a.y * b.x, a.y * b.y, a.y * b.z, a.z * b.x, a.z * b.y,
           a.z * b.z}};
}
inline Mat3 operator*(double s, const Mat3& a) {
  Mat3 c;
  for (int i = 0; i < 9; i++) c.m[i] = s * a.m[i];
  return c;
}
inline Mat3 operator*(const Mat3& a, const Mat3& b) {
  Mat3 c;
  for (int r = 0; r < 3; r++)
    for (int k = 0; k < 3; k++)
      c.m[3 * r + k] =
          a.m[3 * r] * b.m[k] + a.m[3 * r + 1] * b.m[3 + k] + a.m[3 * r + 2] * b.m[6 + k];
  return c;
}
// [a]x, with [a]x b = a x b
inline Mat3 skew(Vec3 a) { return {{0, -a.z, a.y, a.z, 0, -a.x, -a.y, a.x, 0}}; }

struct Motion {
  Vec3 ang, lin;
};
struct Force {
  Vec3 ang, lin;
};

inline void store_motion(double* p, Motion v) { store3(p, v.ang), store3(p + 3, v.lin); }
inline Motion load_motion(const double* p) { return {load3(p), load3(p + 3)}; }
inline Motion operator+(Motion a, Motion b) { return {a.ang + b.ang, a.lin + b.lin}; }
inline Motion operator*(double s, Motion a) { return {s * a.ang, s * a.lin}; }
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

// Returns the velocity of the material point at offset r from the reference point.
inline Vec3 at_point(Motion v, Vec3 r) { return v.lin + cross(v.ang, r); }

// Returns the same motion about the point at offset r from the reference point.
inline Motion about(Motion v, Vec3 r) { return {v.ang, at_point(v, r)}; }

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
