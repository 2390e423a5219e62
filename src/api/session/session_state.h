// What is behind both interfaces of sessions, C and C++.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "session/session.h"
#include "tidepool/session.h"

namespace tidepool::api {

/// As of a caller's options. Throws SessionError.
SessionSpec session_spec(const tp::SessionOptions& options);

/// What an exception of a session means. Called in a handler.
Error session_exception_error();

inline BlockHandle handle_of(std::uint64_t id) { return BlockHandle::of(id); }
inline BlockHandle handle_of(tp::Block block) { return BlockHandle::of(block.id); }
inline std::uint64_t id_of(BlockHandle handle) { return handle.id(); }

/// The blocks of one op, in memory that a thread has for its calls.
class OpBlocks {
 public:
  /// `Name`: a tp::Block or its id.
  template <class Name>
  OpBlocks(std::span<const Name> reads, std::span<const Name> writes,
           std::span<const Name> updates) {
    uses_.clear();
    for (const Name name : reads) uses_.push_back({handle_of(name), BlockUse::read});
    for (const Name name : writes) uses_.push_back({handle_of(name), BlockUse::write});
    for (const Name name : updates) uses_.push_back({handle_of(name), BlockUse::update});
  }
  [[nodiscard]] std::span<const Session::Use> uses() const { return uses_; }

 private:
  std::vector<Session::Use>& uses_ = of_this_thread();
  static std::vector<Session::Use>& of_this_thread();
};

/// A Session with what callers are handed. Throws SessionError, DeviceError.
class SessionState {
 public:
  using Function = std::function<void(std::span<void* const>)>;

  explicit SessionState(const tp::SessionOptions& options) : session_(session_spec(options)) {}
  /// An op that this thread has begun ends.
  ~SessionState();
  SessionState(const SessionState&) = delete;
  SessionState& operator=(const SessionState&) = delete;

  [[nodiscard]] Session& session() { return session_; }
  std::span<void* const> begin(std::string_view op, const OpBlocks& blocks);
  void exec(std::string_view op, const OpBlocks& blocks, bool pure, const Function& function);
  void upload(BlockHandle block, const void* data, std::int64_t bytes);
  void download(BlockHandle block, void* data, std::int64_t bytes);
  /// Empty: there is none.
  [[nodiscard]] std::string plan_text();

 private:
  void require_size(BlockHandle block, std::int64_t bytes, const char* call);

  Session session_;
  std::vector<void*> pointers_;  ///< of the op that runs, whose thread has the session to itself
};

}  // namespace tidepool::api
