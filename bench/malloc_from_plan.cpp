// What serving a malloc or a free costs: from a plan (FixedPool), by the C library, and by the
// simulated CnMem and PyTorch caching allocators, interleaved, on the measured VGG16 trace or,
// where that is absent, on a made-up training. Bound: a request from the plan takes less than 100
// ns.
//
//   bench_malloc_from_plan [TRACE.csv]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/file.h"
#include "base/median.h"
#include "base/random.h"
#include "session/fixed_pool.h"
#include "trace/allocators/caching.h"
#include "trace/allocators/cnmem.h"
#include "trace/block_lives.h"
#include "trace/iteration.h"

namespace {

using namespace tidepool;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 7;
constexpr double kLeastSeconds = 0.05;  // of one measurement
constexpr double kBound = 100;          // ns

double planned_ratio = 1;  ///< footprint / peak load of the pool that was measured last
double planned_share = 0;  ///< of its mallocs, those by look-up

/// A cycle of mallocs and frees. Block i is lives[i].
struct Workload {
  std::string name;
  std::vector<CyclicLifetime> lives;
  std::vector<Request> requests;
  std::vector<Request> at_start;  ///< mallocs of what is live when the cycle begins
};

Workload prepared(std::string name, std::vector<CyclicLifetime> lives, std::int32_t cycle) {
  Workload w{std::move(name), std::move(lives), {}, {}};
  std::vector<std::pair<std::int32_t, Request>> events;
  for (std::size_t i = 0; i < w.lives.size(); ++i) {
    const CyclicLifetime& life = w.lives[i];
    const auto block = static_cast<BlockId>(i);
    if (life.end >= cycle) w.at_start.push_back({true, block, life.bytes});
    if (life.end - life.begin == cycle) continue;
    events.push_back({life.begin, {true, block, life.bytes}});
    events.push_back({life.end % cycle, {false, block, life.bytes}});
  }
  std::sort(events.begin(), events.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& event : events) w.requests.push_back(event.second);
  return w;
}

/// The lifetimes to serve, in a cycle of two iterations: blocks that outlive their
/// successor's malloc alternate between two addresses. Nothing when a block lives through whole
/// iterations, so that nobody knows where it ends.
std::optional<std::vector<CyclicLifetime>> lifetimes_to_serve(const Recording& recording,
                                                              const Iteration& iteration,
                                                              const BlockLives& block_lives) {
  std::vector<char> joined(block_lives.all.size(), 0);
  for (const BlockLife& life : block_lives.all) {
    if (life.rest != kNone) joined[static_cast<std::size_t>(life.rest)] = 1;
  }
  for (std::size_t i = 0; i < block_lives.all.size(); ++i) {
    const BlockLife& life = block_lives.all[i];
    const bool begins = life.malloc_at != kNone;
    const bool ends = life.free_at != kNone;
    if (begins && !ends && life.rest == kNone) return std::nullopt;
    if (ends && !begins && joined[i] == 0) return std::nullopt;
  }
  return lifetimes_of_two_iterations(recording, iteration, block_lives);
}

Workload from_trace(const std::string& file) {
  const auto text = read_file(file);
  const auto recording = text ? read_recording(*text, file) : fail(text.error());
  const auto iteration = recording ? find_iteration(*recording) : std::nullopt;
  if (iteration) {
    const BlockLives block_lives = find_block_lives(*recording, *iteration);
    if (auto lives = lifetimes_to_serve(*recording, *iteration, block_lives)) {
      return prepared(recording->name, std::move(*lives),
                      static_cast<std::int32_t>(2 * iteration->period));
    }
  }
  fmt::print(stderr, "{}: no iteration to plan for\n", file);
  std::exit(3);
}

/// Layers whose activations live into the backward pass, with short-lived blocks in between.
Workload made_up() {
  constexpr std::int32_t kLayers = 150;
  Random random(1);
  const auto bytes = [&](std::uint64_t most) {
    return static_cast<Bytes>(512 + random.below(most));
  };
  std::vector<CyclicLifetime> lives{{64 * kMiB, 0, 8 * kLayers}};
  for (std::int32_t i = 0; i < kLayers; ++i) {
    const std::int32_t forward = 4 * i;
    const std::int32_t backward = 8 * kLayers - 4 * (i + 1);
    lives.push_back({bytes(8 * kMiB), forward, backward + 3});
    lives.push_back({bytes(kMiB), forward + 1, forward + 2});
    lives.push_back({bytes(8 * kMiB), backward, backward + 2});
  }
  return prepared("a made-up training", std::move(lives), 8 * kLayers);
}

/// Nanoseconds a request of as many cycles as take some time. `serve` runs one cycle.
double measure(const Workload& w, const std::function<void()>& serve) {
  std::int64_t cycles = 0;
  const auto start = Clock::now();
  double seconds = 0;
  while (seconds < kLeastSeconds) {
    serve();
    ++cycles;
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return seconds * 1e9 / (static_cast<double>(cycles) * static_cast<double>(w.requests.size()));
}

/// Blocks that outlive their iteration are served elsewhere, as a program's would be.
double from_plan(const Workload& w) {
  FixedPool pool({.budget = Bytes{64} << 30});
  std::vector<void*> where(w.lives.size());
  const auto allocate = [&](const Request& request) {
    void* const memory = pool.allocate(request.bytes);
    if (memory == nullptr) std::abort();
    where[static_cast<std::size_t>(request.block)] = memory;
  };
  const auto cycle = [&] {
    for (const Request& request : w.requests) {
      if (request.allocate) {
        allocate(request);
      } else if (!pool.free(where[static_cast<std::size_t>(request.block)])) {
        std::abort();
      }
    }
  };
  constexpr int kUntilPlanned = 16;
  for (const Request& request : w.at_start) allocate(request);
  for (int i = 0; i < kUntilPlanned; ++i) cycle();
  pool.reset_peaks();
  const double ns = measure(w, cycle);
  const FixedPoolReport r = pool.report();
  if (r.iterations == 0) std::abort();
  planned_ratio = static_cast<double>(r.footprint) / static_cast<double>(r.peak_load);
  planned_share = static_cast<double>(r.served) / static_cast<double>(r.served + r.others);
  return ns;
}

double by_c_library(const Workload& w) {
  std::vector<void*> where(w.lives.size());
  const auto allocate = [&](const Request& request) {
    void* memory = std::malloc(static_cast<std::size_t>(request.bytes));
    if (memory == nullptr) std::abort();
    where[static_cast<std::size_t>(request.block)] = memory;
  };
  for (const Request& request : w.at_start) allocate(request);
  const double ns = measure(w, [&] {
    for (const Request& request : w.requests) {
      request.allocate ? allocate(request)
                       : std::free(where[static_cast<std::size_t>(request.block)]);
    }
  });
  for (const Request& request : w.at_start) {
    std::free(where[static_cast<std::size_t>(request.block)]);
  }
  return ns;
}

template <class Simulated>
double by_simulation(const Workload& w) {
  Simulated allocator;
  for (const Request& request : w.at_start) allocator.allocate(request.block, request.bytes);
  return measure(w, [&] {
    for (const Request& request : w.requests) {
      if (request.allocate) {
        allocator.allocate(request.block, request.bytes);
      } else {
        allocator.free(request.block);
      }
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string file =
      argc > 1 ? argv[1] : TIDEPOOL_SHARED_DATA "/vgg16-trace/vgg16_batch100_3iterations.csv";
  const bool measured = argc > 1 || std::filesystem::exists(file);
  const Workload w = measured ? from_trace(file) : made_up();
  struct Row {
    const char* name;
    double (*run)(const Workload&);
    std::array<double, kRounds> ns{};
  };
  std::array<Row, 4> rows{{{"from the plan", from_plan},
                           {"C library", by_c_library},
                           {"CnMem, simulated", by_simulation<CnMemAllocator>},
                           {"caching, simulated", by_simulation<CachingAllocator>}}};
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (Row& row : rows) row.ns[round] = row.run(w);
  }
  fmt::print(
      "{}: {} mallocs and frees in a cycle; footprint / peak load {:.4f}, {:.1f} % of all "
      "mallocs by look-up\n",
      w.name, w.requests.size(), planned_ratio, 100 * planned_share);
  for (const Row& row : rows) {
    const auto [least, most] = std::minmax_element(row.ns.begin(), row.ns.end());
    fmt::print("  {:20} {:8.1f} ns a request, median of {} ({:.1f} to {:.1f})\n", row.name,
               median(row.ns), kRounds, *least, *most);
  }
  const bool met = median(rows[0].ns) < kBound;
  fmt::print("  bound: below {} ns from the plan: {}\n", kBound, met ? "met" : "NOT MET");
  return met ? 0 : 1;
}
