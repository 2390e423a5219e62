// tp::Session: the blocks of any program inside a budget, without a graph and without hints. The
// program allocates and frees blocks and says which of them each of its ops reads and writes. The
// iteration that repeats is found in these calls and planned; from then on blocks have left, and
// are back when they are needed. In libtidepool_session, which is there where the CPU device is
// built.
//
//   std::vector<float> data(4096, 0.5F);
//   const std::int64_t bytes = 16 << 10;
//   tp::SessionOptions options;
//   options.budget = 3 * bytes;  // four live at once below
//   tp::Session session(options);
//   const auto layer = [&](const char* name, tp::Block in, tp::Block weights, tp::Block out) {
//     const auto p = session.begin(name, {in, weights}, {out});  // reads, writes
//     const auto *x = static_cast<const float*>(p[0]), *w = static_cast<const float*>(p[1]);
//     auto* y = static_cast<float*>(p[2]);
//     for (int i = 0; i < 4096; ++i) y[i] = x[i] + w[i];
//     session.end();
//   };
//   const tp::Block w1 = session.malloc(bytes), w2 = session.malloc(bytes);
//   for (const tp::Block w : {w1, w2}) session.upload(w, data.data(), bytes);
//   for (int i = 0; i < 20; ++i) {
//     const tp::Block x = session.malloc(bytes), y = session.malloc(bytes);
//     session.upload(x, data.data(), bytes);
//     layer("first", x, w1, y);
//     session.free(x);
//     const tp::Block z = session.malloc(bytes);
//     layer("second", y, w2, z);
//     session.free(y);
//     session.download(z, data.data(), bytes);
//     session.free(z);
//     if (i == 4) session.plan_now();  // without this it is planned beside the program
//   }
//   std::cout << session.report().planned_iterations << " iterations by a plan\n";
//
// Blocks have no address but between begin and end, or inside the function of exec: the pointers of
// an op are good until it ends. Those that are `fixed` have one from malloc to free, which the
// program may use at any time: they never leave, count in the budget, and lie beside the others,
// at whose ops they may be. An op that reads one is never run again. One that an iteration
// allocates and frees is in its plan; plans get the bytes below the others. Programs that know
// nothing but malloc and free take a tp::FixedPool (fixed_pool.h), all of whose blocks are fixed.
// Results are bit for bit those of the same program on plain memory:
// a call that is not the plan's next leaves the plan, and blocks then come and go on demand. Plans
// keep the bytes of a block until it is freed: free early.
//
// Threads: any may call. One op runs at a time: it has the session to itself from begin to end, and
// calls of other threads wait for that. The thread that began an op ends it, and makes no other
// call in between. Planning takes a thread of its own where `plan_beside` is true.
//
// Errors are thrown as tp::Error, and nothing has changed then. TP_USAGE: what makes no sense, such
// as a block that was freed or is another session's, a read of what nothing has written, a call
// inside an op, a folder that cannot be used; TP_BAD_INPUT: the name of an op that is no UTF-8;
// TP_INFEASIBLE: the blocks of one op do not fit into the budget together, `smallest()` is one that
// they fit into; TP_RUNTIME: no room for what has to leave, a file that fails. What a function
// given to exec throws comes out of exec as it is.
//
// Ownership: blocks belong to their session, which frees what is left. A Block is a number that is
// never given out again, by any session: one that was freed is always refused, and one of another
// session too (TP_USAGE). A session has at most 16,777,216 blocks at a time. It ends when no other
// thread is in a call of it.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tidepool/error.h"

namespace tidepool::api {
class SessionState;
}

namespace tp {

struct SessionOptions {
  std::int64_t budget = 0;  ///< bytes that blocks may take at any time; has to be given
  /// What leaves goes to a file without a name here, not in memory (tmpfs), in blocks of 4096 bytes
  /// in which all blocks are then counted; empty: to other memory of the process, over an
  /// emulated link, which is for trying out.
  std::string folder{};
  /// Bytes that may have left at any time. 0: with a folder 8 times the budget, else all memory
  /// that the process may have, of which none is taken before it is used.
  std::int64_t away = 0;
  /// Bytes per second of what leaves and of what comes back, on which plans count; 0: 1e9 with a
  /// folder, else 4e9. An emulated link is as slow as stated, a file as fast as its disk.
  double out_speed = 0;
  double back_speed = 0;
  std::string planner = "auto";
  std::chrono::nanoseconds time_limit{};  ///< of planning; 0: the planner's own
  /// 0: none. Else no clock is asked while planning.
  std::int64_t evaluation_limit = 0;
  std::uint64_t seed = 1;
  /// Planned as soon as an iteration is found, on another thread; false: by plan_now alone.
  bool plan_beside = true;
};

struct BlockOptions {
  bool fixed = false;  ///< its address stays until it is freed
};

struct Block {
  std::uint64_t id = 0;  ///< 0: none
  friend bool operator==(const Block&, const Block&) = default;
};

/// Some blocks, for the length of a call: a list in braces, a vector, one block.
class Blocks {
 public:
  Blocks() = default;
  Blocks(std::initializer_list<Block> list) : list_(std::span(list.begin(), list.size())) {}
  Blocks(const Block& one) : list_(&one, 1) {}  // NOLINT(google-explicit-constructor)
  template <class Range>
  requires std::convertible_to<const Range&, std::span<const Block>> Blocks(const Range& range)
      : list_(range) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] std::span<const Block> list() const { return list_; }

 private:
  std::span<const Block> list_;
};

/// What a session did until now.
struct SessionReport {
  std::int64_t planned_iterations = 0;
  std::int64_t planned_ops = 0;
  std::int64_t reactive_ops = 0;     ///< that no plan served
  std::int64_t left_plans = 0;       ///< calls that were not the plan's next
  std::int64_t patterns = 0;         ///< different iterations that were planned
  std::int64_t iteration_calls = 0;  ///< of the iteration that was found last
  std::int64_t moved = 0;            ///< bytes, both ways
  std::int64_t device_peak = 0;      ///< highest byte of the budget that was used
  std::int64_t live_blocks = 0;
  /// Of these, blocks that no op has used for an iteration, or for a thousand ops where none is
  /// known: what is kept for nothing.
  std::int64_t idle_blocks = 0;
  std::int64_t idle_bytes = 0;
  std::chrono::nanoseconds stalled{};  ///< that planned ops waited for copies
  /// Of an iteration: of the plan that was in force last, and as measured on average; 0: none was.
  std::chrono::nanoseconds predicted{}, measured{};
  /// Of the last iteration that could not be planned, or why none was found; empty: nothing failed.
  std::string why_no_plan{};
};

class TP_API Session {
 public:
  explicit Session(const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Its bytes are not set. It may be larger than the budget as long as no op uses it, but for a
  /// fixed one, for which there is room in the budget beside the other fixed ones, or
  /// TP_INFEASIBLE: session.malloc(bytes, {.fixed = true}).
  Block malloc(std::int64_t bytes, BlockOptions options = {});
  void free(Block block);
  [[nodiscard]] std::int64_t size(Block block);
  /// Of a fixed block; else TP_USAGE.
  [[nodiscard]] void* address(Block block);

  /// The blocks of an op, each named once: what it reads, what it writes without reading it (all of
  /// it), what it reads and writes. Pointers in this order.
  std::span<void* const> begin(std::string_view op, Blocks reads, Blocks writes = {},
                               Blocks updates = {});
  void end();

  /// begin, the function, end, also where it throws. `pure`: what it writes depends on what it
  /// reads alone, and a plan may run it again in the same iteration instead of keeping what it
  /// wrote: what it refers to has to live until then. It updates nothing (TP_USAGE). It makes no
  /// call of the session.
  using Function = std::function<void(std::span<void* const>)>;
  void exec(const Function& function, std::string_view op, Blocks reads, Blocks writes = {},
            Blocks updates = {}, bool pure = false);

  /// All of a block, `bytes` long. These are ops like others, "upload" and "download".
  void upload(Block block, const void* data, std::int64_t bytes);
  void download(Block block, void* data, std::int64_t bytes);

  /// Looks for an iteration in the calls until now and plans it before it returns. Whether there is
  /// a plan; if not, see SessionReport::why_no_plan.
  bool plan_now();
  [[nodiscard]] SessionReport report();
  /// The plan that is in force or was last, as the program's plan files; empty: there was none. The
  /// two libraries share nothing, so it is text: tp::Plan::read of libtidepool makes a Plan of it,
  /// for pictures and tables, and so does every command that takes a plan file.
  [[nodiscard]] std::string plan_json();

 private:
  std::unique_ptr<tidepool::api::SessionState> state_;
};

}  // namespace tp
