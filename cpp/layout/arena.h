// Scratch memory of one call: a bump allocator. It is reset at the start of every call and keeps
// its memory, so that later calls on the same model do not allocate.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <vector>

namespace mujacobian {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { release(); }

  // Invalidates everything that was taken, and merges the memory into one piece.
  void reset() {
    if (chunks_.size() > 1) {
      std::size_t total = 0;
      for (const Chunk& chunk : chunks_) total += chunk.size;
      release();
      grow(total);
    }
    used_ = 0;
  }

  // Returns uninitialized memory for n objects, aligned to a cache line. The arena never calls
  // destructors.
  template <class T>
  T* take(std::size_t n) {
    static_assert(std::is_trivially_destructible_v<T>);
    std::size_t bytes = (n * sizeof(T) + kAlign - 1) / kAlign * kAlign;
    if (chunks_.empty() || used_ + bytes > chunks_.back().size) grow(bytes);
    T* result = reinterpret_cast<T*>(chunks_.back().memory + used_);
    used_ += bytes;
    return result;
  }

  // The same, with all bytes set to zero.
  template <class T>
  T* zeros(std::size_t n) {
    T* result = take<T>(n);
    if (n) std::memset(static_cast<void*>(result), 0, n * sizeof(T));
    return result;
  }

  // `rewind` invalidates what was taken since `mark`, unless the arena has grown in the meantime.
  struct Mark {
    std::size_t chunks, used;
  };
  Mark mark() const { return {chunks_.size(), used_}; }
  void rewind(Mark mark) {
    if (mark.chunks == chunks_.size()) used_ = mark.used;
  }

 private:
  static constexpr std::size_t kAlign = 64;
  struct Chunk {
    char* memory;
    std::size_t size;
  };

  void grow(std::size_t bytes) {
    std::size_t size = chunks_.empty() ? 1 << 16 : 2 * chunks_.back().size;
    while (size < bytes) size *= 2;
    void* memory = ::operator new(size, std::align_val_t(kAlign));
    chunks_.push_back({static_cast<char*>(memory), size});
    used_ = 0;
  }

  void release() {
    for (const Chunk& chunk : chunks_) ::operator delete(chunk.memory, std::align_val_t(kAlign));
    chunks_.clear();
  }

  std::vector<Chunk> chunks_;
  std::size_t used_ = 0;
};

}  // namespace mujacobian
