// tidepool export: a saved plan as a page, a trace or a picture.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/counted.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/output_file.h"
#include "context.h"
#include "output_check.h"
#include "planning/load_file.h"
#include "report/report_format.h"

namespace tidepool::cli {
namespace {

struct ExportArguments {
  std::string path;
  std::string format;  ///< empty: that of the output's suffix
  std::string output;
};

/// Viewers take their time with more bytes than this.
constexpr std::size_t kLarge = 10'000'000;

/// The form a file's name asks for; a page where it asks for none.
Result<std::string> format_of(const std::string& output) {
  const std::string suffix = std::filesystem::path(output).extension().string();
  if (suffix == ".svg") return "svg";
  if (suffix == ".json") return "perfetto";
  if (suffix.empty() || suffix == ".html" || suffix == ".htm") return "html";
  return fail(ErrorCode::usage,
              fmt::format("-o {}: there is no format for '{}': use .html, .svg, or .json for "
                          "perfetto, or say which with --to",
                          output, suffix));
}

Result<ReportFormat> find_format(const std::string& name) {
  std::vector<std::string_view> names;
  for (const ReportFormat& f : report_formats()) {
    if (f.name == name) return f;
    names.push_back(f.name);
  }
  return fail(unknown_name("format", name, names));
}

Result<void> write_document(const std::string& output, const std::string& document) {
  if (!output.empty()) return write_file(output, document);
  write_result(document);
  return {};
}

/// Says what a document shows: a trace has no addresses, and of several devices memory is the
/// first one's.
std::string content_of(const ReportFormat& format, const PlanTimeline& timeline) {
  const std::string instructions = counted(timeline.runs.size(), "instruction");
  if (!format.addresses) return instructions;
  return fmt::format("{}, {} on {}", instructions, counted(timeline.lives.size(), "placement"),
                     timeline.devices == 1 ? "the device" : "device 0");
}

Result<int> export_plan(const ExportArguments& a, bool json) {
  const Result<std::string> name = a.format.empty() ? format_of(a.output) : a.format;
  if (!name) return fail(name.error());
  const auto format = find_format(*name);
  if (!format) return fail(format.error());
  if (json && a.output.empty()) {
    return fail(ErrorCode::usage, "--json needs -o: the document itself would go to stdout");
  }
  if (auto other = check_no_input(a.output, std::span(&a.path, 1)); !other) {
    return fail(other.error());
  }
  const auto file = load_plan(a.path);
  if (!file) return fail(file.error());
  const auto proof = prove(*file);
  if (!proof) {
    return fail(proof.error().code, fmt::format("{}: {}", a.path, proof.error().message));
  }
  if (auto writable = check_output(a.output); !writable) return fail(writable.error());
  const PlanTimeline timeline = make_timeline(*file);
  const std::string document = format->render(*file, timeline);
  if (auto written = write_document(a.output, document); !written) return fail(written.error());
  if (json) {
    print({{"schema", 1},
           {"plan", a.path},
           {"format", format->name},
           {"output", a.output},
           {"output_bytes", document.size()},
           {"iteration_ms", to_ms(timeline.period)},
           {"periodic", timeline.periodic},
           {"instructions", timeline.runs.size()},
           {"lives", timeline.lives.size()},
           {"peak_load_bytes", timeline.peak_load},
           {"unlimited_peak_bytes", timeline.unlimited_peak},
           {"footprint_bytes", file->plan.device_bytes()},
           {"budget_bytes", file->device_budget}});
  } else if (!a.output.empty()) {
    if (document.size() > kLarge) {
      inform("tidepool: the document is large, {}: it has every instruction of {}\n",
             format_bytes(static_cast<Bytes>(document.size())),
             counted(file->program.rounds(), "round"));
    }
    say("{}: {} of {} ({})\n", a.output, format_bytes(static_cast<Bytes>(document.size())),
        format->name, content_of(*format, timeline));
  }
  return kOk;
}

std::string export_footer() {
  std::string text = "\nFormats:\n";
  for (const ReportFormat& f : report_formats()) {
    text += fmt::format("  {:<10}{}\n", f.name, f.summary);
  }
  text += R"(
Shows one iteration of the steady state, timed by the simulator: memory in use with and without the
budget, and what each stream does; html and svg also where each tensor lies and why. Of several
devices memory is the first one's. Without -o the document goes to stdout.

Examples:
  tidepool plan vgg16 --budget 50% --machine gtx1080ti -o plan.json
  tidepool export plan.json --to html -o plan.html
  tidepool export plan.json --to perfetto > plan.trace.json)";
  return text;
}

}  // namespace

void add_export(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = app.add_subcommand("export", "draw a saved plan: page, trace or picture");
  command->add_option("plan", arguments->path, "plan file")->required();
  command->add_option("--to", arguments->format,
                      "format, see below (default: by the suffix of -o: .svg, .json for perfetto, "
                      ".html or none)");
  command->add_option("-o,--output", arguments->output, "write to this file");
  command->add_flag("--json", context.json, "one JSON object on stdout; needs -o");
  command->footer(export_footer());
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      auto code = export_plan(*arguments, context.json);
      return code ? *code : report(code.error(), context.json);
    };
  });
}

}  // namespace tidepool::cli
