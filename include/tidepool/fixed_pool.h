// tp::FixedPool: a Session's allocator mode, for programs that know nothing but malloc and free.
// Each block has one address until it is freed, nothing moves, and no op is named. The iteration is
// found in these calls alone and its blocks are packed: from then on a malloc is a look-up by its
// place in the iteration, and all of them take hardly more bytes than are live at the same time.
// What does not repeat is served first fit. In libtidepool_session.
//
//   tp::FixedPool pool({.budget = std::int64_t{1} << 30});
//   void* const block = pool.malloc(1 << 20);  // null: no room
//   pool.free(block);
//
// The budget is address space: memory is taken page by page when it is used. Any thread may call.
// Errors are thrown as tp::Error. A pool ends when no other thread is in a call of it, and what is
// left in it is gone then.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "tidepool/error.h"

namespace tidepool {
class FixedPool;
}

namespace tp {

struct FixedPoolOptions {
  std::int64_t budget = 0;      ///< of all blocks and what is lost between them; has to be given
  std::int64_t alignment = 64;  ///< of addresses, a power of two up to 4096
  std::chrono::nanoseconds time_limit{500'000'000};  ///< for packing an iteration
};

/// What a pool did until now.
struct FixedPoolReport {
  std::int64_t served = 0;             ///< mallocs by look-up
  std::int64_t others = 0;             ///< mallocs first fit
  std::int64_t iterations = 0;         ///< that were whole and planned
  std::int64_t left_plans = 0;         ///< calls that were not the plan's next
  std::int64_t iteration_mallocs = 0;  ///< of the iteration that was found last
  std::int64_t peak_load = 0;          ///< most bytes that were live
  std::int64_t footprint = 0;          ///< most bytes that were taken or planned
  std::int64_t planned_bytes = 0;      ///< of the iteration's packing
  std::int64_t planned_load = 0;       ///< no packing of it is smaller
};

class TP_API FixedPool {
 public:
  /// TP_USAGE: options that make no sense; TP_RUNTIME: so much address space cannot be had.
  explicit FixedPool(const FixedPoolOptions& options);
  ~FixedPool();
  FixedPool(const FixedPool&) = delete;
  FixedPool& operator=(const FixedPool&) = delete;

  /// Null where the budget has no room, or for no bytes.
  void* malloc(std::int64_t bytes);
  /// Null is no block, and nothing happens. TP_USAGE: no block begins there.
  void free(void* block);
  /// Whether it is in the pool's address space.
  [[nodiscard]] bool contains(const void* address) const;
  /// Of the block that begins there; 0: none does.
  [[nodiscard]] std::int64_t size(const void* block) const;
  [[nodiscard]] FixedPoolReport report() const;
  /// Peak load and footprint count from now on.
  void reset_peaks();

 private:
  std::unique_ptr<tidepool::FixedPool> pool_;
};

}  // namespace tp
