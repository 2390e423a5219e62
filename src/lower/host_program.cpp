#include "lower/host_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/at.h"
#include "lower/time_plan.h"

namespace tidepool {
namespace {

class HostProgramWriter {
 public:
  HostProgramWriter(const Program& program, const Plan& plan, const Machine& machine)
      : program_(program), plan_(plan), timed_(time_plan(program, plan, machine)) {}

  Result<HostProgram> write() {
    out_.program.name = program_.name + ", on the host";
    find_releases();
    find_order();
    for (const std::int32_t i : out_.order) add_op(i);
    set_times();
    for (const PlacementId id : plan_.boundary) {
      if (plan_.kind_of(id) != SpaceKind::host) continue;
      if (known_.contains(key_of(id))) continue;
      return fail(ErrorCode::bad_input,
                  fmt::format("tensor '{}' lies on the host between iterations and is never used "
                              "there",
                              program_.tensors[at(plan_.placements[at(id)].tensor)].name));
    }
    if (out_.program.ops.empty()) return fail(ErrorCode::bad_input, "the plan uses no host memory");
    if (auto valid = validate(out_.program); !valid) return fail(valid.error());
    return std::move(out_);
  }

 private:
  /// A stay: where there are several placements of a tensor at one place, they are one.
  using Key = std::tuple<TensorId, SpaceId, Bytes>;
  [[nodiscard]] Key key_of(PlacementId id) const {
    const Placement& p = plan_.placements[at(id)];
    return {p.tensor, p.space, p.offset};
  }
  [[nodiscard]] const Instruction& instruction(std::int32_t i) const {
    return plan_.steady.instructions[at(i)];
  }

  /// Host ops until which tensors stay taken.
  void find_releases() {
    releases_.resize(program_.ops.size());
    for (const Tensor& t : program_.tensors) {
      if (t.released_at == kNone) continue;
      releases_[at(t.released_at)] = program_.ops[at(t.released_at)].place == OpPlace::host;
    }
  }

  /// What waits starts no earlier than what it waits for ends, so this order keeps all waits within
  /// the iteration.
  void find_order() {
    out_.order.resize(plan_.steady.instructions.size());
    std::iota(out_.order.begin(), out_.order.end(), 0);
    std::ranges::stable_sort(out_.order, {},
                             [&](std::int32_t i) { return timed_.steps[at(i)].start; });
  }

  TensorId tensor_at(PlacementId id) {
    const auto [it, added] =
        known_.emplace(key_of(id), static_cast<TensorId>(out_.program.tensors.size()));
    if (!added) return it->second;
    const TensorId of = plan_.placements[at(id)].tensor;
    Tensor tensor = program_.tensors[at(of)];
    tensor.name = fmt::format("{} at {}", tensor.name, plan_.placements[at(id)].offset);
    tensor.persistent =
        std::ranges::any_of(plan_.boundary, [&](PlacementId b) { return key_of(b) == key_of(id); });
    tensor.released_at = kNone;
    tensor.home = Home::anywhere;  // that is the device, of which this program knows nothing
    out_.program.tensors.push_back(std::move(tensor));
    out_.tensor_of.push_back(of);
    return it->second;
  }

  void add_access(Op& op, PlacementId id, AccessMode mode) {
    if (plan_.kind_of(id) == SpaceKind::host) op.accesses.push_back({tensor_at(id), mode});
  }

  void add_op(std::int32_t i) {
    const Instruction& x = instruction(i);
    Op op;
    if (x.kind == InstructionKind::copy) {
      add_access(op, x.from, AccessMode::read);
      add_access(op, x.to, AccessMode::write);
    } else {
      const auto& accesses = program_.ops[at(x.op)].accesses;
      for (std::size_t k = 0; k < x.operands.size(); ++k) {
        add_access(op, x.operands[k], accesses[k].mode);
      }
    }
    const bool releases = x.kind == InstructionKind::op && releases_[at(x.op)] != 0;
    if (op.accesses.empty() && !releases) return;
    op.name = fmt::format("instruction {}", i);
    op.kind = "host access";
    op.algorithms = {{"only", Nanos{0}, 0, true}};
    op.recomputable = false;
    const auto id = static_cast<OpId>(out_.program.ops.size());
    out_.program.ops.push_back(std::move(op));
    out_.instruction_of.push_back(i);
    if (releases) release(x.op, id);
  }

  /// What stays taken until an op does so where the last host op left it.
  void release(OpId by, OpId id) {
    for (std::size_t t = 0; t < out_.program.tensors.size(); ++t) {
      const TensorId of = out_.tensor_of[t];
      if (program_.tensors[at(of)].released_at != by || !is_last_stay(static_cast<TensorId>(t))) {
        continue;
      }
      out_.program.tensors[t].released_at = id;
    }
  }

  /// Of the tensor's stays that with the last access of a host op.
  [[nodiscard]] bool is_last_stay(TensorId t) const {
    for (auto op = out_.program.ops.rbegin(); op != out_.program.ops.rend(); ++op) {
      const Instruction& x = instruction(
          out_.instruction_of[at(static_cast<std::int32_t>(out_.program.ops.rend() - op - 1))]);
      if (x.kind != InstructionKind::op) continue;
      for (const Access& a : op->accesses) {
        if (out_.tensor_of[at(a.tensor)] == out_.tensor_of[at(t)]) return a.tensor == t;
      }
    }
    return false;
  }

  /// From start to start; the last one until the iteration is over.
  void set_times() {
    const auto& ops = out_.instruction_of;
    Nanos first{0};
    for (std::size_t k = 0; k < ops.size(); ++k) {
      const Step& step = timed_.steps[at(ops[k])];
      if (k == 0) first = step.start;
      const Nanos next = k + 1 < ops.size() ? timed_.steps[at(ops[k + 1])].start
                                            : std::max(step.end, first + timed_.iteration_time);
      out_.program.ops[k].algorithms[0].time = next - step.start;
    }
  }

  const Program& program_;
  const Plan& plan_;
  const TimedPlan timed_;
  HostProgram out_;
  std::map<Key, TensorId> known_;
  std::vector<char> releases_;  ///< per op: a host op until which tensors stay taken
};

}  // namespace

Result<HostProgram> host_program(const Program& program, const Plan& plan, const Machine& machine) {
  return HostProgramWriter(program, plan, machine).write();
}

Machine host_and_file(const Machine& machine) {
  const SpaceId host = machine.host();
  const SpaceId file = machine.behind_host();
  const Link& down = *machine.find_link(host, file);
  const Link& up = *machine.find_link(file, host);
  Machine m;
  m.name = machine.name + ", host and file";
  // Copies with the file are of whole blocks at both ends.
  const Bytes block = machine.spaces[at(file)].alignment;
  m.spaces[0].alignment = std::max(machine.spaces[at(host)].alignment, block);
  m.spaces[1].alignment = block;
  m.set_links(down.speed, up.speed, down.channel != up.channel);
  return m;
}

}  // namespace tidepool
