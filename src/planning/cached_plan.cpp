#include "planning/cached_plan.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
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

Planned planned_from_json(const JsonCursor& file, const Json& settings) {
  const JsonCursor kept = file["settings"];
  for (const auto& [name, value] : settings.items()) {
    if (kept[name].text() != value) kept[name].error("is not what was asked for");
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

struct KeptPlan {
  PlanFile file;
  std::optional<Program> asked_with;  ///< where the sub-batch was chosen
  Planned planned;                    ///< without what `file` has
};

Result<KeptPlan> read_kept(const std::string& text, const std::string& path, const Json& settings) {
  return read_json(text, path, [&](const JsonCursor& json) {
    KeptPlan kept{plan_file_from_json(json), {}, planned_from_json(json, settings)};
    if (const auto asked = json.find("asked_with")) kept.asked_with = program_from_json(*asked);
    return kept;
  });
}

/// Whether the subject is the request's, in the same budget or, where that is null, in whatever.
Result<bool> answers(const KeptPlan& kept, const PlanRequest& request, const Budget* budget) {
  const PlanFile& file = kept.file;
  Profile subject{file.fingerprint, file.program, file.machine};
  if (request.workload != nullptr) {
    // The file has the program of the sub-batch that was chosen, and beside it the one asked with.
    const auto chosen = request.program(file.strategy.sub_batch);
    if (!chosen) return fail(chosen.error());
    if (!kept.asked_with || tidepool::to_json(**chosen) != tidepool::to_json(file.program)) {
      return false;
    }
    subject.program = *kept.asked_with;
  }
  return identity(subject, file.budget(), {}) ==
         identity(request.subject, budget != nullptr ? *budget : file.budget(), {});
}

Result<Planned> read_as(const std::string& text, const std::string& path,
                        const PlanRequest& request, const Json& settings, const Budget* budget) {
  auto kept = read_kept(text, path, settings);
  if (!kept) return fail(kept.error());
  const auto same = answers(*kept, request, budget);
  if (!same) return fail(same.error());
  if (!*same) {
    return fail(ErrorCode::bad_input, fmt::format("{}: is a plan for something else", path));
  }
  PlanFile& file = kept->file;
  Planned& planned = kept->planned;
  planned.lowered.plan = std::move(file.plan);
  planned.lowered.strategy = std::move(file.strategy);
  planned.lowered.iteration_time = file.iteration_time;
  planned.lowered.compute_time = file.compute_time;
  const auto start = std::chrono::steady_clock::now();
  if (auto proof = check(file.program, planned.lowered.plan,
                         check_limits(request.subject.machine, request.budget));
      !proof) {
    return fail(proof.error().code, fmt::format("{}: {}", path, proof.error().message));
  }
  planned.check_time = std::chrono::steady_clock::now() - start;
  return std::move(planned);
}

}  // namespace

Result<Planned> read_planned(const std::string& text, const std::string& path,
                             const PlanRequest& request) {
  return read_as(text, path, request, settings(request), &request.budget);
}

Result<Planned> read_start(const std::string& text, const std::string& path,
                           const PlanRequest& request) {
  return read_as(text, path, request, settings_without_limits(request), nullptr);
}

std::optional<AboutPlan> about_plan(const std::string& path) {
  std::ifstream file(path);
  std::string head;
  std::getline(file, head, '}');
  auto about = read_json(head + "}}", path, [](const JsonCursor& json) {
    const JsonCursor plan = json["about"];
    return AboutPlan{plan["budget"].integer(), plan["needs"].integer(),
                     Nanos{plan["time_ns"].integer()}, plan["repeats"].boolean()};
  });
  if (!about) return std::nullopt;
  return *about;
}

Json identity_of_request(const PlanRequest& request) {
  return identity(request.subject, request.budget, settings(request));
}

std::optional<Json> plan_json(const PlanRequest& request, const Planned& planned) {
  const auto program = request.program(planned.sub_batch());
  if (!program) return std::nullopt;
  const Lowered& lowered = planned.lowered;
  // The head, see about_plan().
  Json json{{"about",
             {{"budget", request.budget.device},
              {"needs", lowered.plan.device_bytes()},
              {"time_ns", lowered.iteration_time.count()},
              {"repeats", request.options.evaluation_limit > 0}}}};
  json.update(tidepool::to_json(
      PlanFile{request.subject.fingerprint, **program, request.subject.machine,
               request.budget.device, request.budget.host, lowered.iteration_time,
               lowered.compute_time, lowered.strategy, lowered.plan, request.budget.others}));
  json["settings"] = settings(request);
  json["remarks"] = remarks(planned);
  if (request.workload != nullptr) {
    json["asked_with"] = tidepool::to_json(request.subject.program);
  }
  return json;
}

}  // namespace tidepool
