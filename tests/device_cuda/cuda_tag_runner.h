// TagRunner on a GPU: device ops hash their operands in a kernel, host ops as before.
#pragma once

#include <gtest/gtest.h>

#include "device_cuda/tag_job.h"
#include "support/tag_runner.h"

namespace tidepool::testing {

class CudaTagRunner : public TagRunner {
 public:
  explicit CudaTagRunner(const Program& program) : TagRunner(program), program_(program) {}

  void launch(const OpCall& call, NativeStream stream) override {
    const Op& op = program_.ops[static_cast<std::size_t>(call.op)];
    if (op.place == OpPlace::host) return TagRunner::launch(call, stream);
    TagJob job;
    job.hash = hash_combine(static_cast<std::uint64_t>(call.op),
                            static_cast<std::uint64_t>(call.algorithm));
    if (op.random) job.hash = hash_combine(job.hash, static_cast<std::uint64_t>(call.iteration));
    ASSERT_LE(op.accesses.size(), TagJob::kMost);
    for (const Access& access : op.accesses) {
      job.operands[job.count] = {call.pointers[job.count],
                                 program_.tensors[static_cast<std::size_t>(access.tensor)].bytes,
                                 access.mode != AccessMode::write, access.mode != AccessMode::read};
      ++job.count;
    }
    job.workspace = call.workspace;
    if (call.workspace != nullptr) {
      job.workspace_bytes = op.algorithms[static_cast<std::size_t>(call.algorithm)].workspace;
    }
    enqueue_tags(job, stream);
  }

 private:
  const Program& program_;
};

}  // namespace tidepool::testing
