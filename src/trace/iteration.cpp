#include "trace/iteration.h"

#include <algorithm>
#include <span>

#include "base/random.h"

namespace tidepool {
namespace {

using Token = std::uint64_t;

Token hash_name(std::string_view name) {
  Token hash = 0;
  for (const char c : name) hash = hash_combine(hash, static_cast<unsigned char>(c));
  return hash;
}

/// z[i]: how many tokens from i on equal those from the beginning on.
std::vector<std::size_t> z_function(std::span<const Token> text) {
  std::vector<std::size_t> z(text.size(), 0);
  std::size_t left = 0;
  std::size_t right = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (i < right) z[i] = std::min(right - i, z[i - left]);
    while (i + z[i] < text.size() && text[z[i]] == text[i + z[i]]) ++z[i];
    if (i + z[i] > right) {
      left = i;
      right = i + z[i];
    }
  }
  return z;
}

class Detection {
 public:
  Detection(const Recording& recording, bool accesses_alone)
      : events_(recording.events), accesses_alone_(accesses_alone) {
    const std::size_t n = events_.size();
    const std::vector<TraceBlock>& blocks = recording.blocks;
    std::vector<Token> names;
    for (const std::string& name : recording.ops) names.push_back(hash_name(name));
    std::vector<std::int64_t> previous(blocks.size(), kNone);
    for (std::vector<Token>* tokens : {&token_, &kind_, &by_size_}) tokens->reserve(n);
    live_.reserve(n + 1);
    mallocs_.reserve(n + 1);
    live_.push_back(0);
    mallocs_.push_back(0);
    for (std::size_t i = 0; i < n; ++i) {
      const TraceEvent& event = events_[i];
      const auto b = static_cast<std::size_t>(event.block);
      const bool malloc = event.kind == EventKind::malloc;
      const Token kind =
          hash_combine(static_cast<Token>(event.kind),
                       event.op == kNone ? 0 : 1 + names[static_cast<std::size_t>(event.op)]);
      const auto size = static_cast<Token>(blocks[b].bytes);
      const std::int64_t distance =
          previous[b] == kNone ? 0 : static_cast<std::int64_t>(i) - previous[b];
      token_.push_back(hash_combine(kind, malloc ? size : static_cast<Token>(distance)));
      kind_.push_back(kind);
      by_size_.push_back(hash_combine(kind, size));
      open_.push_back(!malloc && previous[b] == kNone);
      previous[b] = static_cast<std::int64_t>(i);
      const Bytes change = malloc                          ? blocks[b].bytes
                           : event.kind == EventKind::free ? -blocks[b].bytes
                                                           : 0;
      live_.push_back(live_.back() + change);
      mallocs_.push_back(mallocs_.back() + (malloc ? 1 : 0));
    }
  }

  [[nodiscard]] std::optional<Iteration> find() const {
    const std::size_t n = events_.size();
    std::optional<Iteration> best;
    for (const std::size_t end : {n, n - n / 4, n - n / 2}) {
      // Distances need an iteration before the two to be known: a recording that starts with its
      // first iteration and has but two is found by sizes. Either way the events must be equal.
      for (const std::vector<Token>* tokens : {&token_, &by_size_}) {
        const std::size_t period = period_before(std::span(*tokens).first(end));
        if (period == 0) continue;
        const auto found = around(period, end);
        if (!found) continue;
        const bool longer = !best || found->period * found->repeats > best->period * best->repeats;
        if (longer) best = found;
        break;
      }
    }
    return best;
  }

 private:
  [[nodiscard]] bool balanced(std::size_t begin, std::size_t end) const {
    return live_[begin] == live_[end] && (mallocs_[begin] == mallocs_[end]) == accesses_alone_;
  }
  [[nodiscard]] bool may_begin(std::size_t event) const {
    return accesses_alone_ || events_[event].kind == EventKind::malloc;
  }

  /// The period of the end of `tokens` (see Note [Detection]), or 0.
  [[nodiscard]] std::size_t period_before(std::span<const Token> tokens) const {
    const std::vector<Token> reversed(tokens.rbegin(), tokens.rend());
    const std::vector<std::size_t> z = z_function(reversed);
    std::size_t period = 0;
    for (std::size_t p = 1; 2 * p <= tokens.size(); ++p) {
      if (z[p] < p || !balanced(tokens.size() - p, tokens.size())) continue;
      if (period == 0 || 2 * p > period + z[period]) period = p;
    }
    return period;
  }

  [[nodiscard]] bool equal(std::size_t earlier, std::size_t later) const {
    return token_[earlier] == token_[later] || (open_[earlier] && kind_[earlier] == kind_[later]);
  }

  /// All that repeats with this period around the events right before `end`.
  [[nodiscard]] std::optional<Iteration> around(std::size_t period, std::size_t end) const {
    std::size_t begin = end - period;
    while (begin > 0 && equal(begin - 1, begin - 1 + period)) --begin;
    while (end < events_.size() && equal(end - period, end)) ++end;
    while (begin + 2 * period <= end && !may_begin(begin)) ++begin;
    if (begin + 2 * period > end) return std::nullopt;
    if (!balanced(begin, begin + period)) return std::nullopt;
    return Iteration{static_cast<std::int64_t>(begin), static_cast<std::int64_t>(period),
                     static_cast<std::int64_t>((end - begin) / period)};
  }

  const std::vector<TraceEvent>& events_;
  bool accesses_alone_;
  std::vector<Token> token_;
  std::vector<Token> kind_;
  std::vector<Token> by_size_;
  std::vector<bool> open_;   ///< the event's distance is not known
  std::vector<Bytes> live_;  ///< before each event, relative to the start
  std::vector<std::int64_t> mallocs_;
};

}  // namespace

std::optional<Iteration> find_iteration(const Recording& recording) {
  return Detection(recording, false).find();
}

std::optional<Iteration> find_iteration_of_accesses(const Recording& recording) {
  return Detection(recording, true).find();
}

}  // namespace tidepool
