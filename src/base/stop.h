// Stop: how long work is told to end soon, and how much memory it may take until then.
#pragma once

#include <concepts>
#include <functional>
#include <limits>
#include <utility>

#include "base/bytes.h"

namespace tidepool {

/// Asked by long work every few milliseconds, by several threads; once it says yes it goes on
/// saying so. Whoever stops keeps what it has found so far. Made of any callable; by default never.
class Stop {
 public:
  Stop() = default;
  template <std::predicate Callable>
  requires(!std::same_as<std::remove_cvref_t<Callable>, Stop>)
      // A callable is a Stop, in options and arguments. NOLINTNEXTLINE(*-explicit-*,*-forwarding-*)
      Stop(Callable&& asked)
      : asked_(std::forward<Callable>(asked)) {}

  /// Of work that takes memory of its own, of which `room` is left.
  Stop(std::function<bool()> asked, std::function<Bytes()> room)
      : asked_(std::move(asked)), room_(std::move(room)) {}

  [[nodiscard]] bool requested() const { return asked_ && asked_(); }
  /// What takes more at once than this, without asking in between, is not begun.
  [[nodiscard]] Bytes room() const { return room_ ? room_() : std::numeric_limits<Bytes>::max(); }
  /// Also where this says so.
  [[nodiscard]] Stop or_when(std::function<bool()> says_so) const {
    return {
        [asked = asked_, says_so = std::move(says_so)] { return (asked && asked()) || says_so(); },
        room_};
  }

 private:
  std::function<bool()> asked_;
  std::function<Bytes()> room_;
};

}  // namespace tidepool
