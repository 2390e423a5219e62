// Broken invariants: an error of this program, in every build. Whoever calls the library is told.
#pragma once

#include <stdexcept>

namespace tidepool {

/// What must hold does not: the message says what. Nobody but the outermost caller catches it.
class BrokenInvariant : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// `sentence` says what holds, as "the program has one device".
inline void invariant(bool holds, const char* sentence) {
  if (!holds) [[unlikely]] {
    throw BrokenInvariant(sentence);
  }
}

}  // namespace tidepool
