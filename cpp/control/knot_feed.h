// Queue of knots between the thread that simulates and the threads that differentiate.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "step/batch.h"

namespace mujacobian {

class KnotFeed {
 public:
  struct Item {
    int t;
    void* snapshot;  // null: start from the recorded row
  };

  explicit KnotFeed(const std::vector<OwnedData>& snapshots) {
    for (const OwnedData& snapshot : snapshots) free_.push_back(snapshot.get());
  }

  // Returns a free snapshot, or null if all are in use.
  void* take_snapshot() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return nullptr;
    void* snapshot = free_.back();
    free_.pop_back();
    return snapshot;
  }

  void push(Item item) {
    {
      std::lock_guard lock(mutex_);
      items_.push_back(item);
    }
    ready_.notify_one();
  }

  void give_back(void* snapshot) {
    if (!snapshot) return;
    std::lock_guard lock(mutex_);
    free_.push_back(snapshot);
  }

  // End the queue; with `discard`, also drop the waiting knots.
  void close(bool discard) {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
      if (discard) items_.clear();
    }
    ready_.notify_all();
  }

  // Waits for the next knot. Returns nothing at the end of the queue.
  std::optional<Item> next() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    const Item item = items_.front();
    items_.pop_front();
    return item;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Item> items_;
  std::vector<void*> free_;
  bool closed_ = false;
};

}  // namespace mujacobian
