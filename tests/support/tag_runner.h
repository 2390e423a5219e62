// TagRunner: an OpRunner whose kernels hash. Every word of a value holds its tag mixed with the
// word's position, so torn, shifted, stale or foreign bytes are seen wherever they are read.
#pragma once

#include <map>
#include <mutex>

#include "base/random.h"
#include "runtime/op_runner.h"
#include "support/random_program.h"
#include "support/tags.h"

namespace tidepool::testing {

class TagRunner : public OpRunner {
 public:
  /// `guard_seed`: which guards are on in which iteration (see random_guards); 0: all.
  explicit TagRunner(const Program& program, std::uint64_t guard_seed = 0)
      : program_(program), guard_seed_(guard_seed) {}

  std::uint32_t guards(std::int64_t iteration) override {
    return guard_seed_ == 0 ? ~0U : random_guards(guard_seed_, iteration);
  }

  void launch(const OpCall& call, NativeStream) override {
    const Op& op = program_.ops[static_cast<std::size_t>(call.op)];
    std::uint64_t hash = hash_combine(static_cast<std::uint64_t>(call.op),
                                      static_cast<std::uint64_t>(call.algorithm));
    if (op.random) hash = hash_combine(hash, static_cast<std::uint64_t>(call.iteration));
    for (std::size_t k = 0; k < op.accesses.size(); ++k) {
      if (op.accesses[k].mode == AccessMode::write) continue;
      hash = hash_combine(hash, read_tag(call.pointers[k], bytes(op.accesses[k].tensor)));
    }
    if (call.workspace != nullptr) {
      const Bytes size = op.algorithms[static_cast<std::size_t>(call.algorithm)].workspace;
      write_tag(call.workspace, size, 0xdeadULL);
    }
    for (std::size_t k = 0; k < op.accesses.size(); ++k) {
      if (op.accesses[k].mode == AccessMode::read) continue;
      write_tag(call.pointers[k], bytes(op.accesses[k].tensor), hash_combine(hash, k));
    }
    if (op.place == OpPlace::host) {
      const std::lock_guard lock(mutex_);
      host_state_ = hash_combine(host_state_, hash);
      seen_[{call.iteration, call.op}] = host_state_;
    }
  }
  void load(TensorId tensor, std::byte* to) override {
    write_tag(to, bytes(tensor), mix64(static_cast<std::uint64_t>(tensor) + 77));
  }
  void store(TensorId tensor, const std::byte* from) override {
    const std::lock_guard lock(mutex_);
    final_[tensor] = read_tag(from, bytes(tensor));
  }

  /// What host ops saw, by (iteration, op), mixed with what those before them saw: host ops have
  /// state of their own, as a sum of losses is. And the final persistent values.
  using Seen = std::map<std::pair<std::int64_t, OpId>, std::uint64_t>;
  [[nodiscard]] const Seen& seen() const { return seen_; }
  [[nodiscard]] const std::map<TensorId, std::uint64_t>& final_values() const { return final_; }

 private:
  [[nodiscard]] Bytes bytes(TensorId t) const {
    return program_.tensors[static_cast<std::size_t>(t)].bytes;
  }
  const Program& program_;
  std::uint64_t guard_seed_;
  std::mutex mutex_;
  std::uint64_t host_state_ = 0;
  Seen seen_;
  std::map<TensorId, std::uint64_t> final_;
};

/// The program's own meaning: every op in order, every tensor in a buffer of its own.
inline void run_in_order(const Program& program, std::span<const std::int32_t> algorithms,
                         std::int64_t iterations, OpRunner& runner) {
  std::vector<std::vector<std::byte>> buffers;
  for (const Tensor& t : program.tensors) buffers.emplace_back(static_cast<std::size_t>(t.bytes));
  for (std::size_t t = 0; t < buffers.size(); ++t) {
    if (program.tensors[t].persistent) runner.load(static_cast<TensorId>(t), buffers[t].data());
  }
  for (std::int64_t i = 0; i < iterations; ++i) {
    const std::uint32_t guards = runner.guards(i);
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      const std::int32_t guard = program.ops[op].guard;
      if (guard != kNone && (guards >> guard & 1U) == 0) continue;
      std::vector<std::byte*> pointers;
      for (const Access& a : program.ops[op].accesses) {
        pointers.push_back(buffers[static_cast<std::size_t>(a.tensor)].data());
      }
      const auto choice = static_cast<std::size_t>(algorithms[op]);
      std::vector<std::byte> workspace(
          static_cast<std::size_t>(program.ops[op].algorithms[choice].workspace));
      OpCall call;
      call.op = static_cast<OpId>(op);
      call.algorithm = algorithms[op];
      call.iteration = i;
      call.pointers = pointers;
      call.workspace = workspace.empty() ? nullptr : workspace.data();
      runner.launch(call, nullptr);
    }
  }
  for (std::size_t t = 0; t < buffers.size(); ++t) {
    if (program.tensors[t].persistent) runner.store(static_cast<TensorId>(t), buffers[t].data());
  }
}

}  // namespace tidepool::testing
