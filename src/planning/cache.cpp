#include "planning/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/random.h"
#include "check/check.h"
#include "planners/settings.h"
#include "planning/cached_plan.h"

namespace tidepool {
namespace {

/// The oldest files go when there are more: a plan of a large network has about a megabyte.
constexpr std::size_t kMostFiles = 128;

Json identity(const Profile& profile) {
  return {{"build", build_identity()},
          {"fingerprint", profile.fingerprint},
          {"machine", to_json(profile.machine)},
          {"program", to_json(without_times(profile.program))}};
}

Result<MeasuredProfile> read_measured(const std::string& text, const std::string& path) {
  auto profile = read_profile(text, path);
  if (!profile) return fail(profile.error());
  const auto how = read_json(text, path, [](const JsonCursor& json) {
    return measurement_from_json(json["measurement"]);
  });
  if (!how) return fail(how.error());
  return MeasuredProfile{std::move(*profile), *how};
}

/// The kinds are kept side by side.
const char* kind_of(const Measurement& how) {
  if (how.fake) return "profile-fake";
  return how.reactive_budget > 0 ? "profile-inside" : "profile";
}

constexpr const char* kTriedPlan = "plan-tried";

void drop_oldest(const std::filesystem::path& folder) {
  std::error_code failed;
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> files;
  // Other processes may add and remove files meanwhile: no call here may throw.
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with("profile-") && !name.starts_with("plan-")) continue;
    std::error_code gone;
    files.emplace_back(entry->last_write_time(gone), entry->path());
  }
  if (files.size() <= kMostFiles) return;
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i < files.size() - kMostFiles; ++i) {
    std::filesystem::remove(files[i].second, failed);
  }
}

}  // namespace

std::filesystem::path cache_folder() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != '\0') {
    return std::filesystem::path(xdg) / "tidepool";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return std::filesystem::path(home) / ".cache" / "tidepool";
  }
  return {};
}

Cache::Cache(const CacheSpec& spec, Observer& observer)
    : folder_(spec.off ? std::filesystem::path() : cache_folder()), observer_(observer) {}

void Cache::open() const {
  if (folder_.empty() || std::exchange(opened_, true)) return;
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  if (auto writable = check_writable((folder_ / "probe").string()); !writable) {
    told_ = true;
    observer_.notice(Notice::cache_unusable, fmt::format("nothing will be kept in the cache: {}",
                                                         writable.error().message));
  }
}

/// The text of a file of the cache, if there is one.
std::optional<std::string> Cache::content(const std::string& path) const {
  std::error_code unknown;
  if (path.empty() || !std::filesystem::exists(path, unknown)) return std::nullopt;
  auto text = read_file(path);
  if (text) return std::move(*text);
  observer_.notice(Notice::cache_file_ignored,
                   fmt::format("cache ignored: {}", text.error().message));
  return std::nullopt;
}

void Cache::ignored(const Error& why) const {
  observer_.notice(Notice::cache_file_ignored,
                   fmt::format("cache file ignored, will be replaced: {}", why.message));
}

std::string Cache::file(const std::string& kind, const Json& identity) const {
  if (folder_.empty()) return {};
  return (folder_ / fmt::format("{}-{:016x}.json", kind, hash_of(identity))).string();
}

bool Cache::write(const std::string& path, const Json& content) const {
  if (path.empty()) return false;
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  if (auto written = write_file(path, content.dump() + "\n"); !written) {
    if (!std::exchange(told_, true)) {
      observer_.notice(Notice::not_kept_in_cache,
                       fmt::format("not kept in the cache: {}", written.error().message));
    }
    return false;
  }
  drop_oldest(folder_);
  return true;
}

std::optional<MeasuredProfile> Cache::profile(const Profile& like, const Measurement& asked) const {
  const Json wanted = identity(like);
  const std::string path = file(kind_of(asked), wanted);
  const auto text = content(path);
  if (!text) return std::nullopt;
  auto found = read_measured(*text, path);
  if (found && identity(found->profile) != wanted) {
    found = fail(ErrorCode::bad_input, fmt::format("{}: is of something else", path));
  }
  if (!found) {
    ignored(found.error());
    return std::nullopt;
  }
  if (!found->how.serves(asked)) return std::nullopt;
  return std::move(*found);
}

void Cache::keep(const MeasuredProfile& measured) const {
  const std::string path = file(kind_of(measured.how), identity(measured.profile));
  Json json = tidepool::to_json(measured.profile);
  json["measurement"] = to_json(measured.how);
  write(path, json);
}

std::optional<std::pair<Planned, std::string>> Cache::plan_of(const std::string& kind,
                                                              const PlanRequest& request) const {
  const auto start = std::chrono::steady_clock::now();
  const std::string path = file(kind, identity_of_request(request));
  auto text = content(path);
  if (!text) return std::nullopt;
  auto planned = read_planned(*text, path, request);
  if (!planned) {
    ignored(planned.error());
    return std::nullopt;
  }
  planned->plan_time = std::chrono::steady_clock::now() - start - planned->check_time;
  return std::pair(std::move(*planned), std::move(*text));
}

std::optional<Planned> Cache::plan(const PlanRequest& request) const {
  auto found = plan_of(kind_of(request), request);
  if (!found) return std::nullopt;
  return std::move(found->first);
}

/// Plans for the request in whatever budget and however far the search might go: by their files.
std::map<std::string, AboutPlan> Cache::of_any_limits(const PlanRequest& request) const {
  const std::string kind = kind_of(request);
  std::map<std::string, AboutPlan> plans;
  std::error_code failed;
  if (folder_.empty()) return plans;
  for (std::filesystem::directory_iterator entry(folder_, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (!entry->path().filename().string().starts_with(kind + "-")) continue;
    const std::string path = entry->path().string();
    if (const auto about = about_plan(path)) plans.emplace(path, *about);
  }
  return plans;
}

std::optional<Planned> Cache::fastest_that_fits(const PlanRequest& request) const {
  std::vector<std::pair<Nanos, std::string>> by_time;
  for (const auto& [path, about] : of_any_limits(request)) {
    if (about.needs <= request.budget.device) by_time.emplace_back(about.time, path);
  }
  std::ranges::sort(by_time);
  for (const auto& [time, path] : by_time) {
    const auto text = content(path);
    if (!text) continue;
    if (auto planned = read_start(*text, path, request)) return std::move(*planned);
  }
  return std::nullopt;
}

void Cache::drop_slower(const PlanRequest& request, const Planned& planned) const {
  for (const auto& [path, about] : of_any_limits(request)) {
    if (planned.lowered.plan.device_bytes() > about.budget || about.repeats) continue;
    if (about.time <= planned.lowered.iteration_time) continue;
    std::error_code failed;
    std::filesystem::remove(path, failed);
  }
}

void Cache::keep(const PlanRequest& request, const Planned& planned) const {
  const auto content = plan_json(request, planned);
  if (content) write(file(kind_of(request), identity_of_request(request)), *content);
}

std::optional<std::pair<Planned, TrialFigures>> Cache::tried(const PlanRequest& request) const {
  auto found = plan_of(kTriedPlan, request);
  if (!found) return std::nullopt;
  const std::string path = file(kTriedPlan, identity_of_request(request));
  const auto figures = read_json(found->second, path, [](const JsonCursor& json) {
    return trial_figures_from_json(json["trial"]);
  });
  if (!figures) {
    ignored(figures.error());
    return std::nullopt;
  }
  return std::pair(std::move(found->first), *figures);
}

bool Cache::keep_tried(const PlanRequest& request, const Planned& planned,
                       const TrialFigures& figures) const {
  auto content = plan_json(request, planned);
  if (!content) return false;
  (*content)["trial"] = to_json(figures);
  return write(file(kTriedPlan, identity_of_request(request)), *content);
}

Program without_times(Program program) {
  for (Op& op : program.ops) {
    for (Algorithm& algorithm : op.algorithms) algorithm.time = Nanos{0};
  }
  return program;
}

}  // namespace tidepool
