#include "tidepool/pack.h"

#include <fmt/format.h>

#include <limits>

#include "api/thrown.h"
#include "pack/lifetimes.h"
#include "pack/search.h"
#include "pack/validate.h"

namespace tidepool::api {
namespace {

PackProblem problem_of(std::span<const tp::Buffer> buffers) {
  // Keeps every sum of sizes and every offset far from overflow.
  Bytes room = std::numeric_limits<Bytes>::max() / 4;
  if (buffers.size() > std::numeric_limits<std::int32_t>::max() / 2) {
    throw_usage("too many buffers");
  }
  std::vector<Bytes> sizes;
  std::vector<Lifetime> lives;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const tp::Buffer& buffer = buffers[i];
    if (buffer.bytes < 1 || buffer.bytes > room) {
      throw_usage(fmt::format("buffer {} has {} bytes", i, buffer.bytes));
    }
    if (buffer.end <= buffer.begin) {
      throw_usage(
          fmt::format("buffer {} ends at {} and begins at {}", i, buffer.end, buffer.begin));
    }
    room -= buffer.bytes;
    sizes.push_back(buffer.bytes);
    lives.push_back({buffer.begin, buffer.end});
  }
  return lifetime_problem(std::move(sizes), std::move(lives));
}

}  // namespace
}  // namespace tidepool::api

namespace tp {

namespace api = tidepool::api;

Packing pack(std::span<const Buffer> buffers, const PackOptions& options) {
  return api::bordered([&] {
    if (options.time_limit < std::chrono::nanoseconds{0} || options.rounds < 0 ||
        options.target < 0) {
      api::throw_usage("options of packing are not below 0");
    }
    if (buffers.empty()) return Packing{{}, 0, 0, true, {}};
    const tidepool::PackProblem problem = api::problem_of(buffers);
    tidepool::SearchOptions search;
    search.seed = options.seed;
    search.target = options.target;
    search.time_limit = options.time_limit;
    if (options.rounds > 0) {
      search.rounds = options.rounds;
      search.time_limit = tidepool::Nanos::max();
    }
    search.stop = [token = options.stop] { return token.stop_requested(); };
    auto found = tidepool::search_packing(problem, search);
    api::value_of(tidepool::validate(problem, found.packing));
    return Packing{std::move(found.packing.offsets), found.packing.footprint, found.lower_bound,
                   found.proven_optimal, std::move(found.found_by)};
  });
}

}  // namespace tp
