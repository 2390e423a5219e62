// tidepool pack: addresses for a list of buffers with lifetimes.
#include "plan/pack/pack.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/time.h"
#include "context.h"
#include "plan/pack/lifetimes.h"
#include "plan/pack/pack_csv.h"
#include "plan/pack/validate.h"

namespace tidepool::cli {
namespace {

struct PackArguments {
  std::string path;
  std::string algorithm = "best-fit";
  std::string output;
};

struct Outcome {
  Packing packing;
  Bytes lower_bound = 0;
  bool proven_optimal = false;
  Nanos time{0};
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

Result<Outcome> pack(const PackProblem& problem, const std::string& algorithm) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome;
  outcome.lower_bound = peak_load(problem);
  const auto all = packers();
  const auto packer =
      std::find_if(all.begin(), all.end(), [&](const Packer& p) { return p.name == algorithm; });
  if (packer == all.end()) {
    std::string names;
    for (const Packer& p : all) names += fmt::format("{}{}", names.empty() ? "" : ", ", p.name);
    return fail(ErrorCode::usage,
                fmt::format("unknown algorithm '{}'; there are: {}", algorithm, names));
  }
  outcome.packing = packer->pack(problem);
  outcome.proven_optimal = outcome.packing.footprint == outcome.lower_bound;
  outcome.time = std::chrono::steady_clock::now() - start;
  return outcome;
}

double ratio(const Outcome& o) {
  return o.lower_bound == 0
             ? 1
             : static_cast<double>(o.packing.footprint) / static_cast<double>(o.lower_bound);
}

int run_pack(const PackArguments& a, bool json) {
  const auto text = read_text(a.path);
  if (!text) return report(text.error(), json);
  const auto file = read_pack_csv(*text, a.path);
  if (!file) return report(file.error(), json);
  const auto outcome = pack(file->problem, a.algorithm);
  if (!outcome) return report(outcome.error(), json);
  if (auto valid = validate(file->problem, outcome->packing); !valid) {
    return report(valid.error(), json);
  }
  if (!a.output.empty()) {
    auto written = write_file(a.output, write_pack_csv(*file, outcome->packing));
    if (!written) return report(written.error(), json);
  }
  if (json) {
    print({{"schema", 1},
           {"file", a.path},
           {"algorithm", a.algorithm},
           {"buffers", file->ids.size()},
           {"lower_bound", outcome->lower_bound},
           {"footprint", outcome->packing.footprint},
           {"ratio", ratio(*outcome)},
           {"proven_optimal", outcome->proven_optimal},
           {"ms", to_ms(outcome->time)}});
    return kOk;
  }
  fmt::print("{}: {} buffers in {} B, {} ({:.6f} of the lower bound, {} B){}\n", a.path,
             file->ids.size(), outcome->packing.footprint, a.algorithm, ratio(*outcome),
             outcome->lower_bound, outcome->proven_optimal ? ", proven optimal" : "");
  return kOk;
}

std::string footer() {
  std::string text = "\nAlgorithms:\n";
  for (const Packer& p : packers()) text += fmt::format("  {:<12}{}\n", p.name, p.summary);
  text += R"(
FILE has the columns id,lower,upper,size: a buffer of `size` bytes is alive at lower <= t < upper.
It may be gzipped. With -o the same columns and `offset` are written.

Examples:
  tidepool pack buffers.csv
  tidepool pack buffers.csv --algorithm load --json -o offsets.csv)";
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
  command->add_option("-o,--output", arguments->output, "write the offsets to this CSV file");
  command->add_flag("--json", context.json, "one JSON object on stdout");
  command->footer(footer());
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_pack(*arguments, context.json); };
  });
}

}  // namespace tidepool::cli
