// tidepool allocators: what a recorded training would have needed under each allocator.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "context.h"
#include "pack/best_fit.h"
#include "pack/first_fit.h"
#include "smartpool.h"
#include "trace/allocators/caching.h"
#include "trace/allocators/cnmem.h"
#include "trace/allocators/expandable.h"
#include "trace/allocators/native.h"
#include "trace/block_lives.h"
#include "trace_file.h"

namespace tidepool::cli {
namespace {

struct AllocatorRow {
  std::string name;
  Bytes reserved = 0;
};

std::vector<AllocatorRow> replay_all(const Recording& recording) {
  constexpr Bytes kReservation = 256 * kMiB;
  const std::vector<Request> requests = allocation_requests(recording);
  NativeAllocator native;
  CnMemAllocator cnmem;
  CnMemAllocator cnmem_reserved(kReservation);
  CachingAllocator caching;
  ExpandableAllocator expandable;
  return {{"native", replay(native, requests)},
          {"cnmem", replay(cnmem, requests)},
          {"cnmem-256MiB", replay(cnmem_reserved, requests)},
          {"pytorch-caching", replay(caching, requests)},
          {"pytorch-expandable", replay(expandable, requests)}};
}

int run_allocators(const TraceSpec& a, bool json) {
  const auto recording = load_trace(a);
  if (!recording) return report(recording.error(), json);
  std::vector<AllocatorRow> rows = replay_all(*recording);
  const auto iteration = find_iteration(*recording);
  Bytes load = rows[0].reserved;
  if (iteration) {
    const BlockLives block_lives = find_block_lives(*recording, *iteration);
    const auto lives = cyclic_lifetimes(*recording, *iteration, block_lives);
    const PackProblem problem = pack_problem(lives, static_cast<std::int32_t>(iteration->period));
    rows.push_back({"smartpool-first-fit", pack_first_fit(problem).footprint});
    rows.push_back({"smartpool-best-fit", pack_best_fit(problem).footprint});
    const auto two = lifetimes_of_two_iterations(*recording, *iteration, block_lives);
    const auto cycle = static_cast<std::int32_t>(2 * iteration->period);
    rows.push_back({"smartpool-no-moves", pack_best_fit(pack_problem(two, cycle)).footprint});
    load = block_lives.peak;
  }
  const auto ratio = [&](const AllocatorRow& row) {
    return static_cast<double>(row.reserved) / static_cast<double>(load);
  };
  if (json) {
    Json list = Json::array();
    for (const AllocatorRow& row : rows) {
      list.push_back(
          {{"allocator", row.name}, {"reserved_bytes", row.reserved}, {"ratio", ratio(row)}});
    }
    print({{"schema", 1},
           {"trace", recording->name},
           {"peak_load_bytes", load},
           {"resident_bytes", recording->resident},
           {"iteration_found", iteration.has_value()},
           {"allocators", std::move(list)}});
    return kOk;
  }
  say("{}: peak load {} ({} B)\n", recording->name, format_bytes(load), load);
  say("  {:20} {:>12}  {:>12}  ratio\n", "allocator", "reserved", "bytes");
  for (const AllocatorRow& row : rows) {
    say("  {:20} {:>12}  {:>12}  {:.4f}\n", row.name, format_bytes(row.reserved), row.reserved,
        ratio(row));
  }
  if (!iteration) say("  no iteration repeats in full twice: no SmartPool\n");
  return kOk;
}

}  // namespace

void add_allocators(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<TraceSpec>();
  CLI::App* command = app.add_subcommand(
      "allocators", "replay a trace on memory allocators and compare what each would reserve");
  command->add_option("trace", arguments->file, "trace file")->required();
  add_resident_option(*command, *arguments);
  command->add_flag("--json", context.json, "one JSON object on stdout");
  command->footer(R"(
native is cudaMalloc for every block: the peak load. SmartPool packs one iteration, the others see
the whole trace. The ratio is to the peak load. What was there before the trace is allocated first,
in the order in which the trace names it; with a reservation the result depends on that order.
A block that outlives its successor's malloc has to move in SmartPool's packing of one iteration;
smartpool-no-moves packs two iterations, where such blocks alternate between two addresses.

Example:
  tidepool allocators vgg16_batch100_3iterations.csv --resident 13762836   # a trace of yours)");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_allocators(*arguments, context.json); };
  });
}

}  // namespace tidepool::cli
