// Calls of sessions that are drawn, valid ones and others, against a model that knows what each has
// to say and what every block holds. With TIDEPOOL_ATTACKS=1000 there are 10^7.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "base/random.h"
#include "session_fixture.h"
#include "support/attacks.h"

namespace tidepool::testing {
namespace {

constexpr std::int64_t kBudget = 4 << 10;
constexpr std::int64_t kSizes[] = {1, 64, 100, 256, 500, 1000, 1024, 2048};
constexpr std::size_t kMostBlocks = 24;

/// What a pure op does: its output depends on its input alone, and on sizes.
struct PureJob {
  std::int64_t in = 0, out = 0;
  static int32_t run(void* user, void* const* p) {
    const auto& job = *static_cast<const PureJob*>(user);
    const auto* from = static_cast<const unsigned char*>(p[0]);
    auto* to = static_cast<unsigned char*>(p[1]);
    for (std::int64_t i = 0; i < job.out; ++i) {
      to[i] = static_cast<unsigned char>(from[i % job.in] * 7 + i + 1);
    }
    return 0;
  }
};

class SessionFuzzer {
 public:
  SessionFuzzer(std::uint64_t seed, std::int64_t away)
      : random_(seed), owner_(c_session(kBudget, away)), s_(owner_.get()) {}

  void run(std::uint64_t calls) {
    while (calls_ < calls && !::testing::Test::HasFailure()) {
      draw(60) == 0 ? iterations() : any_call();
    }
    while (!live_.empty()) free_block(live_.begin()->first);
    tp_session_info info = TP_INIT(tp_session_info);
    expect(tp_session_report(s_, &info), TP_OK);
    EXPECT_EQ(info.live_blocks, 0);
    EXPECT_LE(info.device_peak, kBudget);
    planned_iterations = info.planned_iterations;
    // All of the budget is there.
    const tp_block block = malloc_block(kBudget);
    op("all", {block}, 0, 1);
  }

  std::int64_t planned_iterations = 0;
  std::map<tp_status, std::int64_t> statuses;

 private:
  struct Model {
    std::vector<unsigned char> bytes;
    bool written = false;
  };

  std::size_t draw(std::size_t below) { return static_cast<std::size_t>(random_.below(below)); }

  void expect(tp_status status, tp_status expected) {
    ++calls_;
    ++statuses[status];
    EXPECT_EQ(status, expected) << "call " << calls_ << ": " << session_error().message;
    EXPECT_EQ(session_error().message[0] == 0, status == TP_OK);
  }

  /// Of a call that brings blocks in. False: it failed, perhaps for want of room for what leaves.
  [[nodiscard]] bool brought(tp_status status, tp_status expected) {
    const bool no_room = expected == TP_OK && status == TP_RUNTIME;
    expect(status, no_room ? TP_RUNTIME : expected);
    if (no_room) {
      EXPECT_THAT(session_error().message, ::testing::HasSubstr("what leaves the device may take"));
    }
    return status == TP_OK;
  }

  tp_block malloc_block(std::int64_t bytes) {
    tp_block block = 0;
    const bool valid = bytes > 0 && bytes <= std::int64_t{1} << 50;
    expect(tp_session_malloc(s_, bytes, &block), valid ? TP_OK : TP_USAGE);
    if (!valid) return 0;
    EXPECT_TRUE(given_.insert(block).second);
    live_[block].bytes.resize(static_cast<std::size_t>(std::min<std::int64_t>(bytes, kBudget)));
    return block;
  }

  void free_block(tp_block block) {
    const bool valid = live_.contains(block);
    expect(tp_session_free_block(s_, block), valid ? TP_OK : TP_USAGE);
    live_.erase(block);
  }

  /// One that is live, mostly.
  tp_block some_block() {
    const std::size_t kind = draw(16);
    if (kind == 0) return random_();
    if (kind == 1) return 0;
    if (kind == 2 && !given_.empty()) return *std::next(given_.begin(), pick(given_.size()));
    if (live_.empty()) return 1;
    return std::next(live_.begin(), pick(live_.size()))->first;
  }
  std::ptrdiff_t pick(std::size_t size) { return static_cast<std::ptrdiff_t>(draw(size)); }

  [[nodiscard]] tp_status expected_of(const std::vector<tp_block>& blocks,
                                      std::size_t reads) const {
    std::int64_t sum = 0;
    std::set<tp_block> seen;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto found = live_.find(blocks[i]);
      if (found == live_.end() || !seen.insert(blocks[i]).second) return TP_USAGE;
      if (i < reads && !found->second.written) return TP_USAGE;
      sum += (static_cast<std::int64_t>(found->second.bytes.size()) + 63) / 64 * 64;
    }
    return sum > kBudget ? TP_INFEASIBLE : TP_OK;
  }

  /// The op looks at what it reads and changes what it writes, in the session and in the model.
  void op(const std::string& name, const std::vector<tp_block>& blocks, std::size_t reads,
          std::size_t writes) {
    const tp_status expected = expected_of(blocks, reads);
    void* const* pointers = nullptr;
    const std::size_t updates = blocks.size() - reads - writes;
    const tp_status status =
        tp_session_begin(s_, name.c_str(), blocks.data(), reads, writes, updates, &pointers);
    if (!brought(status, expected)) return;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      Model& model = live_[blocks[i]];
      const bool writes_only = i >= reads && i < reads + writes;
      if (!writes_only && model.written) {
        EXPECT_EQ(std::memcmp(pointers[i], model.bytes.data(), model.bytes.size()), 0)
            << "call " << calls_ << ", block " << i;
      }
      if (i < reads) continue;
      std::ranges::fill(model.bytes, static_cast<unsigned char>(draw(256)));
      model.bytes[draw(model.bytes.size())] ^= 1;
      model.written = true;
      std::memcpy(pointers[i], model.bytes.data(), model.bytes.size());
    }
    if (draw(20) == 0) inside_an_op();
    expect(tp_session_end(s_), TP_OK);
  }

  /// Every call is refused there, and another thread cannot end the op.
  void inside_an_op() {
    tp_block block = 0;
    int32_t planned = 0;
    void* const* pointers = nullptr;
    expect(tp_session_malloc(s_, 64, &block), TP_USAGE);
    expect(tp_session_free_block(s_, some_block()), TP_USAGE);
    expect(tp_session_begin(s_, "inside", nullptr, 0, 0, 0, &pointers), TP_USAGE);
    expect(tp_session_plan_now(s_, &planned), TP_USAGE);
    if (draw(50) != 0) return;
    std::thread([&] { EXPECT_EQ(tp_session_end(s_), TP_USAGE); }).join();
  }

  void pure_op(tp_block in, tp_block out) {
    const tp_status expected = expected_of({in, out}, 1);
    PureJob job;
    if (expected == TP_OK) job = {size_of(in), size_of(out)};
    PureJob& kept = jobs_.try_emplace({job.in, job.out}, job).first->second;
    const tp_block blocks[] = {in, out};
    const tp_status status = tp_session_exec(s_, "pure", blocks, 1, 1, 0, PureJob::run, &kept, 1);
    if (!brought(status, expected)) return;
    void* const pointers[] = {live_[in].bytes.data(), live_[out].bytes.data()};
    PureJob::run(&kept, pointers);
    live_[out].written = true;
  }
  std::int64_t size_of(tp_block block) {
    return static_cast<std::int64_t>(live_[block].bytes.size());
  }

  void copy_in_or_out() {
    const tp_block block = some_block();
    const auto found = live_.find(block);
    const bool live = found != live_.end();
    std::vector<unsigned char> data(live ? found->second.bytes.size() : 8);
    const bool right = draw(8) != 0;
    const std::int64_t bytes = static_cast<std::int64_t>(data.size()) + (right ? 0 : 1);
    const bool valid = live && right;
    if (draw(2) == 0) {
      std::ranges::fill(data, static_cast<unsigned char>(draw(256)));
      const tp_status status = tp_session_upload(s_, block, data.data(), bytes);
      if (brought(status, valid ? TP_OK : TP_USAGE)) found->second = {data, true};
      return;
    }
    const bool readable = valid && found->second.written;
    const tp_status status = tp_session_download(s_, block, data.data(), bytes);
    if (brought(status, readable ? TP_OK : TP_USAGE)) {
      EXPECT_EQ(data, found->second.bytes) << "call " << calls_;
    }
  }

  void any_op() {
    std::vector<tp_block> blocks(draw(6));
    for (tp_block& block : blocks) block = some_block();
    const std::size_t reads = draw(blocks.size() + 1);
    const std::size_t writes = draw(blocks.size() - reads + 1);
    op("op" + std::to_string(draw(3)), blocks, reads, writes);
  }

  void any_call() {
    switch (draw(12)) {
      case 0:
      case 1:
      case 2:
        if (live_.size() < kMostBlocks) malloc_block(kSizes[draw(std::size(kSizes))]);
        return;
      case 3:
      case 4:
        return free_block(some_block());
      case 5:
        return pure_op(some_block(), some_block());
      case 6:
      case 7:
        return copy_in_or_out();
      case 8:
        return odd_call();
      default:
        return any_op();
    }
  }

  void odd_call() {
    const std::int64_t sizes[] = {0, -1, INT64_MIN, INT64_MAX, (std::int64_t{1} << 50) + 1};
    const char* text = nullptr;
    std::size_t length = 0;
    switch (draw(4)) {
      case 0:
        malloc_block(sizes[draw(std::size(sizes))]);
        return;
      case 1:
        return expect(tp_session_end(s_), TP_USAGE);
      case 2:
        if (draw(50) == 0) expect(tp_session_plan_text(s_, &text, &length), TP_OK);
        return;
      default:
        const tp_block block = some_block();
        int64_t bytes = 0;
        expect(tp_session_size(s_, block, &bytes), live_.contains(block) ? TP_OK : TP_USAGE);
    }
  }

  /// Some blocks come, ops run on them, they go: the same a few times, and perhaps something else
  /// in the middle of one.
  void iterations() {
    const std::size_t count = 2 + draw(4);
    const std::uint64_t seed = random_();
    const std::size_t times = 6 + draw(8);
    for (std::size_t i = 0; i < times; ++i) {
      const Random drawn = std::exchange(random_, Random(seed));
      one_iteration(count);
      random_ = drawn;
      if (i == 4) {
        int32_t planned = 0;
        expect(tp_session_plan_now(s_, &planned), TP_OK);
      }
      if (draw(8) == 0) any_call();
    }
  }

  void one_iteration(std::size_t count) {
    std::vector<tp_block> blocks;
    for (std::size_t i = 0; i < count; ++i) {
      blocks.push_back(malloc_block(kSizes[3 + draw(5)]));
      const std::string name = "f" + std::to_string(i);
      if (i == 0) {
        op(name, {blocks[0]}, 0, 1);
      } else if (draw(2) == 0) {
        pure_op(blocks[i - 1], blocks[i]);
      } else {
        op(name, {blocks[i - 1], blocks[i]}, 1, 1);
      }
    }
    for (std::size_t i = count; i-- > 0;) {
      if (i > 0) op("b" + std::to_string(i), {blocks[i], blocks[i - 1]}, 1, 0);
      free_block(blocks[i]);
    }
  }

  Random random_;
  CSession owner_;
  tp_session* s_;
  std::map<tp_block, Model> live_;
  std::set<tp_block> given_;
  std::map<std::pair<std::int64_t, std::int64_t>, PureJob> jobs_;
  std::uint64_t calls_ = 0;
};

TEST(SessionFuzz, DrawnCallsSayWhatTheyHaveToAndBlocksHoldWhatWasWritten) {
  const std::uint64_t calls = attacks(10) * 10'000;
  constexpr std::uint64_t kOfOneSession = 5'000;
  std::int64_t planned = 0;
  std::map<tp_status, std::int64_t> statuses;
  for (std::uint64_t seed = 0; seed * kOfOneSession < calls && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    // Of every fourth, what leaves finds no room now and then.
    SessionFuzzer fuzzer(seed, seed % 4 == 3 ? 10 << 10 : 4 << 20);
    fuzzer.run(kOfOneSession);
    planned += fuzzer.planned_iterations;
    for (const auto& [status, count] : fuzzer.statuses) statuses[status] += count;
  }
  EXPECT_GT(planned, 0);
  for (const tp_status status : {TP_OK, TP_RUNTIME, TP_USAGE, TP_INFEASIBLE})
    EXPECT_GT(statuses[status], 0);
  RecordProperty("planned", std::to_string(planned));
  RecordProperty("calls", std::to_string(calls));
}

}  // namespace
}  // namespace tidepool::testing
