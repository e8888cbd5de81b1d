#include "control/graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace mujacobian {
namespace {

// Value and derivatives of a function of one operand.
struct Scalar {
  double value, slope, bend;
};

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

Scalar sine(double, double x) { return {std::sin(x), std::cos(x), -std::sin(x)}; }

Scalar cosine(double, double x) { return {std::cos(x), -std::sin(x), -std::cos(x)}; }

Scalar arctan(double, double x) {
  const double e = 1 / (1 + x * x);
  return {std::atan(x), e, -2 * x * e * e};
}

Scalar tanh(double, double x) {
  const double value = std::tanh(x), slope = 1 - value * value;
  return {value, slope, -2 * value * slope};
}

Scalar exponential(double, double x) {
  const double value = std::exp(x);
  return {value, value, value};
}

// A logarithm, a root and a power with a fractional exponent are smooth for positive numbers only.
Scalar logarithm(double, double x) {
  return x > 0 ? Scalar{std::log(x), 1 / x, -1 / (x * x)} : Scalar{kUndefined, 0, 0};
}

Scalar power(double p, double x) {
  if (p != std::floor(p) && !(x > 0)) return {kUndefined, 0, 0};
  return {std::pow(x, p), p * std::pow(x, p - 1), p * (p - 1) * std::pow(x, p - 2)};
}

}  // namespace

// A function of one operand, or the product of two if it is null.
struct GraphOperation {
  const char* name;
  Scalar (*function)(double p, double x);
};

const GraphOperation* graph_operation(const std::string& name) {
  static constexpr GraphOperation kOperations[] = {
      {"multiply", nullptr}, {"sin", sine},        {"cos", cosine},    {"arctan", arctan},
      {"tanh", tanh},        {"exp", exponential}, {"log", logarithm}, {"power", power},
  };
  for (const GraphOperation& operation : kOperations) {
    if (name == operation.name) return &operation;
  }
  throw std::invalid_argument("unknown function of rows " + name);
}

bool reads(const AffineRows& rows, int row, const std::vector<unsigned char>& columns) {
  return std::any_of(rows.index.data() + rows.start[row], rows.index.data() + rows.start[row + 1],
                     [&](int index) { return columns[index] != 0; });
}

void CostGraph::mark_nodes(std::vector<unsigned char>& columns) const {
  for (int j = 0; j < count(); j++) {
    const GraphNode& node = nodes[j];
    columns[width() + j] = reads(operands, node.first, columns) ||
                           (!node.operation->function && reads(operands, node.second, columns));
  }
}

void CostGraph::evaluate(const GraphValues& at, double* values) const {
  const GraphValues here{at.sensors, at.ctrl, values};
  for (int j = 0; j < count(); j++) {
    const GraphNode& node = nodes[j];
    const double a = value(operands, node.first, constant[node.first], here);
    values[j] = node.operation->function
                    ? node.operation->function(node.p, a).value
                    : a * (value(operands, node.second, constant[node.second], here));
  }
}

CostGraph::Slopes CostGraph::slopes(const GraphNode& node, const GraphValues& at) const {
  const double a = value(operands, node.first, constant[node.first], at);
  if (node.operation->function) {
    const Scalar f = node.operation->function(node.p, a);
    return {f.slope, 0, f.bend, 0};
  }
  return {value(operands, node.second, constant[node.second], at), a, 0, 1};
}

void CostGraph::pull_back(const GraphValues& at, double* columns) const {
  for (int j = count() - 1; j >= 0; j--) {
    const double by_value = columns[width() + j];
    if (by_value == 0) continue;
    const Slopes s = slopes(nodes[j], at);
    auto add = [&](int operand, double scale) {
      for (int k = operands.start[operand]; k < operands.start[operand + 1]; k++) {
        columns[operands.index[k]] += scale * operands.coefficient[k];
      }
    };
    add(nodes[j].first, by_value * s.first);
    if (!nodes[j].operation->function) add(nodes[j].second, by_value * s.second);
  }
}

void CostGraph::differentiate(const AffineRows& rows, int row, const GraphValues& at,
                              double* gradient, Arena& arena) const {
  const Arena::Mark mark = arena.mark();
  double* columns = arena.zeros<double>(width() + count());
  for (int k = rows.start[row]; k < rows.start[row + 1]; k++) {
    columns[rows.index[k]] += rows.coefficient[k];
  }
  pull_back(at, columns);
  std::copy_n(columns, width(), gradient);
  arena.rewind(mark);
}

}  // namespace mujacobian
