// Composer: what both ways of compose.h share: where everything of the part is for each device, and
// its instructions there. Private to them.
#pragma once

#include "lower/compose.h"

namespace tidepool {

class Composer {
 public:
  /// `state_space`: where tensors lie that the part does not have. `input.plan` uses a device and
  /// its host.
  Composer(const PartPlan& input, bool state_on_device);

  [[nodiscard]] const std::vector<Instruction>& list() const {
    return in_.plan.steady.instructions;
  }
  [[nodiscard]] std::int32_t devices() const { return in_.replication.devices; }
  [[nodiscard]] SpaceId host() const { return devices(); }
  [[nodiscard]] const Placement& of_part(PlacementId id) const;
  [[nodiscard]] bool on_host(PlacementId of_part) const;
  [[nodiscard]] const Op& op_of_whole(OpId of_part, std::int32_t device) const;
  /// What takes what all devices made: an op of the host or, with naive accumulation and for
  /// gradients, ops of device 0.
  [[nodiscard]] bool is_reduction(const Instruction& x) const;
  [[nodiscard]] bool is_on_host(const Instruction& reduction) const;
  /// The weight that what a reduction stands for updates: a tensor of the part; kNone where it
  /// updates none.
  [[nodiscard]] TensorId weight_of(const Instruction& reduction) const;
  /// A copy of a weight to the host, which has it.
  [[nodiscard]] bool is_needless(const Instruction& x) const;

  /// Where a weight stays on the device between iterations, or kNone.
  [[nodiscard]] PlacementId stay_of(TensorId of_part) const;
  [[nodiscard]] PlacementId placed(std::int32_t device, PlacementId of_part) const;
  /// Of a tensor that is there once.
  [[nodiscard]] PlacementId once(TensorId of_whole) const;
  [[nodiscard]] PlacementId host_copy(TensorId weight_of_part) const;
  [[nodiscard]] StreamId stream(std::int32_t device, StreamId of_part) const;
  /// Of copies between this device and the host.
  [[nodiscard]] StreamId copies_in(std::int32_t device) const { return stream(device, in_stream_); }
  [[nodiscard]] StreamId copies_out(std::int32_t device) const {
    return stream(device, out_stream_);
  }

  /// A further place of a tensor of the whole.
  PlacementId place(TensorId tensor, SpaceId space, Bytes offset);
  std::int32_t push(ScriptItem item);
  std::int32_t push_copy(StreamId stream, PlacementId from, PlacementId to);
  /// Instruction `i` of the part, which is no reduction, on a device.
  void push_instruction(std::size_t i, std::int32_t device);
  /// Instruction `i` of the part, a reduction on the host.
  void push_reduction(std::size_t i);
  void add_barriers(const Instruction& x, std::int32_t device, ScriptItem& item) const;

  [[nodiscard]] const Script& script() const { return script_; }
  /// The plan, with the entry and the boundary of weights that stay on devices.
  Result<Composed> finish();

  const PartPlan& in_;

 private:
  void set_place(std::size_t i, std::int32_t device, std::int32_t item);
  void find_stays();
  void lay_out_once(bool state_on_device);
  void lay_out_devices();
  void add_streams();
  void add_boundary();
  void keep_on_devices(Plan& plan) const;
  [[nodiscard]] std::vector<char> used_placements() const;

  Script script_;
  std::vector<PlacementId> stays_;                   ///< per tensor of the part
  std::vector<PlacementId> once_;                    ///< per tensor of the whole
  std::vector<std::vector<PlacementId>> placement_;  ///< [device][placement of the part]
  std::vector<std::vector<StreamId>> stream_;        ///< [device][stream of the part]
  std::vector<std::vector<std::int32_t>> place_;     ///< [device][instruction of the part]
  StreamId in_stream_ = kNone;                       ///< of the part
  StreamId out_stream_ = kNone;
};

template <class Body>
void for_each_placement(const Instruction& x, Body body) {
  for (const PlacementId id : x.operands) body(id);
  if (x.from != kNone) body(x.from);
  if (x.to != kNone) body(x.to);
}

}  // namespace tidepool
