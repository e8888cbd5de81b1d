// Products and smooth functions of affine expressions, which the rows of a cost may contain.
#pragma once

#include <string>
#include <vector>

#include "layout/arena.h"

namespace mujacobian {

struct GraphOperation;

// Returns the operation with this name, which Python uses. Throws std::invalid_argument.
const GraphOperation* graph_operation(const std::string& name);

// A value f(a) or a b, where `first` and `second` are the operands a and b.
struct GraphNode {
  const GraphOperation* operation;
  double p;  // exponent of a power
  int first, second;
};

// Affine expressions in compressed form: expression i is the sum of coefficient[k] column[index[k]]
// over k = start[i] .. start[i+1]-1. The columns are sensors, controls, and values of nodes.
struct AffineRows {
  std::vector<int> start, index;
  std::vector<double> coefficient;
};

// Returns whether an expression reads a marked column.
bool reads(const AffineRows& rows, int row, const std::vector<unsigned char>& columns);

// Values of the columns.
struct GraphValues {
  const double* sensors;  // (ns)
  const double* ctrl;     // (nu)
  const double* nodes;    // (nodes)
};

// The nodes, each of which depends on earlier nodes only.
struct CostGraph {
  int ns, nu;
  AffineRows operands;
  std::vector<double> constant;  // constant part of each operand
  std::vector<GraphNode> nodes;

  int count() const { return static_cast<int>(nodes.size()); }
  int width() const { return ns + nu; }

  // Mark the nodes that read a marked column, among the columns (ns + nu + nodes).
  void mark_nodes(std::vector<unsigned char>& columns) const;

  // Returns a constant plus the value of an affine expression.
  double value(const AffineRows& rows, int row, double sum, const GraphValues& at) const;

  // Write the values of all nodes, of which `at` holds the sensors and controls.    (ILQ-19)
  void evaluate(const GraphValues& at, double* values) const;

  // Given the derivatives of a scalar by all columns (ns + nu + nodes), add those by the nodes to
  // the columns that the nodes depend on.                                            (ILQ-20)
  void pull_back(const GraphValues& at, double* columns) const;

  // Write the derivatives (ns + nu) of an affine expression by sensors and controls.
  void differentiate(const AffineRows& rows, int row, const GraphValues& at, double* gradient,
                     Arena& arena) const;

  // Call add(scale, a, b) for each part scale (a b^T + b a^T) / 2 of the second derivative of a
  // scalar by sensors and controls, given its derivatives by the nodes (ILQ-21). a and b are (ns +
  // nu).
  template <class Add>
  void curve(const GraphValues& at, const double* by_node, Arena& arena, Add add) const;

 private:
  struct Slopes {
    double first, second, bend, mixed;
  };
  Slopes slopes(const GraphNode& node, const GraphValues& at) const;
};

inline double CostGraph::value(const AffineRows& rows, int row, double sum,
                               const GraphValues& at) const {
  for (int k = rows.start[row]; k < rows.start[row + 1]; k++) {
    const int index = rows.index[k];
    sum += rows.coefficient[k] * (index < ns        ? at.sensors[index]
                                  : index < width() ? at.ctrl[index - ns]
                                                    : at.nodes[index - width()]);
  }
  return sum;
}

template <class Add>
void CostGraph::curve(const GraphValues& at, const double* by_node, Arena& arena, Add add) const {
  for (int j = 0; j < count(); j++) {
    if (by_node[j] == 0) continue;
    const Arena::Mark mark = arena.mark();
    const Slopes s = slopes(nodes[j], at);
    double* a = arena.take<double>(width());
    differentiate(operands, nodes[j].first, at, a, arena);
    if (s.bend != 0) add(by_node[j] * s.bend, a, a);
    if (s.mixed != 0) {
      double* b = arena.take<double>(width());
      differentiate(operands, nodes[j].second, at, b, arena);
      add(2 * by_node[j] * s.mixed, a, b);
    }
    arena.rewind(mark);
  }
}

}  // namespace mujacobian
