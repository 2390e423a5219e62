#include "budget_range.h"

#include <fmt/format.h>

#include "base/bytes.h"

namespace tidepool::cli {
namespace {

constexpr int kSteps = 4;
constexpr double kMostBudgets = 1000;

/// Percent, or bytes.
struct Quantity {
  bool percent = false;
  double value = 0;
};

Result<Quantity> parse(const std::string& text) {
  const auto size = parse_size_or_percent(text);
  if (!size) return fail(size.error());
  if (size->percent >= 0) return Quantity{true, size->percent};
  return Quantity{false, static_cast<double>(size->bytes)};
}

std::string to_text(const Quantity& q) {
  return q.percent ? fmt::format("{:.6g}%", q.value) : fmt::format("{:.0f}", q.value);
}

tl::unexpected<Error> wrong(const std::string& text, const char* why) {
  return fail(ErrorCode::usage,
              fmt::format("'{}' is no range of budgets: {}; expected one such as 30%..60% or "
                          "200MiB..400MiB:50MiB",
                          text, why));
}

}  // namespace

Result<std::vector<std::string>> budgets_of_range(const std::string& text) {
  const auto dots = text.find("..");
  if (dots == std::string::npos) return std::vector<std::string>{text};
  const auto colon = text.find(':', dots);
  const auto from = parse(text.substr(0, dots));
  if (!from) return fail(from.error());
  const std::size_t end = colon == std::string::npos ? text.size() : colon;
  const auto to = parse(text.substr(dots + 2, end - dots - 2));
  if (!to) return fail(to.error());
  Quantity step{from->percent, (to->value - from->value) / kSteps};
  if (colon != std::string::npos) {
    const auto given = parse(text.substr(colon + 1));
    if (!given) return fail(given.error());
    step = *given;
  }
  if (from->percent != to->percent || from->percent != step.percent) {
    return wrong(text, "percentages and sizes do not mix");
  }
  if (from->value >= to->value) return wrong(text, "it has to begin with the smaller one");
  if (step.value <= 0) return wrong(text, "its step is 0");
  if ((to->value - from->value) / step.value > kMostBudgets) {
    return wrong(text, "it has more than 1000 budgets");
  }
  std::vector<std::string> budgets;
  const double close = to->value - 1e-6 * step.value;
  for (int i = 0; from->value + i * step.value < close; ++i) {
    budgets.push_back(to_text({from->percent, from->value + i * step.value}));
  }
  budgets.push_back(to_text(*to));
  return budgets;
}

}  // namespace tidepool::cli
