#include "rods/hessian.h"

#include "rods/broad_phase.h"

namespace mujacobian::rods {
namespace {

constexpr double kMargin = 2;  // factor of the radii within which segments get blocks in advance

// Append the couplings of pairs of segments
void append(const Model& m, const std::vector<Pair>& pairs,
            std::vector<std::pair<int, int>>& couplings) {
  for (const Pair& pair : pairs) {
    const std::vector<int> slots = slots_of(m, pair);
    for (int a : slots)
      for (int b : slots) couplings.emplace_back(a, b);
  }
}

}  // namespace

Hessian::Hessian(const Model& m) : model_(m), elements_(couplings(m)) { rebuild(elements_); }

void Hessian::rebuild(const std::vector<std::pair<int, int>>& couplings) {
  matrix_ = std::make_unique<SparseMatrix>(model_.slots(), couplings);
  factor_ = std::make_unique<Factor>(*matrix_);
}

void Hessian::fit(const Problem& p, const State& q) {
  if (model_.bundles.empty()) return;
  std::vector<std::pair<int, int>> needed;
  append(model_, near_pairs(model_, q, 1), needed);
  append(model_, near_pairs(model_, p.previous, 1), needed);  // friction
  bool fits = true;
  for (auto [i, j] : needed) fits = fits && matrix_->has(i, j);
  if (fits) return;
  needed.insert(needed.end(), elements_.begin(), elements_.end());
  append(model_, near_pairs(model_, q, kMargin), needed);
  rebuild(needed);
}

}  // namespace mujacobian::rods
