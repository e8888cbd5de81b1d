// Orders of elimination of sparse symmetric matrices, and the blocks of their factors.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace mujacobian::rods {

// The columns of each row, increasing, without the diagonal.
using Rows = std::vector<std::vector<int>>;

// Returns for each row all rows that it is coupled with
Rows adjacency(int rows, const std::vector<std::pair<int, int>>& couplings);

// Returns the lower triangle of the factor L if rows are eliminated in the order `place`, numbered
// by their places. Stops if it has more than `limit` blocks, and then returns an empty vector.
Rows factor_rows(const Rows& adjacent, const std::vector<int>& place, std::size_t limit);

// Returns the place of each row in an order with little fill: of approximate minimum degree
std::vector<int> minimum_degree(const Rows& adjacent);

}  // namespace mujacobian::rods
