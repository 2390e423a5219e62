// tidepool pack: addresses for a list of buffers with lifetimes.
#include "pack/pack.h"

#include <fmt/format.h>
#include <zlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>

#include "base/counted.h"
#include "base/file.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/output_file.h"
#include "base/time.h"
#include "context.h"
#include "output_check.h"
#include "pack/lifetimes.h"
#include "pack/pack_csv.h"
#include "pack/search.h"
#include "pack/validate.h"

namespace tidepool::cli {
namespace {

constexpr std::string_view kSearch = "search";

struct PackArguments {
  std::string path;
  std::string algorithm{kSearch};
  Nanos time_limit{std::chrono::seconds(10)};
  std::uint64_t seed = 0;
  std::string output;
};

/// The whole file, unpacked when it is gzipped.
Result<std::string> read_text(const std::string& path) {
  auto raw = read_file(path);
  if (!raw || !raw->starts_with("\x1f\x8b")) return raw;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  std::string text;
  char buffer[1 << 16];
  int got = file ? 0 : -1;
  while (file && (got = gzread(file.get(), buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  if (got < 0) return fail(ErrorCode::bad_input, path + ": damaged gzip file");
  return text;
}

SearchResult search(const PackProblem& problem, const PackArguments& a) {
  TerminalProgress progress;
  catch_interrupts();
  SearchOptions options;
  options.time_limit = a.time_limit;
  options.seed = a.seed;
  options.stop = interrupted;
  options.progress = &progress;
  return search_packing(problem, options);
}

Result<SearchResult> pack(const PackProblem& problem, const PackArguments& a) {
  if (a.algorithm == kSearch) return search(problem, a);
  const auto start = std::chrono::steady_clock::now();
  const auto all = packers();
  const auto packer =
      std::find_if(all.begin(), all.end(), [&](const Packer& p) { return p.name == a.algorithm; });
  if (packer == all.end()) {
    std::vector<std::string_view> names{kSearch};
    for (const Packer& p : all) names.push_back(p.name);
    return fail(unknown_name("algorithm", a.algorithm, names));
  }
  SearchResult result{packer->pack(problem), peak_load(problem), false, a.algorithm, Nanos{0}};
  result.proven_optimal = result.packing.footprint == result.lower_bound;
  result.time = std::chrono::steady_clock::now() - start;
  return result;
}

double ratio(const SearchResult& r) {
  return r.lower_bound == 0
             ? 1
             : static_cast<double>(r.packing.footprint) / static_cast<double>(r.lower_bound);
}

int run_pack(const PackArguments& a, bool json) {
  if (auto other = check_no_input(a.output, std::span(&a.path, 1)); !other) {
    return report(other.error(), json);
  }
  const auto text = read_text(a.path);
  if (!text) return report(text.error(), json);
  const auto file = read_pack_csv(*text, a.path);
  if (!file) return report(file.error(), json);
  if (auto writable = check_output(a.output); !writable) return report(writable.error(), json);
  const auto outcome = pack(file->problem, a);
  if (!outcome) return report(outcome.error(), json);
  if (auto valid = validate(file->problem, outcome->packing); !valid) {
    return report(valid.error(), json);
  }
  if (!a.output.empty()) {
    auto written = write_file(a.output, write_pack_csv(*file, outcome->packing));
    if (!written) return report(written.error(), json);
  }
  if (interrupted()) inform("tidepool: interrupted: this is the best packing so far\n");
  const int code = interrupted() ? exit_code(ErrorCode::interrupted) : kOk;
  if (json) {
    print({{"schema", 1},
           {"file", a.path},
           {"algorithm", a.algorithm},
           {"found_by", outcome->found_by},
           {"buffers", file->ids.size()},
           {"lower_bound", outcome->lower_bound},
           {"footprint", outcome->packing.footprint},
           {"ratio", ratio(*outcome)},
           {"proven_optimal", outcome->proven_optimal},
           {"interrupted", interrupted()},
           {"ms", to_ms(outcome->time)}});
    return code;
  }
  say("{}: {} in {} B, {:.6f} of the lower bound, {} B{}\n  found by {} in {}\n", a.path,
      counted(file->ids.size(), "buffer"), outcome->packing.footprint, ratio(*outcome),
      outcome->lower_bound, outcome->proven_optimal ? ": proven optimal" : "", outcome->found_by,
      format_time(outcome->time));
  return code;
}

std::string pack_footer() {
  std::string text = fmt::format(
      "\nAlgorithms:\n  {:<12}all of the others, local and exact search; ends early with a proof\n",
      kSearch);
  for (const Packer& p : packers()) text += fmt::format("  {:<12}{}\n", p.name, p.summary);
  text += R"(
FILE has the columns id,lower,upper,size: a buffer of `size` bytes is alive at lower <= t < upper.
It may be gzipped. With -o the same columns and `offset` are written. Ctrl-C ends a search and
gives the best packing so far (exit code 130). A search that ends with a proof gives the same
packing for the same seed every time.

Examples:
  printf 'id,lower,upper,size\n1,0,2,64\n2,1,3,32\n3,2,4,64\n' > buffers.csv
  tidepool pack buffers.csv --time-limit 60 -o offsets.csv
  tidepool pack buffers.csv --algorithm load --json)";
  return text;
}

}  // namespace

void add_pack(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<PackArguments>();
  CLI::App* command =
      app.add_subcommand("pack", "assign addresses to buffers with lifetimes (CSV)");
  command->add_option("file", arguments->path, "CSV file of buffers")->required();
  command->add_option("-a,--algorithm", arguments->algorithm, "how addresses are chosen, see below")
      ->capture_default_str();
  add_duration_option(*command, "--time-limit", arguments->time_limit,
                      "what a search may take, such as 500ms, 10s or 2min");
  add_seed_option(*command, arguments->seed, "of the search's random numbers");
  command->add_option("-o,--output", arguments->output, "write the offsets to this CSV file");
  command->add_flag("--json", context.json, "one JSON object on stdout");
  command->footer(pack_footer());
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_pack(*arguments, context.json); };
  });
}

}  // namespace tidepool::cli
