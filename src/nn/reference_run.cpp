#include "nn/reference_run.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace tidepool::nn {
namespace {

/// As strict as any device's; kernels may rely on it.
constexpr std::align_val_t kAlignment{256};

struct FreeBuffer {
  void operator()(std::byte* buffer) const { ::operator delete[](buffer, kAlignment); }
};
using Buffer = std::unique_ptr<std::byte[], FreeBuffer>;

/// Filled with NaNs, so that reading what was never written shows.
Buffer make_buffer(Bytes bytes) {
  const auto size = static_cast<std::size_t>(std::max<Bytes>(bytes, 1));
  Buffer buffer(static_cast<std::byte*>(::operator new[](size, kAlignment)));
  std::memset(buffer.get(), 0xff, size);
  return buffer;
}

}  // namespace

void run_reference(const TrainingProgram& program, OpRunner& runner, std::int64_t iterations,
                   std::span<const int> algorithms) {
  const Program& ir = program.program;
  assert(algorithms.empty() || algorithms.size() == ir.ops.size());
  const auto algorithm_of = [&](std::size_t op) { return algorithms.empty() ? 0 : algorithms[op]; };

  std::vector<Buffer> buffers;
  for (std::size_t t = 0; t < ir.tensors.size(); ++t) {
    buffers.push_back(make_buffer(ir.tensors[t].bytes));
    if (ir.tensors[t].persistent) runner.load(static_cast<TensorId>(t), buffers[t].get());
  }
  Bytes workspace_bytes = 0;
  for (std::size_t op = 0; op < ir.ops.size(); ++op) {
    workspace_bytes = std::max(workspace_bytes, ir.ops[op].algorithms[algorithm_of(op)].workspace);
  }
  const Buffer workspace = make_buffer(workspace_bytes);

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
