// Contracts Pinocchio's second derivatives of inverse dynamics with a vector.
//
// Arguments: a model that Pinocchio has saved, and a file with the doubles q, v, a, mu. Prints the
// matrices sum_i mu_i d2 tau_i over (q, q), (v, v), (q, v) and (a, q), by rows.
#include <cstdio>
#include <fstream>
#include <pinocchio/multibody.hpp>
#include <pinocchio/serialization.hpp>
#include <stdexcept>
// needs the headers above
#include <pinocchio/algorithm/rnea-second-order-derivatives.hpp>

namespace {

Eigen::VectorXd read(std::ifstream& file, int size) {
  Eigen::VectorXd x(size);
  file.read(reinterpret_cast<char*>(x.data()), static_cast<std::streamsize>(size * sizeof(double)));
  if (!file) throw std::runtime_error("the file of vectors is too short");
  return x;
}

template <class Tensor>
void print(const Tensor& tensor, const Eigen::VectorXd& mu) {
  const int n = static_cast<int>(mu.size());
  for (int j = 0; j < n; j++)
    for (int k = 0; k < n; k++) {
      double sum = 0;
      for (int i = 0; i < n; i++) sum += mu[i] * tensor(i, j, k);
      std::printf("%.17g\n", sum);
    }
}

}  // namespace

int main(int, char** arguments) {
  pinocchio::Model model;
  model.loadFromBinary(arguments[1]);
  pinocchio::Data data(model);
  std::ifstream file(arguments[2], std::ios::binary);
  const Eigen::VectorXd q = read(file, model.nq), v = read(file, model.nv);
  const Eigen::VectorXd a = read(file, model.nv), mu = read(file, model.nv);
  pinocchio::ComputeRNEASecondOrderDerivatives(model, data, q, v, a);
  print(data.d2tau_dqdq, mu);
  print(data.d2tau_dvdv, mu);
  print(data.d2tau_dqdv, mu);
  print(data.d2tau_dadq, mu);
}
