// What a program asked of its Session, call by call, and where an iteration is in it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "trace/iteration.h"

namespace tidepool {

enum class CallKind : std::uint8_t { malloc, free, op };

/// One life of a block, by number: blocks that are allocated later have larger ones.
using LifeId = Id<struct LifeTag>;

/// Equal for calls that may be the same one of two iterations: of a malloc or free its bytes, of an
/// op its name and the bytes of each of its blocks.
using CallToken = std::uint64_t;

/// The blocks of an op: those it reads, then those it overwrites, then those it updates.
struct OpShape {
  std::int32_t reads = 0;
  std::int32_t writes = 0;
  std::int32_t updates = 0;
  bool pure = false;  ///< may run again
  friend bool operator==(const OpShape&, const OpShape&) = default;
};

struct LoggedCall {
  CallKind kind = CallKind::malloc;
  CallToken token = 0;
  std::int32_t name = kNone;  ///< of an op: index into CallLog::names
  OpShape shape;              ///< of an op
  std::size_t first = 0;      ///< index into CallLog::lives
  std::int32_t count = 0;     ///< blocks
  Nanos time{};               ///< of an op: it, and what the program did since the one before
};

class CallLog {
 public:
  /// Names are kept when calls are forgotten.
  std::int32_t intern(std::string_view name);
  [[nodiscard]] const std::string& name(std::int32_t index) const {
    return names_[static_cast<std::size_t>(index)];
  }

  struct Use {
    LifeId life = kNone;
    Bytes bytes = 0;
    bool fixed = false;  ///< the block has one address until it is freed
  };
  void add_malloc(const Use& block);
  void add_free(const Use& block);
  void add_op(std::int32_t name, OpShape shape, std::span<const Use> uses);
  /// The same where the op's token is known.
  void add_op(std::int32_t name, OpShape shape, std::span<const Use> uses, CallToken token);
  /// Of the op that was added last.
  void set_time(Nanos time) { calls_.back().time = time; }

  [[nodiscard]] std::span<const LoggedCall> calls() const { return calls_; }
  [[nodiscard]] std::span<const LifeId> lives(const LoggedCall& call) const {
    return std::span(lives_).subspan(call.first, static_cast<std::size_t>(call.count));
  }
  /// The bytes of each of these.
  [[nodiscard]] std::span<const Bytes> bytes(const LoggedCall& call) const {
    return std::span(bytes_).subspan(call.first, static_cast<std::size_t>(call.count));
  }
  /// Whether each of these has a fixed address.
  [[nodiscard]] std::span<const char> fixed(const LoggedCall& call) const {
    return std::span(fixed_).subspan(call.first, static_cast<std::size_t>(call.count));
  }
  /// Forgets what came before the last calls.
  void keep_last(std::size_t calls);

  /// In calls. Found from the calls alone, in time linear in them (trace/iteration.h). Where blocks
  /// that stay change their roles from one iteration to the next, as two buffers do that are
  /// swapped, it is as many iterations as give them back. One of ops alone is believed where they
  /// fill most of the log and use the same blocks: inner loops of others look like it.
  struct Period {
    std::size_t start = 0;
    std::size_t calls = 0;
    std::size_t repeats = 0;
  };
  [[nodiscard]] std::optional<Period> find_period() const { return find_period(calls_.size()); }
  /// The same of the last calls alone.
  [[nodiscard]] std::optional<Period> find_period(std::size_t last) const;

  static CallToken malloc_token(Bytes bytes, bool fixed = false);
  static CallToken free_token(Bytes bytes);
  static CallToken op_token(std::uint64_t name_hash, OpShape shape, std::span<const Use> uses);
  static std::uint64_t hash(std::string_view name);

 private:
  void add_block(const Use& block);
  [[nodiscard]] std::optional<Period> in_equal_roles(Period period, std::size_t first) const;
  [[nodiscard]] Recording recording(std::size_t first,
                                    std::vector<std::size_t>& call_of_event) const;

  std::vector<std::string> names_;
  std::vector<std::uint64_t> name_hashes_;
  std::unordered_map<std::string_view, std::int32_t> index_;  ///< into names_, which do not move
  std::vector<LoggedCall> calls_;
  std::vector<LifeId> lives_;
  std::vector<Bytes> bytes_;  ///< of each of these lives
  std::vector<char> fixed_;   ///< the same
};

}  // namespace tidepool
