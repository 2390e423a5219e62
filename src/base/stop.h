// Stop: how long work is told to end soon.
#pragma once

#include <concepts>
#include <functional>
#include <utility>

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

  [[nodiscard]] bool requested() const { return asked_ && asked_(); }

 private:
  std::function<bool()> asked_;
};

}  // namespace tidepool
