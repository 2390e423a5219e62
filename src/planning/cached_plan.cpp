#include "planning/cached_plan.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "base/random.h"
#include "check/check.h"
#include "lower/plan_file.h"
#include "planners/settings.h"
#include "planning/make_plan.h"

namespace tidepool {

std::string build_identity() {
  std::error_code failed;
  const std::filesystem::path self = "/proc/self/exe";
  const auto size = std::filesystem::file_size(self, failed);
  if (failed) return "unknown";
  const auto time = std::filesystem::last_write_time(self, failed).time_since_epoch().count();
  return failed ? "unknown" : fmt::format("{}-{}", size, time);
}

Json settings(const PlanRequest& request) {
  Json json = settings_without_limits(request);
  json["time_limit"] = format_time(request.options.time_limit);
  json["evaluations"] = fmt::format("{}", request.options.evaluation_limit);
  return json;
}

Json settings_without_limits(const PlanRequest& request) {
  return {{"build", build_identity()},
          {"planner", request.planner},
          {"seed", fmt::format("{}", request.options.seed)},
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

std::uint64_t hash_of(const Json& identity) {
  std::uint64_t hash = 0;
  for (const char c : identity.dump()) hash = hash_combine(hash, static_cast<unsigned char>(c));
  return hash;
}

std::string kind_of(const PlanRequest& request) {
  return fmt::format("plan-{:016x}", hash_of(identity(request.subject, Budget{},
                                                      settings_without_limits(request))));
}

namespace {

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

/// Whether a file is of what was asked for, whose identity with the budget of the file, or that of
/// the request, is `wanted`. Of the settings nothing is said.
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
  return identity(subject, file.budget(), wanted["settings"]) == wanted;
}

}  // namespace

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

Json identity_of_request(const PlanRequest& request) {
  return identity(request.subject, request.budget, settings(request));
}

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

}  // namespace tidepool
