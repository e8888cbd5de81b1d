// Second derivatives of functions of the lengths and rates of paths.
// docs/derivations/second_order.md.
#pragma once

#include <cstring>

#include "tree/path.h"
#include "tree/quadratic_form.h"

namespace mujacobian {

// A path with the element that it belongs to.
struct CurvedPath {
  Path path;
  PathSource source;
};

// Returns the second derivatives of the length and, for a joint motion `y` (nv), of the moments of
// a path with a source.
PathBend bend_path(const ModelView& m, const DataView& d, const PathSource& source, const double* y,
                   Arena& arena);

// A variable of a function: the length of a path, its rate m . y in a joint motion y, or an input.
struct PathScalar {
  enum Kind {
    kLength,
    kVirtual,       // y is constant
    kVelocity,      // y is the velocity of the dofs
    kAcceleration,  // y is their acceleration
    kInput
  } kind;
  const CurvedPath* path;
  const double* motion;       // (nv): y
  const unsigned char* mask;  // per dof of the path: it counts; null: all do
  int input;

  // Returns m . y.
  double rate() const;
};

// A scalar function with its derivatives with respect to its variables. It is linear in the
// accelerations.
struct PathFunction {
  int count;
  PathScalar* scalar;
  double value;
  double* slope;   // (count)
  double* second;  // (count, count)
};

// Returns a function with all derivatives zero.
PathFunction make_path_function(int count, Arena& arena);

// Returns f sum_k a_k b_k, or f sum_k a_k if `b` is null, for rates a_k, b_k of the path.
PathFunction multiply(const PathFunction& f, const PathScalar* a, const PathScalar* b, int count,
                      Arena& arena);

// A product x . P y, where P is the matrix of products of the moments m m^T of a path within a
// pattern: sum_k a_k b_k with a_k = sum_i x_i m_i over the rows i of one pattern, and
// b_k = sum_j m_j y_j over this pattern. y is the acceleration of the dofs.
struct PathProduct {
  PathScalar *a, *b;
  int count;
};

// Returns this product for the pattern in_pattern(i, j) of dofs. `path` must outlive it.
template <class F>
PathProduct path_product(const CurvedPath& path, const double* x, const double* y, F in_pattern,
                         Arena& arena) {
  const Path& p = path.path;
  PathProduct r{arena.take<PathScalar>(p.n), arena.take<PathScalar>(p.n), 0};
  unsigned char** rows = arena.take<unsigned char*>(p.n);  // of each term
  for (int i = 0; i < p.n; i++) {
    unsigned char* pattern = arena.take<unsigned char>(p.n);
    for (int j = 0; j < p.n; j++) pattern[j] = in_pattern(p.dofs[i], p.dofs[j]);
    int k = 0;
    while (k < r.count && std::memcmp(r.b[k].mask, pattern, p.n)) k++;
    if (k == r.count) {
      rows[k] = arena.zeros<unsigned char>(p.n);
      r.a[k] = {PathScalar::kVirtual, &path, x, rows[k], 0};
      r.b[k] = {PathScalar::kAcceleration, &path, y, pattern, 0};
      r.count++;
    }
    rows[k][i] = 1;
  }
  return r;
}

// The derivative of a function with respect to the inputs of a step; null: not computed.
struct PathGradient {
  double* state;         // (nx)
  double* ctrl;          // (nu)
  double* acceleration;  // (nv)
};

// Adds the derivative of a function of paths.
void add_path_gradient(const ModelView& m, const PathFunction& f, const PathGradient& to);

// Adds `weight` times the second derivatives of a function of paths of one component. The rows
// `mixed` of the form belong to the accelerations.                                       (HES-50)
void add_path_function(const ModelView& m, const DataView& d, const PathFunction& f, double weight,
                       const QuadraticForm& form, Arena& arena);

}  // namespace mujacobian
