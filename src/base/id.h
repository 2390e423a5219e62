// Typed ids: indices into tables. Making an id of one kind from one of another, assigning it or
// comparing with it does not compile. A number computed from an id is an int32_t, of which any kind
// can be made again: sums are not guarded. It costs what an int32_t costs.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

namespace tidepool {

template <class Tag>
class Id;

/// The id or index of nothing: -1, of any kind.
struct NoIndex {
  // NOLINTNEXTLINE(google-explicit-constructor): the index of nothing
  constexpr operator std::int32_t() const { return -1; }
};
inline constexpr NoIndex kNone{};

/// Index into a table of what `Tag` names. It is an int32_t both ways and by itself, so that loops,
/// sums and subscripts read as ever; it is made of, assigned from and compared with no other kind
/// of id. Where an index really is both, `OpId{call.value()}` says so.
template <class Tag>
class Id {
 public:
  Id() = default;  ///< as an int32_t: `OpId{}` is 0
  // NOLINTBEGIN(google-explicit-constructor): see above
  constexpr Id(std::int32_t value) : value_(value) {}
  constexpr Id(NoIndex nothing) : value_(nothing) {}
  constexpr operator std::int32_t() const { return value_; }
  template <class Other>
  Id(Id<Other> other) = delete;
  // NOLINTEND(google-explicit-constructor)
  /// `static_cast<OpId>(ops.size())`, as for an int32_t.
  template <class Integer, std::enable_if_t<std::is_integral_v<Integer>, bool> = true>
  explicit constexpr Id(Integer value) : value_(static_cast<std::int32_t>(value)) {}

  [[nodiscard]] constexpr std::int32_t value() const { return value_; }

  constexpr Id& operator++() {
    ++value_;
    return *this;
  }
  constexpr Id operator++(int) { return value_++; }
  constexpr Id& operator--() {
    --value_;
    return *this;
  }
  constexpr Id operator--(int) { return value_--; }
  constexpr Id& operator+=(std::int32_t by) {
    value_ += by;
    return *this;
  }
  constexpr Id& operator-=(std::int32_t by) {
    value_ -= by;
    return *this;
  }

  /// For nlohmann::json, whose header this one does not need.
  template <class Json>
  friend void to_json(Json& json, const Id& id) {
    json = id.value_;
  }
  template <class Json>
  friend void from_json(const Json& json, Id& id) {
    json.get_to(id.value_);
  }

 private:
  std::int32_t value_;
};

namespace detail {
template <class A, class B>
using OfDifferentKinds = std::enable_if_t<!std::is_same_v<A, B>, bool>;
}

// Ids of one kind compare as the numbers they are.
template <class A, class B>
detail::OfDifferentKinds<A, B> operator==(Id<A> a, Id<B> b) = delete;
template <class A, class B>
detail::OfDifferentKinds<A, B> operator!=(Id<A> a, Id<B> b) = delete;
template <class A, class B>
detail::OfDifferentKinds<A, B> operator<(Id<A> a, Id<B> b) = delete;
template <class A, class B>
detail::OfDifferentKinds<A, B> operator>(Id<A> a, Id<B> b) = delete;
template <class A, class B>
detail::OfDifferentKinds<A, B> operator<=(Id<A> a, Id<B> b) = delete;
template <class A, class B>
detail::OfDifferentKinds<A, B> operator>=(Id<A> a, Id<B> b) = delete;

}  // namespace tidepool

template <class Tag>
struct std::hash<tidepool::Id<Tag>> {
  std::size_t operator()(tidepool::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>{}(id.value());
  }
};

/// Without it they would all be 0.
template <class Tag>
struct std::numeric_limits<tidepool::Id<Tag>> : std::numeric_limits<std::int32_t> {};

template <class Tag, class Char>
struct fmt::formatter<tidepool::Id<Tag>, Char> : fmt::formatter<std::int32_t, Char> {};
