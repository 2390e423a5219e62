// FixedPool: a Session's blocks for programs that know nothing but malloc and free: each has one
// address until it is freed, and nothing moves. The iteration is found from these calls alone; its
// blocks are packed (SmartPool/AutoSwap section III), and from then on a malloc is a look-up by its
// place in the iteration (section V). What does not repeat, and whatever comes otherwise than
// planned, is served first fit elsewhere.
//
// Blocks that outlive their iteration, such as weights, lie where they were put first. A block that
// is freed in the iteration after its own is served elsewhere too: its addresses would have to
// alternate.
//
// Note [Own memory]
// A global operator new may be served by a pool, whose own containers then ask it for memory in the
// middle of a call. Such calls of the same thread are served by malloc, and so are their frees.
//
// Threads: any may call.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/segments.h"
#include "session/pattern.h"

namespace tidepool {

struct FixedPoolSpec {
  Bytes budget = 0;                                   ///< of all blocks, gaps between them included
  Bytes alignment = 64;                               ///< of addresses, a power of two up to a page
  Nanos time_limit = std::chrono::milliseconds(500);  ///< for packing an iteration
};

struct FixedPoolReport {
  std::int64_t served = 0;      ///< mallocs by look-up
  std::int64_t others = 0;      ///< mallocs first fit
  std::int64_t iterations = 0;  ///< that were whole and planned
  std::int64_t left_plans = 0;
  std::int64_t iteration_mallocs = 0;  ///< of the iteration found last
  Bytes peak_load = 0;                 ///< most bytes that were live, since the last `reset_peaks`
  Bytes footprint = 0;      ///< most bytes that lay below the highest ones, or were planned
  Bytes planned_bytes = 0;  ///< of the iteration's packing
  Bytes planned_load = 0;   ///< no packing of it is smaller
};

class FixedPool {
 public:
  /// Throws SessionError (`runtime`) where so much address space cannot be had.
  explicit FixedPool(const FixedPoolSpec& spec);
  ~FixedPool();
  FixedPool(const FixedPool&) = delete;
  FixedPool& operator=(const FixedPool&) = delete;

  /// Null where the budget has no room. `bytes` above 0.
  void* allocate(Bytes bytes);
  /// False: no block begins there.
  bool free(void* address);
  /// Whether it is in the pool's address space. Takes no lock.
  [[nodiscard]] bool contains(const void* address) const;
  /// Of the block that begins there; 0: none does.
  [[nodiscard]] Bytes bytes(const void* address) const;

  [[nodiscard]] FixedPoolReport report() const;
  /// Peaks count from now on.
  void reset_peaks();

 private:
  /// Where the steps of an iteration put what they allocate.
  struct Plan {
    std::vector<Pattern::Step> steps;
    std::vector<Bytes> offsets;  ///< by step: of a malloc's block; kElsewhere: not planned
    /// By step: of a free, the malloc of the planned block that it frees; kNone: of another one.
    std::vector<std::int32_t> freed;
    std::vector<Bytes> sizes;   ///< by step: of a malloc
    std::vector<LifeId> lives;  ///< by step: of the block that a malloc gave last
    /// By place, in units of the alignment: the malloc whose block begins there; kNone: none does.
    std::vector<std::int32_t> live_at;
    Bytes bytes = 0;
    Bytes load = 0;
  };
  static constexpr Bytes kElsewhere = -1;

  /// Has the pool to itself, and says that what its thread allocates until then is the pool's own.
  class Call {
   public:
    explicit Call(const FixedPool& pool);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    std::lock_guard<std::mutex> lock_;
    const FixedPool* before_;
  };

  struct Block {
    Bytes bytes = 0;
    LifeId life = kNone;
  };

  [[nodiscard]] bool in_own_call() const;
  void* allocate_elsewhere(Bytes bytes);
  void* allocate_planned();
  bool free_planned(Bytes offset);
  bool free_elsewhere(Bytes offset);
  [[nodiscard]] std::int32_t& live_at(Bytes offset) {
    return plan_->live_at[static_cast<std::size_t>(offset / spec_.alignment)];
  }
  void call_done(bool as_planned);
  void follow();
  void look_for_iteration();
  [[nodiscard]] std::unique_ptr<Plan> make_plan(const CallLog::Period& period) const;
  void note_peaks();
  [[nodiscard]] bool plan_has_bytes() const { return in_plan_ || planned_live_ > 0; }
  void give_back_pages(Bytes offset, Bytes bytes);
  void give_back_around(Bytes offset, Bytes bytes);
  void give_back_plan();

  FixedPoolSpec spec_;
  mutable std::mutex mutex_;
  Bytes page_ = 4096;
  Bytes region_ = 0;            ///< the budget in whole pages
  std::byte* arena_ = nullptr;  ///< address space for two of these: elsewhere, then planned
  Segments elsewhere_;
  std::map<Bytes, Block> blocks_;  ///< elsewhere, by offset in the arena
  Bytes live_ = 0;
  Bytes highest_elsewhere_ = 0;  ///< bytes below it may be taken
  std::int64_t planned_live_ = 0;
  CallLog log_;
  LifeId next_life_ = 0;
  std::size_t unplanned_calls_ = 0;
  std::unique_ptr<Plan> plan_;
  bool in_plan_ = false;
  std::size_t position_ = 0;
  std::vector<std::size_t> phases_;
  FixedPoolReport report_;
};

}  // namespace tidepool
