#include "measure/expected_memory.h"

#include "runtime/reactive.h"

namespace tidepool {
namespace {

/// What planning and the first iterations add to the heap.
constexpr Bytes kGrowth = 8 * kMiB;
/// ... and without planning. Less, so that a plan made for this `memory` by another process, whose
/// heap is not quite the same, has room in this one.
constexpr Bytes kGrowthWithAPlan = 4 * kMiB;
/// What resident memory differs by from what is expected, where rounds are still to be chosen:
/// kernels are made for several sizes. Measured: up to 11 MiB on a processor with AVX-512.
constexpr Bytes kBeyondExpected = 12 * kMiB;
/// What is expected is rounded up to this: the same training has the same arena the next time, and
/// its plan from the cache, most often.
constexpr Bytes kStep = 2 * kMiB;

}  // namespace

Bytes bytes_of_hashes(const Job& job, Bytes file) {
  constexpr Bytes kBytesOfAHash = 512;  // 8 B for 4 KiB
  return job.spec().device.spill.verify ? file / kBytesOfAHash : 0;
}

Bytes bytes_of_hashes(const Job& job, const Plan& plan) {
  const Arena& last = plan.arenas.back();
  return bytes_of_hashes(job, last.kind == SpaceKind::file ? last.bytes : 0);
}

Result<ProcessMemory> expected_memory(const Job& job, Bytes limit, bool plans) {
  const auto runner = job.make_runner_of_one();
  if (!runner) return fail(runner.error());
  return ProcessMemory{
      limit, align_up(resident_beside_arenas(), kStep) + (plans ? kGrowth : kGrowthWithAPlan),
      Reactive::enough_host_bytes(job.program(), job.alignment(), {}, Away::file),
      bytes_of_hashes(job, Reactive::enough_file_bytes(job.program(), job.alignment())),
      job.spec().sub_batch == 0 ? kBeyondExpected : 0};
}

}  // namespace tidepool
