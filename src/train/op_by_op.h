// OpByOp: a training program's ops called one after the other through a Session, as a framework
// without a graph calls them. Nothing else of the program reaches the Session.
#pragma once

#include <vector>

#include "planning/algorithm_choice.h"
#include "runtime/op_runner.h"
#include "session/session.h"

namespace tidepool {

class OpByOp {
 public:
  /// All must outlive this. Kernels run on the thread that calls.
  OpByOp(const Program& program, AlgorithmChoice algorithms, Session& session, OpRunner& runner);

  /// Persistent tensors are allocated and get their values.
  void load();
  /// Each other tensor is allocated before its first access and freed behind its last one, the
  /// workspace of an op around it.
  void iteration(std::int64_t number);
  /// Persistent tensors hand out their values, and are freed.
  void store();

 private:
  struct Call {
    std::vector<std::size_t> accesses;  ///< of the op, in the order of the session: reads first
    std::size_t writes_end = 0;         ///< in this order; a workspace is behind the writes
    Bytes workspace = 0;
    bool pure = false;
  };

  [[nodiscard]] Call call_of(OpId id) const;
  void find_last_uses(std::uint32_t guards);
  void run(OpId id, std::int64_t iteration);
  void launch(OpId id, std::int64_t iteration, std::span<std::byte* const> pointers);

  const Program& program_;
  AlgorithmChoice algorithms_;
  Session& session_;
  OpRunner& runner_;
  std::vector<Call> calls_;          ///< by op
  std::vector<BlockHandle> blocks_;  ///< by tensor; generation 0: it is not allocated
  std::vector<OpId> last_use_;       ///< by tensor, of those that are not persistent
  std::vector<Session::Use> uses_;
  std::vector<std::byte*> pointers_;
};

}  // namespace tidepool
