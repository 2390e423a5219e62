#include "planning/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/random.h"
#include "check/check.h"
#include "lower/plan_file.h"
#include "planners/settings.h"
#include "planning/make_plan.h"

namespace tidepool {
namespace {

/// The oldest files go when there are more: a plan of a large network has about a megabyte.
constexpr std::size_t kMostFiles = 128;

/// Another build may plan otherwise and have other kernels; no name or version says so.
std::string build_identity() {
  std::error_code failed;
  const std::filesystem::path self = "/proc/self/exe";
  const auto size = std::filesystem::file_size(self, failed);
  if (failed) return "unknown";
  const auto time = std::filesystem::last_write_time(self, failed).time_since_epoch().count();
  return failed ? "unknown" : fmt::format("{}-{}", size, time);
}

Json identity(const Profile& profile) {
  return {{"build", build_identity()},
          {"fingerprint", profile.fingerprint},
          {"machine", to_json(profile.machine)},
          {"program", to_json(without_times(profile.program))}};
}

Json settings(const PlanRequest& request) {
  return {{"build", build_identity()},
          {"planner", request.planner},
          {"seed", fmt::format("{}", request.options.seed)},
          {"time_limit", format_time(request.options.time_limit)},
          {"evaluations", fmt::format("{}", request.options.evaluation_limit)},
          {"options", identity_of(request.options.values)},
          {"algorithms", std::string(to_text(request.options.algorithms))},
          {"algorithm_choice", request.options.may.algorithms ? "planner" : "policy"},
          {"decides", fmt::format("{}{}", request.options.may.swap ? "swap" : "",
                                  request.options.may.recompute ? " recompute" : "")},
          {"sub_batch", request.workload == nullptr ? "given" : "chosen"}};
}

Json identity(const Profile& subject, const Budget& budget, const Json& settings) {
  Json json{{"fingerprint", subject.fingerprint},  {"device_budget", budget.device},
            {"host_budget", budget.host},          {"machine", to_json(subject.machine)},
            {"program", to_json(subject.program)}, {"settings", settings}};
  if (!budget.others.empty()) json["other_budgets"] = to_json(budget.others);
  return json;
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

/// What the plan file does not say about how its plan came about.
Json remarks(const Planned& planned) {
  const Lowered& lowered = planned.lowered;
  return {{"peak_load", lowered.peak_load}, {"load_limit", lowered.load_limit},
          {"packer", lowered.packer},       {"added_waits", lowered.added_waits},
          {"streaming", lowered.streaming}, {"notes", planned.notes}};
}

Planned planned_from_json(const JsonCursor& file, const Json& wanted) {
  const JsonCursor settings = file["settings"];
  for (const auto& [name, value] : wanted["settings"].items()) {
    if (settings[name].text() != value) settings[name].error("is not what was asked for");
  }
  const JsonCursor json = file["remarks"];
  Planned planned;
  Lowered& lowered = planned.lowered;
  lowered.peak_load = json["peak_load"].integer();
  lowered.load_limit = json["load_limit"].integer();
  lowered.packer = json["packer"].text();
  lowered.added_waits = static_cast<int>(json["added_waits"].integer(0, 1 << 30));
  lowered.streaming = json["streaming"].boolean();
  const JsonCursor notes = json["notes"];
  for (std::size_t i = 0; i < notes.size(); ++i) planned.notes.push_back(notes.at(i).text());
  return planned;
}

/// Whether a file's content is the answer to what was asked for.
Result<bool> answers(const PlanFile& file, const std::string& text, const std::string& path,
                     const PlanRequest& request, const Json& wanted) {
  Profile subject{file.fingerprint, file.program, file.machine};
  if (request.workload != nullptr) {
    // The file has the program of the sub-batch that was chosen, and beside it the one asked with.
    const auto chosen = request.program(file.strategy.sub_batch);
    if (!chosen) return fail(chosen.error());
    if (tidepool::to_json(**chosen) != tidepool::to_json(file.program)) return false;
    auto asked = read_json(
        text, path, [](const JsonCursor& json) { return program_from_json(json["asked_with"]); });
    if (!asked) return fail(asked.error());
    subject.program = std::move(*asked);
  }
  return identity(subject, file.budget(), settings(request)) == wanted;
}

Result<Planned> read_planned(const std::string& text, const std::string& path,
                             const PlanRequest& request, const Json& wanted) {
  auto file = read_plan(text, path);
  if (!file) return fail(file.error());
  auto planned = read_json(text, path,
                           [&](const JsonCursor& json) { return planned_from_json(json, wanted); });
  if (!planned) return fail(planned.error());
  const auto same = answers(*file, text, path, request, wanted);
  if (!same) return fail(same.error());
  if (!*same) {
    return fail(ErrorCode::bad_input, fmt::format("{}: is a plan for something else", path));
  }
  planned->lowered.plan = std::move(file->plan);
  planned->lowered.strategy = std::move(file->strategy);
  planned->lowered.iteration_time = file->iteration_time;
  planned->lowered.compute_time = file->compute_time;
  const auto start = std::chrono::steady_clock::now();
  if (auto proof = check(file->program, planned->lowered.plan,
                         check_limits(request.subject.machine, request.budget));
      !proof) {
    return fail(proof.error().code, fmt::format("{}: {}", path, proof.error().message));
  }
  planned->check_time = std::chrono::steady_clock::now() - start;
  return planned;
}

constexpr const char* kPlan = "plan";
constexpr const char* kTriedPlan = "plan-tried";

Json identity_of_request(const PlanRequest& request) {
  return identity(request.subject, request.budget, settings(request));
}

/// The file of a plan; nothing where the request has no program for it.
std::optional<Json> plan_json(const PlanRequest& request, const Planned& planned) {
  const auto program = request.program(planned.sub_batch());
  if (!program) return std::nullopt;
  const Lowered& lowered = planned.lowered;
  Json json = tidepool::to_json(
      PlanFile{request.subject.fingerprint, **program, request.subject.machine,
               request.budget.device, request.budget.host, lowered.iteration_time,
               lowered.compute_time, lowered.strategy, lowered.plan, request.budget.others});
  json["settings"] = settings(request);
  json["remarks"] = remarks(planned);
  if (request.workload != nullptr) {
    json["asked_with"] = tidepool::to_json(request.subject.program);
  }
  return json;
}

Json to_json(const TrialFigures& figures) {
  return {{"predicted_ns", figures.predicted.count()},
          {"unlimited_ns", figures.unlimited.count()},
          {"measured_ns", figures.measured.count()},
          {"iterations", figures.iterations}};
}

TrialFigures figures_from_json(const JsonCursor& json) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  return {Nanos{json["predicted_ns"].integer(0, kMost)},
          Nanos{json["unlimited_ns"].integer(0, kMost)},
          Nanos{json["measured_ns"].integer(0, kMost)}, json["iterations"].integer(0, kMost)};
}

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

std::string Cache::file(const char* kind, const Json& identity) const {
  if (folder_.empty()) return {};
  std::uint64_t hash = 0;
  for (const char c : identity.dump()) hash = hash_combine(hash, static_cast<unsigned char>(c));
  return (folder_ / fmt::format("{}-{:016x}.json", kind, hash)).string();
}

void Cache::write(const std::string& path, const Json& content) const {
  if (path.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  if (auto written = write_file(path, content.dump() + "\n"); !written) {
    if (!std::exchange(told_, true)) {
      observer_.notice(Notice::not_kept_in_cache,
                       fmt::format("not kept in the cache: {}", written.error().message));
    }
    return;
  }
  drop_oldest(folder_);
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

std::optional<std::pair<Planned, std::string>> Cache::plan_of(const char* kind,
                                                              const PlanRequest& request) const {
  const auto start = std::chrono::steady_clock::now();
  const Json wanted = identity_of_request(request);
  const std::string path = file(kind, wanted);
  auto text = content(path);
  if (!text) return std::nullopt;
  auto planned = read_planned(*text, path, request, wanted);
  if (!planned) {
    ignored(planned.error());
    return std::nullopt;
  }
  planned->plan_time = std::chrono::steady_clock::now() - start - planned->check_time;
  return std::pair(std::move(*planned), std::move(*text));
}

std::optional<Planned> Cache::plan(const PlanRequest& request) const {
  auto found = plan_of(kPlan, request);
  if (!found) return std::nullopt;
  return std::move(found->first);
}

void Cache::keep(const PlanRequest& request, const Planned& planned) const {
  const auto content = plan_json(request, planned);
  if (content) write(file(kPlan, identity_of_request(request)), *content);
}

std::optional<std::pair<Planned, TrialFigures>> Cache::tried(const PlanRequest& request) const {
  auto found = plan_of(kTriedPlan, request);
  if (!found) return std::nullopt;
  const auto figures = read_json(
      found->second, "", [](const JsonCursor& json) { return figures_from_json(json["trial"]); });
  if (!figures) {
    ignored(figures.error());
    return std::nullopt;
  }
  return std::pair(std::move(found->first), *figures);
}

void Cache::keep_tried(const PlanRequest& request, const Planned& planned,
                       const TrialFigures& figures) const {
  auto content = plan_json(request, planned);
  if (!content) return;
  (*content)["trial"] = to_json(figures);
  write(file(kTriedPlan, identity_of_request(request)), *content);
}

Program without_times(Program program) {
  for (Op& op : program.ops) {
    for (Algorithm& algorithm : op.algorithms) algorithm.time = Nanos{0};
  }
  return program;
}

}  // namespace tidepool
