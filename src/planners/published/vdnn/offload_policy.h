// What vDNN offloads and when it prefetches; see Note [vDNN] in vdnn_all.h.
#pragma once

#include <vector>

#include "planners/planner_context.h"
#include "planners/toolkit/layer_passes.h"
#include "planners/toolkit/strategy_builder.h"

namespace tidepool {

enum class Offloaded : std::uint8_t {
  all,           ///< every layer's input
  convolutions,  ///< what a convolution reads
};

/// The policy for one program.
class OffloadPolicy {
 public:
  /// Both must outlive the policy. `load`: bytes live at each op.
  OffloadPolicy(const Program& program, const AccessIndex& index, const std::vector<Bytes>& load,
                Offloaded what);

  /// Gaps and hints. Returns how many inputs leave. Once.
  std::size_t decide(StrategyBuilder& builder);

 private:
  [[nodiscard]] const Gap& gap(GapId g) const { return index_.gaps()[static_cast<std::size_t>(g)]; }
  void find_kind(const Op& op);
  void find_input(TensorId t);
  [[nodiscard]] bool is_offloaded(TensorId t, const Gap& g) const;
  void prefetch_during(std::size_t asking, StrategyBuilder& builder);
  void hint(std::size_t owner, std::int32_t asking, StrategyBuilder& builder) const;
  [[nodiscard]] OpId end_of_next(std::size_t pass) const;
  [[nodiscard]] OpId device_op(OpId op, const Gap& g) const;

  const Program& program_;
  const AccessIndex& index_;
  Offloaded what_;
  LayerPasses passes_;
  std::vector<std::int32_t> convolutions_;  ///< forward passes with one, in order
  std::vector<std::int32_t> classifier_;    ///< per round: its first pass, or kNone
  std::vector<std::vector<GapId>> inputs_;  ///< per pass: what is offloaded behind it
  std::vector<char> fetched_;               ///< per pass: some backward pass prefetches them
};

struct OffloadStrategy {
  Strategy strategy;
  std::size_t offloaded = 0;
};

/// Of the workload's own size. Fails where the program cannot be expanded at all.
Result<OffloadStrategy> offload(const Lowering& lowering, Offloaded what,
                                std::vector<std::int32_t> algorithms);

}  // namespace tidepool
