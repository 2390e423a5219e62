#include "api/session/session_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/guard.h"
#include "base/json.h"
#include "base/system_memory.h"
#include "cost/spill.h"
#include "device/cpu/cpu_device.h"
#include "lower/plan_file.h"
#include "planners/registry.h"
#include "session/session_error.h"

namespace tidepool::api {
namespace {

constexpr double kFileSpeed = 1e9;
constexpr Nanos kFileLatency{50'000};
constexpr double kMemorySpeed = 4e9;
constexpr Nanos kMemoryLatency{10'000};
/// What leaves, where memory is unknown.
constexpr Bytes kUnknownMemory = 8 * kGiB;

[[noreturn]] void refuse(const std::string& message) {
  throw SessionError(ErrorCode::usage, message);
}

void check_options(const tp::SessionOptions& options) {
  if (options.budget <= 0) refuse("`budget` has to be given: bytes, above 0");
  for (const auto& [bytes, field] :
       {std::pair{options.budget, "budget"}, std::pair{options.away, "away"}}) {
    if (bytes < 0 || bytes > kMostTensorBytes) {
      refuse(fmt::format("`{}` is {} B: it is at most {}, and not below 0", field, bytes,
                         format_bytes(kMostTensorBytes)));
    }
  }
  for (const auto& [speed, field] :
       {std::pair{options.out_speed, "out_speed"}, std::pair{options.back_speed, "back_speed"}}) {
    // Not below: what is no number.
    if (!(speed >= 0 && speed <= 1e15)) {
      refuse(fmt::format("`{}` is {}: bytes per second, from 0 to 1e15", field, speed));
    }
  }
  if (options.time_limit < Nanos{0}) refuse("`time_limit` is below 0");
  if (options.evaluation_limit < 0) refuse("`evaluation_limit` is below 0");
  if (const auto known = make_planner(options.planner); !known) throw SessionError(known.error());
}

/// All memory that this process may have.
Bytes process_memory() {
  Bytes bytes = machine_memory().value_or(kUnknownMemory);
  if (const auto limit = group_memory_limit()) bytes = std::min(bytes, limit->bytes);
  return bytes;
}

LinkSpeed link_speed(double stated, double usual, Nanos latency) {
  return {stated > 0 ? stated : usual, latency};
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

SessionSpec session_spec(const tp::SessionOptions& options) {
  check_options(options);
  SessionSpec spec;
  CpuDeviceOptions device;
  device.threads = 1;
  device.untouched = true;
  spec.budget = options.budget;
  spec.away_bytes = options.away;
  if (options.folder.empty()) {
    device.to_host.bytes_per_second = options.out_speed;
    device.to_device.bytes_per_second = options.back_speed;
    spec.machine.set_links(link_speed(options.out_speed, kMemorySpeed, kMemoryLatency),
                           link_speed(options.back_speed, kMemorySpeed, kMemoryLatency));
    if (spec.away_bytes == 0) spec.away_bytes = process_memory();
  } else {
    device.spill = SpillOptions{.folder = options.folder, .limit = options.away};
    SpillLink link;
    link.write = link_speed(options.out_speed, kFileSpeed, kFileLatency);
    link.read = link_speed(options.back_speed, kFileSpeed, kFileLatency);
    link.memory = {kMemorySpeed, kMemoryLatency};
    spec.machine = with_spill(spec.machine, link);
    if (spec.away_bytes == 0) spec.away_bytes = std::min(8 * options.budget, kMostTensorBytes);
  }
  spec.machine.name = "session";
  spec.device = std::make_unique<CpuDevice>(device);
  spec.planner.name = options.planner;
  if (options.time_limit > Nanos{0}) spec.planner.time_limit = options.time_limit;
  spec.planner.evaluations = options.evaluation_limit;
  spec.seed = options.seed;
  spec.plan_beside = options.plan_beside;
  return spec;
}

Error session_exception_error() {
  try {
    throw;
  } catch (const SessionError& error) {
    return error.error();
  } catch (const DeviceError& error) {
    return {error.code(), error.what(), {}};
  } catch (...) {
    return current_exception_error();
  }
}

std::vector<Session::Use>& OpBlocks::of_this_thread() {
  thread_local std::vector<Session::Use> uses;
  return uses;
}

SessionState::~SessionState() {
  try {
    session_.end();
  } catch (const std::exception&) {
    // Mostly there is none.
  }
}

std::span<void* const> SessionState::begin(std::string_view op, const OpBlocks& blocks) {
  if (!is_ascii(op) && !is_utf8(std::string(op))) {
    throw SessionError(ErrorCode::bad_input, "begin: the name of the op is no UTF-8 text");
  }
  const auto pointers = session_.begin(op, blocks.uses());
  pointers_.assign(pointers.begin(), pointers.end());
  return pointers_;
}

void SessionState::exec(std::string_view op, const OpBlocks& blocks, bool pure,
                        const Function& function) {
  if (!is_ascii(op) && !is_utf8(std::string(op))) {
    throw SessionError(ErrorCode::bad_input, "exec: the name of the op is no UTF-8 text");
  }
  session_.exec(op, blocks.uses(), pure, [function](std::span<std::byte* const> addresses) {
    function(std::vector<void*>(addresses.begin(), addresses.end()));
  });
}

void SessionState::require_size(BlockHandle block, std::int64_t bytes, const char* call) {
  const Bytes size = session_.bytes(block);
  if (bytes == size) return;
  refuse(fmt::format("{} of {} B: the block has {} B, all of which it takes", call, bytes, size));
}

void SessionState::upload(BlockHandle block, const void* data, std::int64_t bytes) {
  require_size(block, bytes, "upload");
  session_.upload(block, data);
}

void SessionState::download(BlockHandle block, void* data, std::int64_t bytes) {
  require_size(block, bytes, "download");
  session_.download(block, data);
}

std::string SessionState::plan_text() {
  const auto file = session_.plan();
  return file == nullptr ? std::string() : to_json(*file).dump(1) + "\n";
}

}  // namespace tidepool::api
