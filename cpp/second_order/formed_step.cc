#include "second_order/formed_step.h"

#include "step/transition.h"

namespace mujacobian {
namespace {

// Copies a block (rows, columns) and, if it is not on the diagonal, its transpose into a symmetric
// matrix.
void place(const double* block, int row, int rows, int column, int columns, double* to, int width) {
  for (int i = 0; i < rows; i++)
    for (int k = 0; k < columns; k++) {
      const double x = block[static_cast<std::ptrdiff_t>(i) * columns + k];
      to[static_cast<std::ptrdiff_t>(row + i) * width + column + k] = x;
      to[static_cast<std::ptrdiff_t>(column + k) * width + row + i] = x;
    }
}

}  // namespace

FormedStep form_step(const ModelView& m, const DataView& d, const StepCurvature& curved,
                     const StepCotangent& given, bool forces, Arena& arena) {
  const int nx = state_size(m), nu = m.nu, nf = forces ? m.nv : 0, width = nx + nu + nf;
  auto block = [&](int rows, int columns) {
    return arena.zeros<double>(static_cast<std::size_t>(rows) * columns);
  };
  Outputs jacobians{};
  jacobians.A = block(nx, nx), jacobians.B = block(nx, nu);
  if (forces) jacobians.Bf = block(nx, nf);
  transition(m, d, jacobians, arena);
  HessianOutputs out{block(nx, nx), block(nx, nu), block(nu, nu), nullptr, nullptr, nullptr};
  if (forces) out.xf = block(nx, nf), out.uf = block(nu, nf), out.ff = block(nf, nf);
  write_step_hessian(m, d, curved, given, out, arena);
  double* all = block(width, width);
  place(out.xx, 0, nx, 0, nx, all, width);
  place(out.xu, 0, nx, nx, nu, all, width);
  place(out.uu, nx, nu, nx, nu, all, width);
  place(out.xf, 0, nx, nx + nu, nf, all, width);
  place(out.uf, nx, nu, nx + nu, nf, all, width);
  place(out.ff, nx + nu, nf, nx + nu, nf, all, width);
  return {{jacobians.A, jacobians.B, jacobians.Bf}, all, width};
}

void pull_back_formed(const ModelView& m, const FormedStep& step, const StepCotangent& given,
                      const double* change, const StepDirection& along, const InputCotangent& first,
                      const InputCotangent& second) {
  const int nx = state_size(m), sizes[3] = {nx, m.nu, m.nv};
  const double* inputs[3] = {along.state, along.ctrl, along.force};
  double* outputs[2][3] = {{first.state, first.ctrl, first.force},
                           {second.state, second.ctrl, second.force}};

  // (A, B, Bf)^T times a cotangent of the next state
  const double* cotangents[2] = {given.next, change};
  for (int order = 0; order < 2; order++)
    for (int part = 0; part < 3; part++) {
      double* to = outputs[order][part];
      for (int k = 0; to && k < sizes[part]; k++) {
        to[k] = 0;
        for (int i = 0; cotangents[order] && i < nx; i++) {
          to[k] += cotangents[order][i] *
                   step.jacobian[part][static_cast<std::ptrdiff_t>(i) * sizes[part] + k];
        }
      }
    }

  // the second derivative times the direction
  for (int part = 0, row = 0; part < 3; row += sizes[part++]) {
    double* to = outputs[1][part];
    for (int i = 0; to && i < sizes[part]; i++) {
      const double* from = step.hessian + static_cast<std::ptrdiff_t>(row + i) * step.width;
      for (int other = 0, column = 0; other < 3; column += sizes[other++]) {
        for (int k = 0; inputs[other] && k < sizes[other]; k++) {
          to[i] += from[column + k] * inputs[other][k];
        }
      }
    }
  }
}

}  // namespace mujacobian
