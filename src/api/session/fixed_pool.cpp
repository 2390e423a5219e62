// Both interfaces of fixed pools, C and C++.
#include "tidepool/fixed_pool.h"

#include <fmt/format.h>

#include <bit>

#include "api/guard.h"
#include "api/session/session_state.h"
#include "api/thrown.h"
#include "session/fixed_pool.h"
#include "session/session_error.h"

namespace api = tidepool::api;
using tidepool::ErrorCode;
using tidepool::SessionError;

struct tp_fixed_pool {
  tidepool::FixedPool pool;
};

namespace {

constexpr std::int64_t kPage = 4096;

tidepool::FixedPoolSpec spec_of(const tp::FixedPoolOptions& options) {
  const auto refuse = [](const std::string& message) {
    throw SessionError(ErrorCode::usage, message);
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 45;
  if (options.budget <= 0 || options.budget > kMost) {
    refuse(fmt::format("`budget` is {} B: it has to be given, and is at most {} B", options.budget,
                       kMost));
  }
  const std::int64_t alignment = options.alignment;
  if (alignment <= 0 || alignment > kPage ||
      !std::has_single_bit(static_cast<std::uint64_t>(alignment))) {
    refuse(fmt::format("`alignment` is {}: a power of two up to {}", alignment, kPage));
  }
  if (options.time_limit <= tidepool::Nanos{0}) refuse("`time_limit` has to be above 0");
  return {options.budget, alignment, options.time_limit};
}

template <class Body>
auto fixed_pool_bordered(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    api::throw_error(api::session_exception_error());
  }
}

template <class Body>
tp_status with_pool(tp_fixed_pool* pool, Body body) {
  return api::guarded([&]() -> tp_status {
    if (pool == nullptr) return api::refuse_null("pool");
    try {
      return body(pool->pool);
    } catch (...) {
      return api::remember(api::session_exception_error());
    }
  });
}

tp_status no_block() {
  return api::remember({ErrorCode::usage, "no block of this pool begins there", {}});
}

}  // namespace

namespace tp {

FixedPool::FixedPool(const FixedPoolOptions& options)
    : pool_(fixed_pool_bordered(
          [&] { return std::make_unique<tidepool::FixedPool>(spec_of(options)); })) {}

FixedPool::~FixedPool() = default;

void* FixedPool::malloc(std::int64_t bytes) {
  return fixed_pool_bordered([&] { return pool_->allocate(bytes); });
}

void FixedPool::free(void* block) {
  if (block == nullptr) return;
  const bool freed = fixed_pool_bordered([&] { return pool_->free(block); });
  if (!freed) api::throw_usage("free: no block of this pool begins there");
}

bool FixedPool::contains(const void* address) const { return pool_->contains(address); }

std::int64_t FixedPool::size(const void* block) const { return pool_->bytes(block); }

FixedPoolReport FixedPool::report() const {
  const tidepool::FixedPoolReport own = pool_->report();
  return {own.served,    own.others,    own.iterations,    own.left_plans,  own.iteration_mallocs,
          own.peak_load, own.footprint, own.planned_bytes, own.planned_load};
}

void FixedPool::reset_peaks() { pool_->reset_peaks(); }

}  // namespace tp

tp_status tp_fixed_pool_make(const tp_fixed_pool_options* options, tp_fixed_pool** out) {
  return api::guarded([&]() -> tp_status {
    if (options == nullptr) return api::refuse_null("options");
    if (out == nullptr) return api::refuse_null("out");
    const auto own = api::taken(options, "tp_fixed_pool_options");
    if (!own) return TP_USAGE;
    try {
      tp::FixedPoolOptions asked;
      asked.budget = own->budget;
      if (own->alignment != 0) asked.alignment = own->alignment;
      if (own->time_limit != 0) asked.time_limit = std::chrono::nanoseconds{own->time_limit};
      *out = new tp_fixed_pool{tidepool::FixedPool(spec_of(asked))};
    } catch (...) {
      return api::remember(api::session_exception_error());
    }
    return TP_OK;
  });
}

void tp_fixed_pool_free(tp_fixed_pool* pool) { delete pool; }

tp_status tp_fixed_pool_malloc(tp_fixed_pool* pool, int64_t bytes, void** out) {
  return with_pool(pool, [&](tidepool::FixedPool& own) -> tp_status {
    if (out == nullptr) return api::refuse_null("out");
    if (bytes <= 0) {
      throw SessionError(ErrorCode::usage, fmt::format("malloc of {} B: it takes 1 B", bytes));
    }
    void* const block = own.allocate(bytes);
    if (block == nullptr) {
      throw SessionError(ErrorCode::infeasible,
                         fmt::format("malloc of {} B: the budget has no room", bytes));
    }
    *out = block;
    return TP_OK;
  });
}

tp_status tp_fixed_pool_free_block(tp_fixed_pool* pool, void* block) {
  return with_pool(pool,
                   [&](tidepool::FixedPool& own) { return own.free(block) ? TP_OK : no_block(); });
}

tp_status tp_fixed_pool_size(tp_fixed_pool* pool, const void* block, int64_t* bytes) {
  return with_pool(pool, [&](tidepool::FixedPool& own) -> tp_status {
    if (bytes == nullptr) return api::refuse_null("bytes");
    *bytes = own.bytes(block);
    return TP_OK;
  });
}

tp_status tp_fixed_pool_report(tp_fixed_pool* pool, tp_fixed_pool_info* out) {
  return with_pool(pool, [&](tidepool::FixedPool& own) -> tp_status {
    if (out == nullptr) return api::refuse_null("out");
    const tidepool::FixedPoolReport r = own.report();
    tp_fixed_pool_info info{};
    info.served = r.served;
    info.others = r.others;
    info.iterations = r.iterations;
    info.left_plans = r.left_plans;
    info.iteration_mallocs = r.iteration_mallocs;
    info.peak_load = r.peak_load;
    info.footprint = r.footprint;
    info.planned_bytes = r.planned_bytes;
    info.planned_load = r.planned_load;
    return api::given_back(info, out, "tp_fixed_pool_info");
  });
}
