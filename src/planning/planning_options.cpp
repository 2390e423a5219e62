#include "planning/planning_options.h"

#include <array>
#include <string>

namespace tidepool {
namespace {

Result<void> check_size_or_percent(std::string_view text) {
  if (auto size = parse_size_or_percent(text); !size) return fail(size.error());
  return {};
}

}  // namespace

const OptionOf<BudgetSpec>& budget_option() {
  static const OptionOf<BudgetSpec> kOption{
      {.name = "budget",
       .type = OptionType::text,
       .usual = "no limit",
       .help = "device bytes: 400MiB, 2GB, or a percentage of the unlimited peak load such as 60%; "
               "100% leaves no room for gaps between addresses",
       .group = OptionGroup::budget,
       .level = OptionLevel::usual,
       .form = "SIZE",
       .sound = check_size_or_percent},
      [](BudgetSpec& budget, const OptionValue& value) {
        budget.device = parse_size_or_percent(std::get<std::string>(value)).value();
      }};
  return kOption;
}

const OptionOf<BudgetSpec>& host_budget_option() {
  static const OptionOf<BudgetSpec> kOption{{.name = "host_budget",
                                             .type = OptionType::size,
                                             .least = 1,
                                             .usual = "no limit",
                                             .help = "host bytes for what leaves the device",
                                             .group = OptionGroup::budget,
                                             .level = OptionLevel::usual},
                                            [](BudgetSpec& budget, const OptionValue& value) {
                                              budget.host = std::get<std::int64_t>(value);
                                            }};
  return kOption;
}

const OptionOf<PlannerSpec>& planner_option() {
  static const OptionOf<PlannerSpec> kOption{{.name = "planner",
                                              .type = OptionType::text,
                                              .usual = "auto",
                                              .help = "see `tidepool planners`",
                                              .level = OptionLevel::usual},
                                             [](PlannerSpec& planner, const OptionValue& value) {
                                               planner.name = std::get<std::string>(value);
                                             }};
  return kOption;
}

std::span<const OptionOf<PlannerSpec>> search_options() {
  static const std::array<OptionOf<PlannerSpec>, 2> kAll{
      {{{.name = "time_limit",
         .type = OptionType::duration,
         .least = 1,
         .usual = "10 s; auto: 2 s; dqn, dqn-swap: 60 s",
         .help =
             "what a planner that searches may take, and once more the optimality gap, and plans "
             "that a training tries; such as 500ms, 10s or 2min; Ctrl-C ends it early",
         .level = OptionLevel::usual},
        [](PlannerSpec& planner, const OptionValue& value) {
          planner.time_limit = std::get<Nanos>(value);
        }},
       {{.name = "evaluations",
         .type = OptionType::whole_number,
         .least = 1,
         .usual = "no limit",
         .help = "auto, tide, home and random end after so many trials of strategies, however long "
                 "they take, and autoswap goes through all of its own: the same plan on every "
                 "machine; `time_limit` is then for the optimality gap only",
         .level = OptionLevel::usual},
        [](PlannerSpec& planner, const OptionValue& value) {
          planner.evaluations = std::get<std::int64_t>(value);
        }}}};
  return kAll;
}

const OptionOf<CacheSpec>& no_cache_option() {
  static const OptionOf<CacheSpec> kOption{
      {.name = "no_cache",
       .help = "neither use nor keep files in $XDG_CACHE_HOME/tidepool (else ~/.cache/tidepool)",
       .group = OptionGroup::files,
       .level = OptionLevel::usual},
      [](CacheSpec& cache, const OptionValue& value) { cache.off = std::get<bool>(value); }};
  return kOption;
}

const OptionOf<CacheSpec>& reprofile_option() {
  static const OptionOf<CacheSpec> kOption{
      {.name = "reprofile",
       .help = "measure although the cache has a profile, and replace it",
       .group = OptionGroup::files},
      [](CacheSpec& cache, const OptionValue& value) { cache.reprofile = std::get<bool>(value); }};
  return kOption;
}

const OptionOf<CacheSpec>& replan_option() {
  static const OptionOf<CacheSpec> kOption{
      {.name = "replan",
       .help = "plan although the cache has a plan, and replace it; the search of `auto` or `tide` "
               "goes on from that plan and is never slower (`no_cache` begins without)",
       .group = OptionGroup::files},
      [](CacheSpec& cache, const OptionValue& value) { cache.replan = std::get<bool>(value); }};
  return kOption;
}

std::span<const OptionRecord> planning_records() {
  static const std::vector<OptionRecord> kAll = [] {
    std::vector<OptionRecord> all{budget_option().record,    host_budget_option().record,
                                  planner_option().record,   no_cache_option().record,
                                  reprofile_option().record, replan_option().record};
    for (const auto& option : search_options()) all.push_back(option.record);
    return all;
  }();
  return kAll;
}

}  // namespace tidepool
