// Policy evaluator: HOME's time cost model (paper, section 3.4 and algorithm 2). It says how long
// an iteration takes under a policy and a memory limit, with three clocks: compute, copies out,
// copies in. It is the paper's model, not the timing engine of `lower`.
//
// Note [HOME's clocks]. Ops run in program order. Memory is what is live with nothing away
// (weights, gradients, workspaces, all of it), less the feature maps that are away. Feeding the
// batch's inputs is not in it.
// 1. A map that is swapped leaves when its last forward reader is over: its copy out starts when
//    those before it are over. Its bytes are free when it ends. What the host has already is free
//    at once. A map to recompute is free at once.
// 2. Before an op allocates, as long as the memory would exceed the limit, compute waits for the
//    oldest copy out in flight. With none left the policy does not fit: it overshoots by the rest,
//    and goes on without it, so that policies can be ranked by the largest overshoot.
// 3. Copies in are asked for when the previous backward stage begins (MapChoice::fetch_at), in the
//    order in which they are asked for and needed. Before every op the first one asked for is
//    issued if its bytes fit, given what is away now, from here to its reader; those behind it wait
//    with it. Copies in follow one another and their own copies out; where both directions share
//    the link they follow all copies out. The reader issues the copy itself where that has not
//    happened, waiting for memory as in 2, and then waits for it to arrive.
// 4. After the reader's copies have been issued, its maps to recompute are made again. What has to
//    run for it is found by walking back until values are on the device, arriving (compute waits),
//    or on the host (they are copied in, and compute waits; one whose gap is open has then been
//    swapped in). Producers run again one after the other, each with memory for its outputs and
//    workspace as in 2. What else they make stays if it is itself to be recomputed for a later op
//    and fits beside the reader (RegeneratedMaps); otherwise it is freed after the last of the
//    producers that reads it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/stop.h"
#include "planners/published/home/policy_model.h"

namespace tidepool {

/// What is made again on the way to something else and is to be recomputed for a later op.
enum class RegeneratedMaps : std::uint8_t {
  stay_if_they_fit,  ///< HOME's
  stay,              ///< as the general schedule has it: policies it cannot run do not fit then
};

struct PolicyCost {
  Nanos time{};          ///< of an iteration; where it overshoots: as if it did not
  Bytes overshoot = 0;   ///< 0: it fits
  Nanos recomputing{};   ///< in the time
  bool gave_up = false;  ///< it is above the limit given, or was stopped; the rest says nothing

  [[nodiscard]] bool fits() const { return overshoot == 0 && !gave_up; }
};

/// Not thread-safe.
class PolicyEvaluator {
 public:
  /// The model must outlive this.
  explicit PolicyEvaluator(const PolicyModel& model,
                           RegeneratedMaps regenerated = RegeneratedMaps::stay_if_they_fit,
                           Stop stop = {});

  /// Costs of policies that do not fit begin here.
  static constexpr std::int64_t kDoesNotFit = std::int64_t{1} << 62;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  /// Of two policies the better one has the lower number: nanoseconds, or the overshoot.
  static std::int64_t number(const PolicyCost& cost) {
    if (cost.gave_up) return kNever;
    return cost.overshoot > 0 ? kDoesNotFit + cost.overshoot : cost.time.count();
  }

  /// `policy`: an Action for each feature map, possible for it. Gives up as soon as the number is
  /// known to be above `give_up_above`, or when `stop` says so. Allocates nothing once its memory
  /// has grown.
  PolicyCost evaluate(std::span<const std::uint8_t> policy, Bytes limit,
                      std::int64_t give_up_above = kNever);

 private:
  enum class Where : std::uint8_t { device, arriving, away, gone };
  struct CopyOut {
    Nanos end{};
    Bytes bytes = 0;
  };
  /// Of making something again.
  struct Remake {
    enum Kind : std::uint8_t { run, await_arrival, swap_in, copy_for_it } kind = run;
    std::int32_t id = 0;    ///< op, map or value
    ValueId alone = kNone;  ///< made for one reader only, which changes it in place
  };

  void begin(std::span<const std::uint8_t> policy, Bytes limit, std::int64_t give_up_above);
  [[nodiscard]] bool too_much(std::size_t stretch) const;
  void run_stretch(const Stretch& stretch);
  void fetch_what_fits(OpId op);
  void meet_needs(OpId op, std::int32_t first, std::int32_t end);
  void leave(MapId map);
  void retire_one() {
    now_ = std::max(now_, outs_[next_out_].end);
    gone_ += outs_[next_out_++].bytes;
  }
  void retire_ended() {
    while (next_out_ < outs_.size() && outs_[next_out_].end <= now_) retire_one();
  }
  /// Until so much, with nothing away, fits.
  void await_memory(Bytes load) {
    while (load - gone_ > limit_) {
      if (next_out_ == outs_.size()) {
        overshoot_ = std::max(overshoot_, load - gone_ - limit_);
        return;
      }
      retire_one();
    }
  }
  /// Its bytes on the host are whole.
  void await_out(std::int32_t out) {
    while (static_cast<std::int32_t>(next_out_) <= out) retire_one();
  }
  /// When so long a copy is over that is asked for now and starts no earlier than said.
  Nanos copy_in(Nanos time, Nanos earliest) {
    if (!model_.duplex) in_ = std::max(in_, out_);
    in_ = std::max({now_, in_, earliest}) + time;
    if (!model_.duplex) out_ = in_;
    return in_;
  }
  void start_copy_in(MapId map);
  void force_copy_in(MapId map, Bytes load);

  void recompute(MapId map);
  void find_way(ValueId value, OpId op);
  void find_alone(ValueId value, OpId op);
  void run_again_for(ValueId value, OpId op, ValueId alone);
  void remake(std::size_t i, MapId target);
  void run_again(std::size_t i, MapId target);
  void keep_output(const ValueUse& output, std::size_t i, MapId target);
  void copy_for_remake(ValueId value, OpId op, ValueId alone);
  [[nodiscard]] MapId covering(ValueId value, OpId op) const;
  [[nodiscard]] bool on_host(const ModelValue& value, ValueId id) const {
    return value.host_has_it || (value.host_place != kNone &&
                                 host_value_[static_cast<std::size_t>(value.host_place)] == id);
  }

  const PolicyModel& model_;
  RegeneratedMaps regenerated_;
  Stop stop_;
  std::span<const std::uint8_t> policy_;
  Bytes limit_ = 0;
  std::int64_t give_up_above_ = kNever;
  // Clocks, and what is away from the device.
  Nanos now_{};
  Nanos out_{};
  Nanos in_{};
  Bytes gone_ = 0;
  Bytes overshoot_ = 0;
  Nanos recomputing_{};
  std::vector<Where> where_;          ///< per map
  std::vector<Nanos> arrival_;        ///< per map
  std::vector<std::int32_t> out_of_;  ///< per map: its copy out, or kNone
  std::vector<CopyOut> outs_;
  std::size_t next_out_ = 0;  ///< the oldest one that may be in flight
  std::vector<MapId> asked_;  ///< copies in, in order
  std::size_t next_asked_ = 0;
  std::vector<ValueId> host_value_;     ///< per place on the host
  std::vector<std::int32_t> host_out_;  ///< the copy out that fills it
  // Of one recomputation; marks count up.
  std::vector<Remake> way_;
  std::uint64_t mark_ = 0;
  std::vector<std::uint64_t> planned_;     ///< per value: it is on the way
  std::vector<std::uint64_t> held_;        ///< per value: its bytes are in `temporary_`
  std::vector<std::int32_t> last_reader_;  ///< per value on the way: of `way_`, or kNone
  Bytes temporary_ = 0;
};

}  // namespace tidepool
