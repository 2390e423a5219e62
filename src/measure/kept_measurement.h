// What was measured of a machine and is kept between runs, beside profiles and plans.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "planning/planning_spec.h"

namespace tidepool {

/// What is kept of `subject`; empty: nothing is.
std::filesystem::path kept_file(std::string_view kind, const std::string& subject,
                                const CacheSpec& cache);

/// Nothing where there is no such file, one that is older than `age`, damaged, or of an older
/// version: what it held is measured anew and replaced.
template <class Read>
auto known(const std::filesystem::path& file, const Read& read,
           std::optional<std::chrono::hours> age = std::nullopt)
    -> std::optional<std::invoke_result_t<Read, const JsonCursor&>> {
  std::error_code unknown;
  if (file.empty() || !std::filesystem::exists(file, unknown)) return std::nullopt;
  const auto written = std::filesystem::last_write_time(file, unknown);
  if (age && std::filesystem::file_time_type::clock::now() - written > *age) return std::nullopt;
  const auto text = read_file(file.string());
  if (!text) return std::nullopt;
  auto content = read_json(*text, file.string(), read);
  if (!content) return std::nullopt;
  return std::move(*content);
}

/// Best effort.
void remember(const std::filesystem::path& file, const std::string& subject, Json content);

}  // namespace tidepool
