// Sanitizers look for other things than the tests, and are slow: with them tests try fewer cases.
#pragma once

namespace tidepool::testing {

#ifdef TIDEPOOL_SANITIZED_TESTS
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

/// How much of something a test tries.
template <class T>
constexpr T usual_or(T usual, T under_sanitizers) {
  return kSanitized ? under_sanitizers : usual;
}

}  // namespace tidepool::testing
