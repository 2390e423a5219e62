#include "trace/program_recording.h"

#include "base/at.h"
#include "base/invariant.h"

namespace tidepool {
namespace {

class ProgramRecorder {
 public:
  ProgramRecorder(const Program& program, std::span<const std::int32_t> algorithms)
      : program_(program), algorithms_(algorithms) {
    out_.name = program.name;
    out_.has_times = true;
    first_.assign(program.tensors.size(), kNone);
    last_.assign(program.tensors.size(), kNone);
    block_.assign(program.tensors.size(), kNone);
    for (OpId op = 0; op < static_cast<OpId>(program.ops.size()); ++op) {
      if (program.ops[at(op)].place != OpPlace::device) continue;
      for (const Access& access : program.ops[at(op)].accesses) {
        if (first_[at(access.tensor)] == kNone) first_[at(access.tensor)] = op;
        last_[at(access.tensor)] = op;
      }
    }
  }

  void run_iteration() {
    for (OpId op = 0; op < static_cast<OpId>(program_.ops.size()); ++op) {
      if (program_.ops[at(op)].place == OpPlace::device) run(op);
    }
  }

  Recording take() { return std::move(out_); }
  [[nodiscard]] std::size_t events() const { return out_.events.size(); }

 private:
  void run(OpId id) {
    const Op& op = program_.ops[at(id)];
    const Algorithm& algorithm = op.algorithms[at(algorithms_[at(id)])];
    out_.ops.push_back(op.name);
    for (const Access& access : op.accesses) {
      const Tensor& tensor = program_.tensors[at(access.tensor)];
      BlockId& block = block_[at(access.tensor)];
      if (tensor.persistent ? block == kNone : first_[at(access.tensor)] == id) {
        block = new_block(tensor.bytes, tensor.name, tensor.kind);
        if (!tensor.persistent) event(EventKind::malloc, block);
      }
    }
    BlockId workspace = kNone;
    if (algorithm.workspace > 0) {
      workspace = new_block(algorithm.workspace, op.name + ".workspace", TensorKind::workspace);
      event(EventKind::malloc, workspace);
      event(EventKind::write, workspace);
    }
    for (const Access& access : op.accesses) {
      const BlockId block = block_[at(access.tensor)];
      if (access.mode != AccessMode::write) event(EventKind::read, block);
      if (access.mode != AccessMode::read) event(EventKind::write, block);
    }
    now_ += algorithm.time;
    if (workspace != kNone) event(EventKind::free, workspace);
    for (const Access& access : op.accesses) {
      if (program_.tensors[at(access.tensor)].persistent || last_[at(access.tensor)] != id)
        continue;
      event(EventKind::free, block_[at(access.tensor)]);
    }
  }

  BlockId new_block(Bytes bytes, const std::string& name, TensorKind kind) {
    out_.blocks.push_back({bytes, name, kind});
    return static_cast<BlockId>(out_.blocks.size()) - 1;
  }

  void event(EventKind kind, BlockId block) {
    out_.events.push_back({kind, block, now_, static_cast<std::int32_t>(out_.ops.size()) - 1});
  }

  const Program& program_;
  std::span<const std::int32_t> algorithms_;
  Recording out_;
  Nanos now_{0};
  std::vector<OpId> first_;  ///< per tensor: its first device op
  std::vector<OpId> last_;
  std::vector<BlockId> block_;  ///< per tensor: its block in the iteration
};

}  // namespace

ProgramRecording record_program(const Program& program, std::span<const std::int32_t> algorithms,
                                int iterations) {
  invariant(iterations >= 2, "recordings are of two iterations or more");
  ProgramRecorder recorder(program, algorithms);
  recorder.run_iteration();
  const auto period = static_cast<std::int64_t>(recorder.events());
  for (int i = 1; i < iterations; ++i) recorder.run_iteration();
  return {recorder.take(), {0, period, iterations}};
}

}  // namespace tidepool
