// Rounds of a job: which sub-batches there are to choose from, and which of them a budget can run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "ir/program.h"

namespace tidepool {

/// The batch and all smaller sizes that moDNN's rounding makes (modnn.md: above 64 multiples of 64,
/// then 64, 32 and powers of two), the largest first.
std::vector<std::int64_t> round_sizes(std::int64_t batch);

/// The program of the same job with its batch in rounds of `sub_batch` samples. `statistics`:
/// rounds may take their own batch statistics. Its ops need no times.
using ProgramInRounds = std::function<Result<Program>(std::int64_t sub_batch, bool statistics)>;

/// Programs are not made larger than this only to look at them: a batch of a million in rounds of
/// one sample has tens of millions of ops, which take minutes and gigabytes to write down.
inline constexpr std::int64_t kMostOps = 100'000;
inline constexpr std::int64_t kMostOpsAtNeed = 1'000'000;

/// A job's program, and what else it could be.
struct JobRounds {
  const Program& program;       ///< as it is stated
  bool statistics = false;      ///< rounds may take their own batch statistics
  ProgramInRounds in_rounds{};  ///< empty: there is only `program`
  /// What may be chosen from, the largest first; empty: `program` is what runs.
  std::vector<std::int64_t> offered{};
  bool suggest = true;      ///< errors of budgets name rounds with which they could be met
  bool may_choose = false;  ///< and that `sub_batch` auto would do, as the caller takes that
  std::int64_t most_ops = kMostOps;  ///< of a program that is only looked at
  /// The same where a budget cannot be met otherwise.
  std::int64_t most_ops_at_need = kMostOpsAtNeed;

  /// Both, where memory for programs is limited.
  void limit_ops(std::int64_t most) { most_ops = most_ops_at_need = most; }
};

/// The offered sizes whose programs do not have too many ops; at least the first.
std::vector<std::int64_t> sizes_of_few_ops(const JobRounds& rounds);

/// Of the offered sizes those with which the job can run in `device` bytes at all: from the largest
/// that can down to where programs get more than `most_ops`, or, where none of these can, the
/// largest of those up to `most_ops_at_need`. Where there is none: `infeasible`, with the smallest
/// budget of the smallest size.
Result<std::vector<std::int64_t>> sizes_within(const JobRounds& rounds, Bytes device,
                                               Bytes alignment);

/// Peak load of the whole batch at once without a budget, least-workspace algorithms: what
/// percentages refer to. Where kernels cannot number the elements of that, of the largest rounds
/// with which such a program can be made.
Result<Bytes> whole_batch_peak(const JobRounds& rounds, Bytes alignment);

/// The beginning of a message: the budget, where there is any.
std::string not_met(Bytes device);

}  // namespace tidepool
