#include "nn/learning_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

namespace tidepool::nn {
namespace {

constexpr std::string_view kForms =
    "0.1, step:0.1,30,60,gamma=0.1, cosine:0.1 or warmup:5+cosine:0.1";

tl::unexpected<Error> refuse(std::string_view text, const std::string& why) {
  return fail(ErrorCode::usage, fmt::format("learning rate '{}': {}", text, why));
}

/// All of `text`, a positive finite number.
std::optional<double> positive(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value) || !(value > 0)) return {};
  return value;
}

/// The text before `separator`, which is removed with it; all of it where there is none.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = std::min(text.find(separator), text.size());
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return head;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// What follows the base rate: "30", "gamma=0.1", "epochs=90".
Result<void> read_part(LearningRate& rate, std::string_view part, std::string_view whole) {
  using Shape = LearningRate::Shape;
  std::string_view number = part;
  double* option = nullptr;
  if (rate.shape == Shape::step && take_prefix(number, "gamma=")) option = &rate.gamma;
  if (rate.shape == Shape::cosine && take_prefix(number, "epochs=")) option = &rate.epochs;
  const auto value = positive(number);
  if (option == nullptr && rate.shape == Shape::cosine) {
    return refuse(whole, fmt::format("cosine takes a rate and epochs=..., not '{}'; write "
                                     "cosine:0.1 or cosine:0.1,epochs=90",
                                     part));
  }
  if (!value) {
    return refuse(whole, fmt::format("'{}' is not a positive number{}", number,
                                     option != nullptr ? "" : " of epochs"));
  }
  if (option != nullptr) {
    *option = *value;
    return {};
  }
  if (!rate.milestones.empty() && rate.milestones.back() >= *value) {
    return refuse(whole, fmt::format("milestone {} does not come after {}; write them in order, "
                                     "as in step:0.1,30,60",
                                     *value, rate.milestones.back()));
  }
  rate.milestones.push_back(*value);
  return {};
}

Result<LearningRate> parse_shape(std::string_view text, std::string_view whole) {
  LearningRate rate;
  if (take_prefix(text, "step:")) {
    rate.shape = LearningRate::Shape::step;
  } else if (take_prefix(text, "cosine:")) {
    rate.shape = LearningRate::Shape::cosine;
  } else if (text.starts_with("warmup:")) {
    return refuse(whole, "one warm-up is enough; write warmup:5+cosine:0.1");
  } else if (text.find_first_of(":,") != std::string_view::npos) {
    return refuse(whole, fmt::format("'{}' is not a schedule; write {}", text, kForms));
  }
  if (text.ends_with(',')) return refuse(whole, "there is nothing after the last comma");
  const std::string_view base = take_until(text, ',');
  const auto value = positive(base);
  if (!value) {
    return refuse(whole, fmt::format("'{}' is not a positive number; write {}", base, kForms));
  }
  rate.base = *value;
  while (!text.empty()) {
    if (auto read = read_part(rate, take_until(text, ','), whole); !read) {
      return fail(read.error());
    }
  }
  if (rate.shape == LearningRate::Shape::step && rate.milestones.empty()) {
    return refuse(whole, "step needs at least one milestone in epochs, as in step:0.1,30,60");
  }
  return rate;
}

}  // namespace

Result<LearningRate> parse_learning_rate(std::string_view text) {
  std::string_view rest = text;
  if (!take_prefix(rest, "warmup:")) return parse_shape(text, text);
  if (rest.find('+') == std::string_view::npos) {
    return refuse(text, "a warm-up needs a schedule to lead to, as in warmup:5+cosine:0.1");
  }
  const std::string_view epochs = take_until(rest, '+');
  const auto value = positive(epochs);
  if (!value) {
    return refuse(text, fmt::format("'{}' is not a positive number of epochs", epochs));
  }
  auto rate = parse_shape(rest, text);
  if (rate) rate->warmup_epochs = *value;
  return rate;
}

float LearningRate::at(std::int64_t iteration, const TrainingLength& length) const {
  const auto i = static_cast<double>(iteration);
  const auto per_epoch = static_cast<double>(length.iterations_per_epoch);
  double rate = base;
  if (shape == Shape::step) {
    for (const double milestone : milestones) {
      if (i >= milestone * per_epoch) rate *= gamma;
    }
  } else if (shape == Shape::cosine) {
    const double end = epochs > 0 ? epochs * per_epoch : static_cast<double>(length.iterations);
    rate *= (1 + std::cos(std::numbers::pi * std::min(1.0, i / end))) / 2;
  }
  const double warmup = warmup_epochs * per_epoch;
  if (i + 1 < warmup) rate *= (i + 1) / warmup;
  return static_cast<float>(rate);
}

}  // namespace tidepool::nn
