// Plans over more spaces than one device and its host, made of valid plans for one device.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "check/check.h"
#include "cost/machine.h"
#include "schedule/schedule.h"

namespace tidepool::testing {

struct SpacedPlan {
  Program program;
  Plan plan;
  Machine machine;
  CheckLimits limits;
};

/// Exactly what the plan takes.
inline CheckLimits tight_limits(const Plan& plan, const Machine& machine) {
  CheckLimits limits;
  for (const Arena& a : plan.arenas) limits.spaces.push_back({a.kind, a.bytes, a.alignment});
  for (const Link& link : machine.links) limits.links.push_back({link.from, link.to, link.channel});
  return limits;
}

/// Instructions put into a list; waits still name the places of before.
class Insertion {
 public:
  explicit Insertion(Schedule& schedule)
      : schedule_(schedule),
        before_(schedule.instructions.size() + 1),
        moved_(schedule.instructions.size()) {}

  /// Right before the one that is at `index` now; behind what was added there already.
  void add(std::size_t index, Instruction instruction) {
    before_[index].push_back(std::move(instruction));
  }
  /// Where an instruction of before, or the `k`th that was added before it, will be.
  [[nodiscard]] std::int32_t place(std::size_t index) const {
    std::size_t place = index;
    for (std::size_t i = 0; i <= index; ++i) place += before_[i].size();
    return static_cast<std::int32_t>(place);
  }
  [[nodiscard]] std::int32_t place_of_added(std::size_t index, std::size_t k) const {
    return place(index) - static_cast<std::int32_t>(before_[index].size() - k);
  }
  /// The waits of what was added name places of after.
  void apply() {
    auto& list = schedule_.instructions;
    for (std::size_t i = 0; i < list.size(); ++i) moved_[i] = place(i);
    std::vector<Instruction> result;
    for (std::size_t i = 0; i <= list.size(); ++i) {
      for (Instruction& x : before_[i]) result.push_back(std::move(x));
      if (i == list.size()) break;
      for (Wait& w : list[i].waits) w.index = moved_[static_cast<std::size_t>(w.index)];
      result.push_back(std::move(list[i]));
    }
    list = std::move(result);
  }

 private:
  Schedule& schedule_;
  std::vector<std::vector<Instruction>> before_;
  std::vector<std::int32_t> moved_;
};

/// A third tier: some of what waits on the host for its copy in waits in a file meanwhile, and
/// comes back to another place of the host. `machine`: one device and its host.
class FileTier {
 public:
  FileTier(Program program, Plan plan, Machine machine, std::uint64_t seed)
      : p_{std::move(program), std::move(plan), std::move(machine), {}}, random_(seed) {}

  SpacedPlan make() {
    const std::int32_t channels = p_.machine.channels();
    // Copies with the file are of whole blocks at both ends.
    const Bytes block = p_.plan.arenas[1].alignment;
    p_.machine.spaces.push_back({SpaceKind::file, 0, block});
    p_.machine.links.push_back({1, kFile, {5e8, Nanos{900}}, channels});
    p_.machine.links.push_back({kFile, 1, {6e8, Nanos{700}}, channels + 1});
    p_.plan.arenas.push_back({SpaceKind::file, 0, block});
    to_file_ = add_stream();
    from_file_ = add_stream();
    Insertion insertion(p_.plan.steady);
    std::vector<Stay> stays = find_stays();
    for (Stay& stay : stays) plan_stay(stay, insertion);
    insertion.apply();
    // Only now is it known where everything is.
    for (const Stay& stay : stays) order(stay, insertion);
    p_.limits = tight_limits(p_.plan, p_.machine);
    return std::move(p_);
  }

 private:
  static constexpr SpaceId kFile = 2;
  struct Stay {
    std::size_t out = 0;  // instructions of before
    std::size_t in = 0;
    std::size_t number_at_out = 0;  // among what is added there
    std::size_t number_at_in = 0;
    PlacementId file = kNone;
    PlacementId back = kNone;  // on the host
  };

  StreamId add_stream() {
    p_.plan.streams.push_back({0, StreamKind::copy});
    return static_cast<StreamId>(p_.plan.streams.size()) - 1;
  }
  std::vector<Instruction>& list() { return p_.plan.steady.instructions; }
  Instruction& at(std::int32_t index) { return list()[static_cast<std::size_t>(index)]; }

  /// Copies out whose host bytes serve one later copy in and nothing else.
  std::vector<Stay> find_stays() {
    std::vector<Stay> stays;
    const auto& plan = p_.plan;
    for (std::size_t o = 0; o < list().size(); ++o) {
      const Instruction& out = list()[o];
      if (out.kind != InstructionKind::copy || plan.kind_of(out.to) != SpaceKind::host) continue;
      if (std::ranges::find(plan.boundary, out.to) != plan.boundary.end()) continue;
      std::size_t uses = 0;
      std::size_t in = 0;
      for (std::size_t i = 0; i < list().size(); ++i) {
        const Instruction& x = list()[i];
        if (x.kind == InstructionKind::copy && x.from == out.to) in = i;
        uses += x.from == out.to || (i != o && x.to == out.to) ||
                std::ranges::find(x.operands, out.to) != x.operands.end();
      }
      if (uses == 1 && in > o && random_.below(3) > 0) stays.push_back({o, in, 0, 0, kNone, kNone});
    }
    return stays;
  }

  PlacementId place(SpaceId space, TensorId tensor, Bytes bytes) {
    Arena& arena = p_.plan.arenas[static_cast<std::size_t>(space)];
    const Bytes offset = align_up(arena.bytes, arena.alignment);
    arena.bytes = offset + align_up(bytes, arena.alignment);
    p_.plan.placements.push_back({tensor, space, offset, bytes});
    return static_cast<PlacementId>(p_.plan.placements.size()) - 1;
  }

  Instruction copy(StreamId stream, PlacementId from, PlacementId to, Bytes bytes) const {
    Instruction x;
    x.kind = InstructionKind::copy;
    x.stream = stream;
    x.from = from;
    x.to = to;
    x.bytes = bytes;
    return x;
  }

  void plan_stay(Stay& stay, Insertion& insertion) {
    const Instruction out = list()[stay.out];
    const TensorId tensor = p_.plan.placements[static_cast<std::size_t>(out.to)].tensor;
    stay.file = place(kFile, tensor, out.bytes);
    stay.back = place(1, tensor, out.bytes);
    stay.number_at_out = added_[stay.out + 1]++;
    insertion.add(stay.out + 1, copy(to_file_, out.to, stay.file, out.bytes));
    stay.number_at_in = added_[stay.in]++;
    insertion.add(stay.in, copy(from_file_, stay.file, stay.back, out.bytes));
  }

  void order(const Stay& stay, const Insertion& insertion) {
    const std::int32_t out = insertion.place(stay.out);
    const std::int32_t in = insertion.place(stay.in);
    const std::int32_t down = insertion.place_of_added(stay.out + 1, stay.number_at_out);
    const std::int32_t up = insertion.place_of_added(stay.in, stay.number_at_in);
    at(down).waits = {{at(out).stream, out, 0}, {from_file_, up, -1}};
    at(up).waits = {{to_file_, down, 0}, {at(in).stream, in, -1}};
    at(out).waits.push_back({to_file_, down, -1});
    at(in).waits.push_back({from_file_, up, 0});
    at(in).from = stay.back;
  }

  SpacedPlan p_;
  Random random_;
  StreamId to_file_ = 0;
  StreamId from_file_ = 0;
  std::map<std::size_t, std::size_t> added_;  ///< how many before each instruction
};

/// Two trainings side by side, each on a device of its own, with one host; and a message from one
/// device to the other each iteration, over a link of their own, that the host looks at.
class TwoDevices {
 public:
  struct Part {
    Program program;
    Plan plan;
    Machine machine;
  };

  TwoDevices(Part a, Part b) : parts_{std::move(a), std::move(b)} {}

  SpacedPlan make() {
    p_.program.name = "two devices";
    p_.program.batch = p_.program.sub_batch = 1;
    make_machine();
    p_.plan.arenas = {parts_[0].plan.arenas[0], parts_[1].plan.arenas[0], parts_[0].plan.arenas[1]};
    Arena& host = p_.plan.arenas[kHost];
    host_base_ = {0, align_up(host.bytes, host.alignment)};
    host.bytes = host_base_[1] + parts_[1].plan.arenas[1].bytes;
    for (std::size_t d = 0; d < 2; ++d) add_tables(d);
    merge_ops();
    merge_steady();
    for (std::size_t d = 0; d < 2; ++d) {
      append(p_.plan.entry, parts_[d].plan.entry, d);
      append(p_.plan.exit, parts_[d].plan.exit, d);
    }
    add_message();
    p_.limits = tight_limits(p_.plan, p_.machine);
    return std::move(p_);
  }

 private:
  static constexpr SpaceId kHost = 2;

  void make_machine() {
    Machine& m = p_.machine;
    const Machine& a = parts_[0].machine;
    const Machine& b = parts_[1].machine;
    m.name = "two devices";
    m.spaces = {a.spaces[0], b.spaces[0], a.spaces[1]};
    m.links = {{0, kHost, a.to_host(), 0}, {kHost, 0, a.to_device(), a.duplex() ? 1 : 0}};
    std::int32_t channels = m.channels();
    m.links.push_back({1, kHost, b.to_host(), channels});
    m.links.push_back({kHost, 1, b.to_device(), channels + (b.duplex() ? 1 : 0)});
    channels = m.channels();
    m.links.push_back({0, 1, {2e9, Nanos{1500}}, channels});
  }

  /// Streams, tensors and placements of one part; where its own are found afterwards.
  void add_tables(std::size_t d) {
    const Part& part = parts_[d];
    for (const Stream& s : part.plan.streams) {
      if (s.kind == StreamKind::host && host_stream_ != kNone) {
        streams_[d].push_back(host_stream_);
        continue;
      }
      const bool compute = s.kind == StreamKind::compute;
      p_.plan.streams.push_back({compute ? static_cast<std::int32_t>(d) : 0, s.kind});
      streams_[d].push_back(static_cast<StreamId>(p_.plan.streams.size()) - 1);
      if (s.kind == StreamKind::host) host_stream_ = streams_[d].back();
    }
    tensor_base_[d] = static_cast<TensorId>(p_.program.tensors.size());
    for (Tensor t : part.program.tensors) {
      t.name = prefix(d) + t.name;
      p_.program.tensors.push_back(t);
    }
    placement_base_[d] = static_cast<PlacementId>(p_.plan.placements.size());
    for (Placement x : part.plan.placements) {
      x.tensor += tensor_base_[d];
      x.offset += x.space == 1 ? host_base_[d] : 0;
      x.space = x.space == 1 ? kHost : static_cast<SpaceId>(d);
      p_.plan.placements.push_back(x);
    }
    for (const PlacementId id : part.plan.boundary) {
      p_.plan.boundary.push_back(placement_base_[d] + id);
    }
    ops_[d].resize(part.program.ops.size());
  }

  static std::string prefix(std::size_t d) { return d == 0 ? "a " : "b "; }

  /// Takes turns: each part up to its next host op, so that host ops come in the same order in the
  /// program and in the list.
  template <class IsHost, class Take>
  static void take_turns(std::size_t a, std::size_t b, IsHost is_host, Take take) {
    std::array<std::size_t, 2> next{0, 0};
    const std::array<std::size_t, 2> sizes{a, b};
    while (next[0] < a || next[1] < b) {
      for (std::size_t d = 0; d < 2; ++d) {
        while (next[d] < sizes[d]) {
          const std::size_t i = next[d]++;
          take(d, i);
          if (is_host(d, i)) break;
        }
      }
    }
  }

  void merge_ops() {
    const auto& a = parts_[0].program.ops;
    const auto& b = parts_[1].program.ops;
    const auto op = [&](std::size_t d, std::size_t i) { return d == 0 ? a[i] : b[i]; };
    take_turns(
        a.size(), b.size(),
        [&](std::size_t d, std::size_t i) { return op(d, i).place == OpPlace::host; },
        [&](std::size_t d, std::size_t i) {
          Op o = op(d, i);
          o.name = prefix(d) + o.name;
          o.round = kNone;
          if (o.place == OpPlace::device) o.device = static_cast<std::int32_t>(d);
          for (Access& x : o.accesses) x.tensor += tensor_base_[d];
          ops_[d][i] = static_cast<OpId>(p_.program.ops.size());
          p_.program.ops.push_back(std::move(o));
        });
  }

  /// An instruction of a part, its waits not yet.
  Instruction translated(const Instruction& from, std::size_t d) const {
    Instruction x = from;
    x.stream = streams_[d][static_cast<std::size_t>(from.stream)];
    if (x.op != kNone) x.op = ops_[d][static_cast<std::size_t>(from.op)];
    for (PlacementId& id : x.operands) id += placement_base_[d];
    if (x.from != kNone) x.from += placement_base_[d];
    if (x.to != kNone) x.to += placement_base_[d];
    return x;
  }

  void translate_waits(Instruction& x, std::size_t d, const std::vector<std::int32_t>& moved) {
    for (Wait& w : x.waits) {
      w.stream = streams_[d][static_cast<std::size_t>(w.stream)];
      w.index = moved[static_cast<std::size_t>(w.index)];
    }
  }

  void merge_steady() {
    std::array<std::vector<std::int32_t>, 2> moved;
    std::vector<std::size_t> owner;
    for (std::size_t d = 0; d < 2; ++d) {
      moved[d].resize(parts_[d].plan.steady.instructions.size());
    }
    const auto& a = parts_[0].plan.steady.instructions;
    const auto& b = parts_[1].plan.steady.instructions;
    auto& list = p_.plan.steady.instructions;
    take_turns(
        a.size(), b.size(),
        [&](std::size_t d, std::size_t i) {
          const Instruction& x = d == 0 ? a[i] : b[i];
          return x.kind == InstructionKind::op &&
                 parts_[d].program.ops[static_cast<std::size_t>(x.op)].place == OpPlace::host;
        },
        [&](std::size_t d, std::size_t i) {
          moved[d][i] = static_cast<std::int32_t>(list.size());
          list.push_back(translated(d == 0 ? a[i] : b[i], d));
          owner.push_back(d);
        });
    for (std::size_t i = 0; i < list.size(); ++i) {
      translate_waits(list[i], owner[i], moved[owner[i]]);
    }
  }

  void append(Schedule& to, const Schedule& from, std::size_t d) {
    std::vector<std::int32_t> moved;
    const auto base = static_cast<std::int32_t>(to.instructions.size());
    for (std::size_t i = 0; i < from.instructions.size(); ++i) {
      moved.push_back(base + static_cast<std::int32_t>(i));
    }
    for (const Instruction& x : from.instructions) {
      Instruction y = translated(x, d);
      translate_waits(y, d, moved);
      to.instructions.push_back(std::move(y));
    }
  }

  PlacementId place(SpaceId space, TensorId tensor) {
    Arena& arena = p_.plan.arenas[static_cast<std::size_t>(space)];
    const Bytes offset = align_up(arena.bytes, arena.alignment);
    arena.bytes = offset + kMessage;
    p_.plan.placements.push_back({tensor, space, offset, kMessage});
    return static_cast<PlacementId>(p_.plan.placements.size()) - 1;
  }

  std::int32_t add_op(const std::string& name, OpPlace where, std::int32_t device, StreamId stream,
                      std::vector<std::pair<Access, PlacementId>> operands) {
    Op op;
    op.name = name;
    op.kind = "test";
    op.place = where;
    op.device = device;
    op.round = kNone;
    op.random = true;
    op.recomputable = false;
    op.algorithms = {{"only", Nanos{where == OpPlace::device ? 700 : 0}, 0, true}};
    Instruction x;
    x.op = static_cast<OpId>(p_.program.ops.size());
    x.stream = stream;
    for (const auto& [access, placement] : operands) {
      op.accesses.push_back(access);
      x.operands.push_back(placement);
    }
    p_.program.ops.push_back(std::move(op));
    p_.plan.steady.instructions.push_back(std::move(x));
    return static_cast<std::int32_t>(p_.plan.steady.instructions.size()) - 1;
  }

  std::int32_t add_copy(StreamId stream, PlacementId from, PlacementId to) {
    Instruction x;
    x.kind = InstructionKind::copy;
    x.stream = stream;
    x.from = from;
    x.to = to;
    x.bytes = kMessage;
    p_.plan.steady.instructions.push_back(std::move(x));
    return static_cast<std::int32_t>(p_.plan.steady.instructions.size()) - 1;
  }

  void add_message() {
    using enum AccessMode;
    const auto tensor = [&](const char* name) {
      Tensor t;
      t.name = name;
      t.bytes = kMessage;
      p_.program.tensors.push_back(t);
      return static_cast<TensorId>(p_.program.tensors.size()) - 1;
    };
    const TensorId message = tensor("message");
    const TensorId answer = tensor("answer");
    const PlacementId sent = place(0, message);
    const PlacementId received = place(1, message);
    const PlacementId made = place(1, answer);
    const PlacementId shown = place(kHost, answer);
    p_.plan.streams.push_back({0, StreamKind::copy});
    const auto peer = static_cast<StreamId>(p_.plan.streams.size()) - 1;
    const StreamId sender = streams_[0][0];
    const StreamId receiver = streams_[1][0];
    const StreamId out = streams_[1][1];
    const std::int32_t send =
        add_op("send", OpPlace::device, 0, sender, {{{message, write}, sent}});
    const std::int32_t across = add_copy(peer, sent, received);
    const std::int32_t receive = add_op("receive", OpPlace::device, 1, receiver,
                                        {{{message, read}, received}, {{answer, write}, made}});
    const std::int32_t back = add_copy(out, made, shown);
    const std::int32_t look =
        add_op("look", OpPlace::host, 0, host_stream_, {{{answer, read}, shown}});
    auto& list = p_.plan.steady.instructions;
    const auto waits = [&](std::int32_t i) -> std::vector<Wait>& {
      return list[static_cast<std::size_t>(i)].waits;
    };
    waits(send) = {{peer, across, -1}};
    waits(across) = {{sender, send, 0}, {receiver, receive, -1}};
    waits(receive) = {{peer, across, 0}, {out, back, -1}};
    waits(back) = {{receiver, receive, 0}, {host_stream_, look, -1}};
    waits(look) = {{out, back, 0}};
  }

  static constexpr Bytes kMessage = 192;
  std::array<Part, 2> parts_;
  SpacedPlan p_;
  StreamId host_stream_ = kNone;
  std::array<Bytes, 2> host_base_{};
  std::array<TensorId, 2> tensor_base_{};
  std::array<PlacementId, 2> placement_base_{};
  std::array<std::vector<StreamId>, 2> streams_;
  std::array<std::vector<OpId>, 2> ops_;
};

}  // namespace tidepool::testing
