// Table I: footprint and iteration time of memory pools against cudaMalloc.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/json.h"
#include "cli/smartpool.h"
#include "pack/best_fit.h"
#include "pack/first_fit.h"
#include "pack/search.h"
#include "reproduction.h"
#include "served_calls.h"
#include "trace/allocators/caching.h"
#include "trace/allocators/cnmem.h"

namespace tidepool::reproduce {
namespace {

constexpr Nanos kDriverCall{50'000};    // cudaMalloc or cudaFree: fitted to one published row
constexpr Nanos kCnMemCall{1'000};      // a lock and a walk over the list of free blocks
constexpr Nanos kSmartPoolCall{100};    // a look-up
constexpr double kSearchSeconds = 0.9;  // usual limit of the packing search
constexpr Bytes kReservation = 256 * kMiB;
constexpr std::string_view kFittedModel = "vgg16";  // that of the trace

/// Allocation calls of the last recorded iteration.
struct Calls {
  std::int64_t all = 0;     ///< mallocs and frees
  std::int64_t driver = 0;  ///< those for which the allocator calls the driver
};

struct Replayed {
  Bytes reserved = 0;
  Calls last;
};

Replayed replay_and_count(Allocator& allocator, const ProgramRecording& recorded) {
  const std::vector<Request> requests = allocation_requests(recorded.recording);
  const auto& events = recorded.recording.events;
  // Requests end with the recording's mallocs and frees, in order.
  const auto request_at = [&](std::int64_t event) {
    const auto later = std::count_if(events.begin() + event, events.end(), [](const TraceEvent& e) {
      return e.kind == EventKind::malloc || e.kind == EventKind::free;
    });
    return requests.size() - static_cast<std::size_t>(later);
  };
  const Iteration& iteration = recorded.iteration;
  const std::int64_t last = iteration.start + (iteration.repeats - 1) * iteration.period;
  const std::size_t begin = request_at(last), end = request_at(last + iteration.period);
  const std::span<const Request> all(requests);
  Replayed result;
  result.last.all = static_cast<std::int64_t>(end - begin);
  result.reserved = replay(allocator, all.first(begin));
  for (std::size_t i = begin; i < all.size(); ++i) {
    const Bytes before = allocator.reserved();
    result.reserved = std::max(result.reserved, replay(allocator, all.subspan(i, 1)));
    if (i < end && allocator.reserved() != before) ++result.last.driver;
  }
  return result;
}

Nanos time_of_moves(std::span<const Bytes> blocks, const ComputeModel& device) {
  Nanos time{0};
  for (const Bytes bytes : blocks) time += device.time(0, 2 * bytes);
  return time;
}

const char* origin_of(const Work& work) {
  if (work.model == kTraceModel) return "measured";
  return work.model == kFittedModel ? "fitted" : "predicted";
}

/// Iteration times and speedups over cudaMalloc. `moves`: the time of SmartPool's.
Json times_of(const Work& work, Nanos compute_time, const Calls& calls, Nanos moves) {
  const double compute = to_ms(compute_time);
  const auto with_calls = [&](Nanos pool, std::int64_t driver) {
    return compute + to_ms(pool) * static_cast<double>(calls.all) +
           to_ms(kDriverCall) * static_cast<double>(driver);
  };
  const double native = with_calls(Nanos{0}, calls.all);
  const PublishedNetwork& p = *work.published;
  return {{"compute_ms", compute},
          {"allocation_calls", calls.all},
          {"published_native_ms", p.native_ms},
          {"native_ms", native},
          {"published_cnmem_speedup", p.cnmem_speedup},
          {"cnmem_speedup", native / with_calls(kCnMemCall, calls.driver)},
          {"published_smartpool_speedup", p.smartpool_speedup},
          {"smartpool_speedup", native / (with_calls(kSmartPoolCall, 0) + to_ms(moves))},
          {"smartpool_without_moves_speedup", native / with_calls(kSmartPoolCall, 0)}};
}

/// Fields of whoever served calls; null: nobody.
void add_times(const char* name, const std::optional<CallTimes>& times, Json& row) {
  const auto field = [&](const char* which) { return fmt::format("{}_{}_ns", name, which); };
  row[field("call")] = times ? Json(times->median) : Json();
  row[field("call_99th")] = times ? Json(times->percentile_99) : Json();
  row[field("call_mean")] = times ? Json(times->mean) : Json();
}

void add_served(const ServedCalls& served, Json& row) {
  row["mallocs"] = served.mallocs;
  add_times("session", served.session, row);
  add_times("malloc", served.own_malloc, row);
  add_times("jemalloc", served.jemalloc, row);
  add_times("tcmalloc", served.tcmalloc, row);
  add_times("cnmem", served.cnmem, row);
  if (!served.session) row["why_no_session"] = served.why_no_session;
}

Json table1_row(const Work& work, const Arguments& a) {
  const Recording& recording = work.framework.recording;
  const Iteration& iteration = work.framework.iteration;
  const BlockLives block_lives = find_block_lives(recording, iteration);
  const auto cycle = static_cast<std::int32_t>(iteration.period);
  const PackProblem moving =
      cli::pack_problem(cyclic_lifetimes(recording, iteration, block_lives), cycle);
  const PackProblem still =
      cli::pack_problem(lifetimes_of_two_iterations(recording, iteration, block_lives), 2 * cycle);
  SearchOptions search;
  search.time_limit = a.limit(kSearchSeconds);
  search.seed = a.seed;
  search.stop = interrupted;
  const SearchResult found = search_packing(moving, search);
  const std::vector<Bytes> moved = moved_blocks(recording, block_lives);
  const Nanos moves = time_of_moves(moved, work.machine.compute);
  CnMemAllocator cnmem, reserving(kReservation);
  CachingAllocator caching;
  const Replayed cnmem_run = replay_and_count(cnmem, work.framework);
  const Bytes reserving_run = replay(reserving, allocation_requests(recording));
  const Bytes caching_run = replay(caching, allocation_requests(recording));

  const auto ratio = [&](Bytes bytes) {
    return static_cast<double>(bytes) / static_cast<double>(block_lives.peak);
  };
  const PublishedNetwork& p = *work.published;
  Json row = {{"model", work.model},
              {"recording", origin_of(work)},
              {"published_ratio", p.smartpool_ratio},
              {"first_fit_ratio", ratio(pack_first_fit(moving).footprint)},
              {"best_fit_ratio", ratio(pack_best_fit(moving).footprint)},
              {"search_ratio", ratio(found.packing.footprint)},
              {"search_ms", to_ms(found.time)},
              {"search_proven_optimal", found.proven_optimal},
              {"moved_bytes", std::accumulate(moved.begin(), moved.end(), Bytes{0})},
              {"move_ms", to_ms(moves)},
              {"first_fit_without_moves_ratio", ratio(pack_first_fit(still).footprint)},
              {"best_fit_without_moves_ratio", ratio(pack_best_fit(still).footprint)},
              {"published_cnmem_ratio", p.cnmem_ratio},
              {"cnmem_ratio", ratio(cnmem_run.reserved)},
              {"cnmem_256mib_ratio", ratio(reserving_run)},
              {"caching_ratio", ratio(caching_run)},
              {"published_peak_bytes", static_cast<Bytes>(p.peak_mib * static_cast<double>(kMiB))},
              {"peak_bytes", block_lives.peak}};
  row.update(times_of(work, work.recorded_time(), cnmem_run.last, moves));
  add_served(serve_calls(work, a), row);
  return row;
}

}  // namespace

Result<void> run_table1(const Arguments& a, TableReport& report) {
  add_machine(*find_machine(kAutoswapMachine), report);
  report.constant(
      "driver_call_ns", kDriverCall.count(),
      fmt::format("cudaMalloc, cudaFree: {} a call (fitted: what one published row implies)",
                  format_time(kDriverCall)));
  report.constant("pool_call_ns",
                  {{"cnmem", kCnMemCall.count()}, {"smartpool", kSmartPoolCall.count()}},
                  fmt::format("pool calls, assumed: CnMem {}, SmartPool {}; CnMem also pays for "
                              "the driver calls of its third iteration",
                              format_time(kCnMemCall), format_time(kSmartPoolCall)));
  report.constant("search_limit_ms", to_ms(a.limit(kSearchSeconds)),
                  fmt::format("packing search: at most {}", format_time(a.limit(kSearchSeconds))));
  using Form = Column::Form;
  report.columns({{"model", "model"},
                  {"recording", "recording"},
                  {"peak MiB", "peak_bytes", Form::mib},
                  {"publ.", "published_peak_bytes", Form::mib},
                  {"first-fit", "first_fit_ratio", Form::ratio},
                  {"best-fit", "best_fit_ratio", Form::ratio},
                  {"search", "search_ratio", Form::ratio},
                  {"publ.", "published_ratio", Form::ratio},
                  {"search ms", "search_ms", Form::ms},
                  {"first-fit*", "first_fit_without_moves_ratio", Form::ratio},
                  {"best-fit*", "best_fit_without_moves_ratio", Form::ratio},
                  {"CnMem", "cnmem_ratio", Form::ratio},
                  {"CnMem256", "cnmem_256mib_ratio", Form::ratio},
                  {"publ.", "published_cnmem_ratio", Form::ratio},
                  {"PyTorch", "caching_ratio", Form::ratio},
                  {"calls", "allocation_calls"},
                  {"native ms", "native_ms", Form::ms},
                  {"publ.", "published_native_ms", Form::ms},
                  {"CnMem", "cnmem_speedup", Form::times},
                  {"publ.", "published_cnmem_speedup", Form::times},
                  {"SmartPool", "smartpool_speedup", Form::times},
                  {"publ.", "published_smartpool_speedup", Form::times},
                  {"mallocs", "mallocs"},
                  {"Session ns", "session_call_ns", Form::ns},
                  {"malloc ns", "malloc_call_ns", Form::ns},
                  {"jemalloc ns", "jemalloc_call_ns", Form::ns},
                  {"tcmalloc ns", "tcmalloc_call_ns", Form::ns},
                  {"CnMem ns", "cnmem_call_ns", Form::ns}});
  const auto models = wanted_models(a, report);
  if (!models) return fail(models.error());
  report.expect(models->size(), a.limit(kSearchSeconds));
  for (std::size_t i = 0; i < models->size() && !interrupted(); ++i) {
    report.begin_row((*models)[i]);
    const auto work = work_of((*models)[i], a);
    if (!work) return fail(work.error());
    report.row(table1_row(*work, a));
  }
  return {};
}

}  // namespace tidepool::reproduce
