#include "train/in_memory.h"

#include "base/system_memory.h"

namespace tidepool {

Result<void> check_memory(const TrainingSpec& spec) {
  const auto refuse = [](const char* what) { return fail(ErrorCode::usage, what); };
  const bool memory = spec.budget.memory.given();
  if (memory != spec.job.device.spills()) {
    return refuse(memory ? "`memory` needs `spill`: the folder for what does not fit"
                         : "`spill` needs `memory`: what all of the process may take");
  }
  if (!memory) return {};
  if (spec.budget.limited() || spec.budget.host > 0) {
    return refuse("`memory` is of the whole process, `budget` of the arena alone: give one");
  }
  if (spec.job.devices > 1) return refuse("`spill` works with one device, not with `devices`");
  if (spec.comparison == Comparison::bits) {
    return refuse(
        "beside `memory` no training without a budget can run: train once with and once without "
        "it, with the same `threads`, `sub_batch` and algorithms, and compare the two state crc32");
  }
  return {};
}

void spare_memory() {
  use_one_heap();
  forget_unused_code();
}

MemoryReport memory_report(const ProcessMemory& process, const Program& program) {
  MemoryReport report;
  report.process = process;
  for (const Tensor& t : program.tensors) report.state += t.persistent ? t.bytes : 0;
  return report;
}

}  // namespace tidepool
