// The C interface: plans.
#include <fmt/format.h>

#include "api/c_handles.h"
#include "api/called.h"
#include "api/guard.h"
#include "base/file.h"

namespace api = tidepool::api;
using tidepool::Error;
using tidepool::ErrorCode;
using tidepool::Nanos;

namespace {

constexpr std::uint32_t kAllMay = TP_SWAP | TP_RECOMPUTE | TP_ALGORITHMS;

void apply_options(const tp_options& options, api::PlanAsk& ask) {
  if (options.planner != nullptr) ask.planner = options.planner;
  if (options.seed != 0) ask.seed = options.seed;
  ask.time_limit = Nanos{options.time_limit};
  ask.evaluation_limit = options.evaluation_limit;
  const std::uint32_t may = options.may == 0 ? TP_SWAP | TP_RECOMPUTE : options.may;
  ask.swap = (may & TP_SWAP) != 0;
  ask.recompute = (may & TP_RECOMPUTE) != 0;
  ask.algorithms = (may & TP_ALGORITHMS) != 0;
  ask.prove_gap = options.prove_gap != 0;
  if (options.settings != nullptr) ask.settings = options.settings;
  if (options.stop != nullptr) {
    ask.stop = [flag = options.stop] { return api::is_raised(flag); };
  }
}

tp_status make_plan_handle(const tp_program& program, const tp_machine& machine,
                           const tp_budget& budget, const tp_options& options, tp_plan** out) {
  if ((options.may & ~kAllMay) != 0) {
    return api::remember(
        {ErrorCode::usage, fmt::format("may has bits that are none: {:#x}", options.may), {}});
  }
  api::PlanAsk ask;
  apply_options(options, ask);
  ask.device = budget.device;
  ask.host = budget.host;
  ask.addresses_count = budget.addresses_do_not_count == 0;
  api::CalledProgress progress([&options](double fraction, const std::string& what) {
    options.progress(options.user, fraction, what.c_str());
  });
  if (options.progress != nullptr) ask.progress = &progress;
  auto answer = api::ask_plan(program.data->program, machine.data->machine, ask);
  if (!answer) {
    return api::remember(answer.error(), api::op_that_sets(answer.error(), program.data->program,
                                                           machine.data->machine));
  }
  *out = new tp_plan{std::make_shared<const api::PlanData>(std::move(*answer))};
  return TP_OK;
}

/// Calls `body` with what a handle holds.
template <class Out, class Body>
tp_status of_plan(const tp_plan* plan, const Out* out, Body body) {
  return api::guarded([&]() -> tp_status {
    if (plan == nullptr) return api::refuse_null("plan");
    if (out == nullptr) return api::refuse_null("out");
    return body(*plan->data);
  });
}

}  // namespace

tp_status tp_plan_make(const tp_program* program, const tp_machine* machine,
                       const tp_budget* budget, const tp_options* options, tp_plan** out) {
  return api::guarded([&]() -> tp_status {
    if (program == nullptr) return api::refuse_null("program");
    if (machine == nullptr) return api::refuse_null("machine");
    if (budget == nullptr) return api::refuse_null("budget");
    if (out == nullptr) return api::refuse_null("out");
    const auto own_budget = api::taken(budget, "tp_budget");
    if (!own_budget) return TP_USAGE;
    tp_options own_options{};
    if (options != nullptr) {
      const auto given = api::taken(options, "tp_options");
      if (!given) return TP_USAGE;
      own_options = *given;
    }
    return make_plan_handle(*program, *machine, *own_budget, own_options, out);
  });
}

tp_status tp_plan_read(const char* json, size_t length, const char* name, tp_plan** out) {
  return api::guarded([&]() -> tp_status {
    if (json == nullptr) return api::refuse_null("json");
    if (out == nullptr) return api::refuse_null("out");
    auto answer = api::read_answer({json, length}, name == nullptr ? "plan" : name);
    if (!answer) return api::remember(answer.error());
    *out = new tp_plan{std::make_shared<const api::PlanData>(std::move(*answer))};
    return TP_OK;
  });
}

tp_status tp_plan_text(const tp_plan* plan, const char** json, size_t* length) {
  if (length == nullptr) json = nullptr;
  return of_plan(plan, json, [&](const api::PlanData& data) {
    *json = data.text().c_str();
    *length = data.text().size();
    return TP_OK;
  });
}

void tp_plan_free(tp_plan* plan) { delete plan; }

tp_status tp_plan_describe(const tp_plan* plan, tp_plan_info* out) {
  return of_plan(plan, out, [&](const api::PlanData& data) {
    return api::given_back(api::info_of(data), out, "tp_plan_info");
  });
}

tp_status tp_plan_table(const tp_plan* plan, tp_table which, const int64_t** cells, size_t* rows,
                        size_t* columns) {
  if (rows == nullptr || columns == nullptr) cells = nullptr;
  return of_plan(plan, cells, [&](const api::PlanData& data) -> tp_status {
    const auto number = static_cast<long>(which);
    if (number < TP_INSTRUCTIONS || number > TP_DECISIONS) {
      return api::remember({ErrorCode::usage, fmt::format("there is no table {}", number), {}});
    }
    const api::Cells& table = data.table(which);
    *cells = table.cells.data();
    *rows = table.rows();
    *columns = table.columns;
    return TP_OK;
  });
}

tp_status tp_plan_reason(const tp_plan* plan, size_t decision, const char** text) {
  return of_plan(plan, text, [&](const api::PlanData& data) -> tp_status {
    const std::size_t decisions = data.decisions().size();
    if (decision >= decisions) {
      return api::remember(
          {ErrorCode::usage,
           fmt::format("there is no decision {}: the plan has {}", decision, decisions),
           {}});
    }
    *text = data.reason(decision).c_str();
    return TP_OK;
  });
}

tp_status tp_plan_export(const tp_plan* plan, const char* format, const char* path) {
  if (format == nullptr) path = nullptr;
  return of_plan(plan, path, [&](const api::PlanData& data) -> tp_status {
    const auto document = api::picture(data.file(), format);
    if (!document) return api::remember(document.error());
    const auto written = tidepool::write_file(path, *document);
    return written ? TP_OK : api::remember(written.error());
  });
}
