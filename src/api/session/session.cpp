#include "tidepool/session.h"

#include "api/session/session_state.h"
#include "api/thrown.h"

namespace tp {

namespace api = tidepool::api;

namespace {

template <class Body>
auto bordered(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    api::throw_error(api::session_exception_error());
  }
}

api::OpBlocks blocks_of(const Blocks& reads, const Blocks& writes, const Blocks& updates) {
  return {reads.list(), writes.list(), updates.list()};
}

}  // namespace

Session::Session(const SessionOptions& options)
    : state_(bordered([&] { return std::make_unique<api::SessionState>(options); })) {}

Session::~Session() = default;

Block Session::malloc(std::int64_t bytes, BlockOptions options) {
  return bordered(
      [&] { return Block{api::id_of(state_->session().malloc(bytes, options.fixed))}; });
}

void* Session::address(Block block) {
  return bordered([&] { return state_->session().address(api::handle_of(block)); });
}

void Session::free(Block block) {
  bordered([&] { state_->session().free(api::handle_of(block)); });
}

std::int64_t Session::size(Block block) {
  return bordered([&] { return state_->session().bytes(api::handle_of(block)); });
}

std::span<void* const> Session::begin(std::string_view op, Blocks reads, Blocks writes,
                                      Blocks updates) {
  return bordered([&] { return state_->begin(op, blocks_of(reads, writes, updates)); });
}

void Session::end() {
  bordered([&] { state_->session().end(); });
}

void Session::exec(const Function& function, std::string_view op, Blocks reads, Blocks writes,
                   Blocks updates, bool pure) {
  if (!function) api::throw_usage("exec: there is no function");
  // The function may be kept and run again when this call is over.
  const auto thrown = std::make_shared<std::exception_ptr>();
  const auto watched = [function, thrown](std::span<void* const> pointers) {
    try {
      function(pointers);
    } catch (...) {
      *thrown = std::current_exception();
      throw;
    }
  };
  try {
    state_->exec(op, blocks_of(reads, writes, updates), pure, watched);
  } catch (...) {
    if (*thrown != nullptr) throw;
    api::throw_error(api::session_exception_error());
  }
}

void Session::upload(Block block, const void* data, std::int64_t bytes) {
  if (data == nullptr) api::throw_usage("upload: data is null");
  bordered([&] { state_->upload(api::handle_of(block), data, bytes); });
}

void Session::download(Block block, void* data, std::int64_t bytes) {
  if (data == nullptr) api::throw_usage("download: data is null");
  bordered([&] { state_->download(api::handle_of(block), data, bytes); });
}

bool Session::plan_now() {
  return bordered([&] { return state_->session().plan_now(); });
}

SessionReport Session::report() {
  return bordered([&] {
    tidepool::SessionReport own = state_->session().report();
    SessionReport report;
    report.planned_iterations = own.planned_iterations;
    report.planned_ops = own.planned_ops;
    report.reactive_ops = own.reactive_ops;
    report.left_plans = own.left_plans;
    report.patterns = own.patterns;
    report.iteration_calls = own.iteration_calls;
    report.moved = own.moved;
    report.device_peak = own.device_peak;
    report.live_blocks = own.live_blocks;
    report.idle_blocks = own.idle_blocks;
    report.idle_bytes = own.idle_bytes;
    report.stalled = own.stalled;
    report.predicted = own.predicted;
    report.measured = own.measured;
    report.why_no_plan = std::move(own.why_no_plan);
    return report;
  });
}

std::string Session::plan_json() {
  return bordered([&] { return state_->plan_text(); });
}

}  // namespace tp
