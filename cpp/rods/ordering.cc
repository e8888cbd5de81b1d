#include "rods/ordering.h"

#include <algorithm>
#include <set>

namespace mujacobian::rods {
namespace {

void make_unique(std::vector<int>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

// The graph of the rows that are not eliminated yet. An element is an eliminated row: the rows that
// it was coupled with are coupled with each other. The graph keeps this list instead of all pairs.
class Quotient {
 public:
  explicit Quotient(const Rows& adjacent)
      : rows_(adjacent),
        elements_(adjacent.size()),
        members_(adjacent.size()),
        outside_(adjacent.size()),
        stamp_(adjacent.size(), -1),
        degree_(adjacent.size()) {
    for (size_t i = 0; i < adjacent.size(); i++)
      set_degree(static_cast<int>(i), adjacent[i].size());
  }

  bool is_empty() const { return queue_.empty(); }

  // Eliminates a row of the smallest degree, and returns it
  int eliminate() {
    const int pivot = queue_.begin()->second;
    queue_.erase(queue_.begin());
    // the rows that the pivot is coupled with, also through elements, become one element
    std::vector<int>& front = members_[pivot];
    front.swap(rows_[pivot]);
    for (int e : elements_[pivot]) {
      front.insert(front.end(), members_[e].begin(), members_[e].end());
    }
    make_unique(front);
    front.erase(std::remove(front.begin(), front.end(), pivot), front.end());
    const std::vector<int> merged = std::move(elements_[pivot]);
    for (int e : merged) {
      members_[e] = {};
      stamp_[e] = pivot, outside_[e] = 0;
    }
    // numbers of rows of the other elements outside the new one
    for (int i : front) {
      for (int e : elements_[i]) {
        if (std::binary_search(merged.begin(), merged.end(), e)) continue;
        if (stamp_[e] != pivot) stamp_[e] = pivot, outside_[e] = members_[e].size();
        outside_[e]--;
      }
    }
    for (int i : front) update(i, pivot, front);
    return pivot;
  }

 private:
  void update(int i, int pivot, const std::vector<int>& front) {
    // couplings inside the new element are known by it, and so are elements without other rows
    auto inside = [&](int row) {
      return row == pivot || std::binary_search(front.begin(), front.end(), row);
    };
    std::vector<int>& rows = rows_[i];
    rows.erase(std::remove_if(rows.begin(), rows.end(), inside), rows.end());
    std::vector<int>& elements = elements_[i];
    elements.erase(
        std::remove_if(elements.begin(), elements.end(), [&](int e) { return outside_[e] == 0; }),
        elements.end());
    size_t degree = rows.size() + front.size() - 1;
    for (int e : elements) degree += outside_[e];
    elements.insert(std::lower_bound(elements.begin(), elements.end(), pivot), pivot);
    queue_.erase({degree_[i], i});
    set_degree(i, degree);
  }

  void set_degree(int i, size_t degree) {
    degree_[i] = degree;
    queue_.insert({degree, i});
  }

  Rows rows_;      // of each row: rows that it is coupled with outside elements
  Rows elements_;  // of each row: elements that it is in, increasing
  Rows members_;   // of each element
  std::vector<size_t> outside_;
  std::vector<int> stamp_;  // the pivot for which `outside_` is valid
  std::vector<size_t> degree_;
  std::set<std::pair<size_t, int>> queue_;
};

}  // namespace

Rows adjacency(int rows, const std::vector<std::pair<int, int>>& couplings) {
  Rows all(rows);
  for (auto [i, j] : couplings) {
    if (i == j) continue;
    all[i].push_back(j);
    all[j].push_back(i);
  }
  for (std::vector<int>& list : all) make_unique(list);
  return all;
}

Rows factor_rows(const Rows& adjacent, const std::vector<int>& place, std::size_t limit) {
  const int n = static_cast<int>(adjacent.size());
  std::vector<int> row_at(n), parent(n, -1), mark(n, -1);
  for (int i = 0; i < n; i++) row_at[place[i]] = i;
  Rows rows(n);
  std::size_t blocks = 0;
  // the blocks of row k are on the paths from its couplings to k in the elimination tree
  for (int k = 0; k < n; k++) {
    mark[k] = k;
    for (int neighbor : adjacent[row_at[k]]) {
      for (int j = place[neighbor]; j < k && mark[j] != k; j = parent[j]) {
        mark[j] = k;
        rows[k].push_back(j);
        if (parent[j] < 0) {
          parent[j] = k;
          break;
        }
      }
    }
    std::sort(rows[k].begin(), rows[k].end());
    blocks += rows[k].size();
    if (blocks > limit) return {};
  }
  return rows;
}

std::vector<int> minimum_degree(const Rows& adjacent) {
  std::vector<int> place(adjacent.size());
  Quotient graph(adjacent);
  for (int k = 0; !graph.is_empty(); k++) place[graph.eliminate()] = k;
  return place;
}

}  // namespace mujacobian::rods
