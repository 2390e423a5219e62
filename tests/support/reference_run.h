// The oracle of exactness tests: a program run with all the memory there is.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "nn/training_program.h"
#include "runtime/op_runner.h"

namespace tidepool::nn {

/// Bytes of a tensor or a workspace. Filled with NaNs, so that reading what was never written
/// shows.
class ReferenceBuffer {
 public:
  explicit ReferenceBuffer(Bytes bytes)
      : bytes_(static_cast<std::byte*>(::operator new[](size(bytes), kAlignment))) {
    std::memset(get(), 0xff, size(bytes));
  }
  [[nodiscard]] std::byte* get() const { return bytes_.get(); }

 private:
  /// As strict as any device's; kernels may rely on it.
  static constexpr std::align_val_t kAlignment{256};
  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, kAlignment); }
  };
  static std::size_t size(Bytes bytes) {
    return static_cast<std::size_t>(std::max<Bytes>(bytes, 1));
  }

  std::unique_ptr<std::byte[], Free> bytes_;
};

/// Runs `iterations` iterations in program order on the calling thread, each tensor in a buffer of
/// its own; ops whose guard is off are skipped. Loads persistent tensors from the runner and stores
/// them back. `algorithms` has one index per op; empty means the first of each op.
inline void run_reference(const TrainingProgram& program, OpRunner& runner, std::int64_t iterations,
                          std::span<const int> algorithms = {}) {
  const Program& ir = program.program;
  assert(algorithms.empty() || algorithms.size() == ir.ops.size());
  const auto algorithm_of = [&](std::size_t op) { return algorithms.empty() ? 0 : algorithms[op]; };

  std::vector<ReferenceBuffer> buffers;
  for (std::size_t t = 0; t < ir.tensors.size(); ++t) {
    buffers.emplace_back(ir.tensors[t].bytes);
    if (ir.tensors[t].persistent) runner.load(static_cast<TensorId>(t), buffers[t].get());
  }
  Bytes workspace_bytes = 0;
  for (std::size_t op = 0; op < ir.ops.size(); ++op) {
    workspace_bytes = std::max(workspace_bytes, ir.ops[op].algorithms[algorithm_of(op)].workspace);
  }
  const ReferenceBuffer workspace(workspace_bytes);

  std::vector<std::byte*> pointers;
  for (std::int64_t iteration = 0; iteration < iterations; ++iteration) {
    const std::uint32_t guards = runner.guards(iteration);
    for (std::size_t op = 0; op < ir.ops.size(); ++op) {
      if (const std::int32_t g = ir.ops[op].guard; g != kNone && (guards >> g & 1U) == 0) continue;
      pointers.clear();
      for (const Access& access : ir.ops[op].accesses) {
        pointers.push_back(buffers[access.tensor].get());
      }
      const bool needs_workspace = ir.ops[op].algorithms[algorithm_of(op)].workspace > 0;
      runner.launch({static_cast<OpId>(op), algorithm_of(op), iteration, pointers,
                     needs_workspace ? workspace.get() : nullptr},
                    nullptr);
    }
  }
  for (std::size_t t = 0; t < ir.tensors.size(); ++t) {
    if (ir.tensors[t].persistent) runner.store(static_cast<TensorId>(t), buffers[t].get());
  }
}

}  // namespace tidepool::nn
