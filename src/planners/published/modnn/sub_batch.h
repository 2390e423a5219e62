// moDNN's choice of the sub-batch.
//
// Source: section 5.1.2 of the paper (see memory_manager.h), equation 8.
//
// What the paper leaves open, or this system sees otherwise:
// - The third term of equation 8 is plus the largest workspace over the window, of the fastest
//   algorithms.
// - |T| are the tasks of the first round without updates of weights and sums over rounds, which
//   come once; a program that says nothing of phases has all device ops of the first round.
// - A profile of a size is the program of that size: the workload measures or computes what it is
//   asked for. The binary search asks for one size after the other until it settles.
// - Only sizes on offer can be had: of the size found, the largest on offer up to what rounding
//   makes of it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "planners/planner_context.h"

namespace tidepool::modnn {

inline constexpr double kPublishedAlpha = 0.15;  ///< of equation 8

struct WindowRule {
  double alpha = kPublishedAlpha;
  Bytes alignment = 1;         ///< of addresses
  bool weights_leave = false;  ///< weights are blocks like others, and there is no S_W
};

/// Equation 8: the most bytes that any alpha |T| tasks in a row need, each block once, with S_W and
/// the largest workspace. `algorithms`: one per op.
Bytes window_bytes(const Program& program, std::span<const std::int32_t> algorithms,
                   const WindowRule& rule);

/// A multiple of 64 above 64, of 32 from 32 on, of 16 from 16 on, and so on: below 64 a power of
/// two. Never more than `size`, which is at least 1.
std::int64_t round_sub_batch(std::int64_t size);

/// How a size is chosen.
struct SubBatchRule {
  Bytes budget = 0;
  WindowRule window;
  /// The algorithms that would be best, one per op: the fastest, where they may be chosen.
  std::function<std::vector<std::int32_t>(const Program&)> algorithms;
};

/// The largest size that fits by equation 8: the whole batch as it is, others rounded. The smallest
/// on offer where none fits. Fails where the workload has no program for a size it offers.
Result<std::int64_t> select_sub_batch(Workload& workload, const SubBatchRule& rule);

/// What a planner tries, the largest size first.
struct SizesToTry {
  /// The size chosen for its budget and, for where that does not do after all, the smaller ones on
  /// offer. The workload's own alone where the planner may not choose, or has no choice.
  std::vector<std::int64_t> sizes;
  /// Equation 8 holds for the first, or was not asked.
  bool fits = true;
};

/// The alignment is the machine's.
Result<SizesToTry> sub_batches_from_chosen(PlannerContext& context, WindowRule window);

}  // namespace tidepool::modnn
