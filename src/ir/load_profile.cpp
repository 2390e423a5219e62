#include "ir/load_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/at.h"
#include "base/quantity.h"

namespace tidepool {

LoadProfile load_profile(const Program& program, const AccessIndex& index, Bytes alignment,
                         std::span<const std::int32_t> algorithms) {
  const std::size_t n = program.ops.size();
  std::vector<Bytes> change(n + 1, 0);
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) {
    const Tensor& tensor = program.tensors[static_cast<std::size_t>(t)];
    OpId first = kNone;
    OpId last = kNone;
    for (const TensorAccess& access : index.accesses(t)) {
      if (program.ops[static_cast<std::size_t>(access.op)].place != OpPlace::device) continue;
      if (first == kNone) first = access.op;
      last = access.op;
    }
    if (first == kNone) continue;
    if (tensor.persistent) {
      first = 0;
      last = static_cast<OpId>(n) - 1;
    }
    if (last == index.accesses(t).back().op) last = std::max(last, tensor.released_at);
    const Bytes bytes = align_up(tensor.bytes, alignment);
    change[static_cast<std::size_t>(first)] += bytes;
    change[static_cast<std::size_t>(last) + 1] -= bytes;
  }
  LoadProfile profile;
  profile.at_op.resize(n);
  Bytes live = 0;
  for (std::size_t i = 0; i < n; ++i) {
    live += change[i];
    const Op& op = program.ops[i];
    profile.at_op[i] =
        live +
        align_up(op.algorithms[static_cast<std::size_t>(algorithms[i])].workspace, alignment);
    if (profile.at_op[i] > profile.peak) {
      profile.peak = profile.at_op[i];
      profile.peak_op = static_cast<OpId>(i);
    }
  }
  return profile;
}

Program loading_device(Program program, std::int32_t device) {
  for (Op& op : program.ops) {
    if (op.place == OpPlace::device && op.device == device) continue;
    op.place = OpPlace::host;
    op.device = 0;
    for (Algorithm& a : op.algorithms) a.workspace = 0;
  }
  return program;
}

std::vector<std::int32_t> least_workspace_algorithms(const Program& program) {
  std::vector<std::int32_t> choice;
  for (const Op& op : program.ops) choice.push_back(least_workspace_algorithm(op));
  return choice;
}

std::vector<std::int32_t> fastest_algorithms(const Program& program) {
  std::vector<std::int32_t> choice;
  for (const Op& op : program.ops) choice.push_back(fastest_algorithm(op));
  return choice;
}

Nanos compute_time(const Program& program, std::span<const std::int32_t> algorithms) {
  Nanos sum{0};
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.place != OpPlace::device) continue;
    sum += op.algorithms[static_cast<std::size_t>(algorithms[i])].time;
  }
  return sum;
}

std::vector<Bytes> unmovable_load(const Program& program, Bytes alignment) {
  struct Extent {
    OpId first = kNone;
    OpId last = kNone;
  };
  const auto n = std::ssize(program.ops);
  std::vector<Extent> extents(program.tensors.size());
  for (OpId id = 0; id < n; ++id) {
    for (const Access& a : program.ops[static_cast<std::size_t>(id)].accesses) {
      Extent& extent = extents[static_cast<std::size_t>(a.tensor)];
      if (extent.first == kNone) extent.first = id;
      extent.last = id;
    }
  }
  std::vector<Bytes> load(program.ops.size() + 1, 0);  // differences, summed up at the end
  const auto add = [&](OpId from, OpId to, Bytes bytes) {
    load[at(from)] += bytes;
    load[at(to) + 1] -= bytes;
  };
  const auto end = static_cast<OpId>(n) - 1;
  const auto on_device = [&](OpId id) { return program.ops[at(id)].place == OpPlace::device; };
  for (std::size_t t = 0; t < extents.size(); ++t) {
    const Tensor& tensor = program.tensors[t];
    const auto [first, last] = extents[t];
    const Bytes bytes = align_up(tensor.bytes, alignment);
    if (!on_device(last)) continue;
    if (tensor.pinned) {
      if (tensor.persistent) {
        add(0, end, bytes);
      } else {
        add(first, std::max(tensor.released_at, last), bytes);
      }
    } else if (tensor.released_at != kNone) {
      add(last + 1, tensor.released_at, bytes);
    } else if (tensor.home == Home::device && on_device(first)) {
      if (first > 0) add(0, first - 1, bytes);
      if (last < end) add(last + 1, end, bytes);
    }
  }
  for (std::size_t i = 1; i < load.size(); ++i) load[i] += load[i - 1];
  load.pop_back();
  return load;
}

Bytes working_set(const Program& program, OpId id, Bytes alignment, int algorithm,
                  Bytes unmovable) {
  const Op& op = program.ops[static_cast<std::size_t>(id)];
  if (op.place != OpPlace::device) return 0;
  Bytes bytes = unmovable;
  bytes += align_up(op.algorithms[static_cast<std::size_t>(algorithm)].workspace, alignment);
  for (const Access& access : op.accesses) {
    const Tensor& tensor = program.tensors[static_cast<std::size_t>(access.tensor)];
    if (!tensor.pinned) bytes += align_up(tensor.bytes, alignment);
  }
  return bytes;
}

SmallestBudget smallest_budget(const Program& program, Bytes alignment) {
  SmallestBudget smallest;
  const std::vector<Bytes> unmovable = unmovable_load(program, alignment);
  for (OpId id = 0; id < static_cast<OpId>(program.ops.size()); ++id) {
    const int least = least_workspace_algorithm(program.ops[static_cast<std::size_t>(id)]);
    const Bytes bytes =
        working_set(program, id, alignment, least, unmovable[static_cast<std::size_t>(id)]);
    if (bytes > smallest.bytes) smallest = {bytes, id};
  }
  return smallest;
}

namespace {

/// All in their order, or the largest of many.
std::vector<std::string> describe_operands(const Op& op, const Program& program) {
  constexpr std::size_t kMost = 12;
  constexpr std::size_t kLargest = 6;
  std::vector<const Tensor*> tensors;
  for (const Access& access : op.accesses) {
    tensors.push_back(&program.tensors[static_cast<std::size_t>(access.tensor)]);
  }
  Bytes rest = 0;
  const std::size_t all = tensors.size();
  if (all > kMost) {
    std::ranges::stable_sort(tensors, std::ranges::greater{}, &Tensor::bytes);
    for (std::size_t i = kLargest; i < all; ++i) rest += tensors[i]->bytes;
    tensors.resize(kLargest);
  }
  std::vector<std::string> parts;
  for (const Tensor* tensor : tensors) {
    parts.push_back(fmt::format("'{}' ({})", tensor->name, format_bytes(tensor->bytes)));
  }
  if (all > kMost) {
    parts.push_back(fmt::format("{} more ({})", all - kLargest, format_bytes(rest)));
  }
  return parts;
}

}  // namespace

std::string explain(const SmallestBudget& smallest, const Program& program) {
  if (smallest.op == kNone) return "no op needs device memory";
  const Op& op = program.ops[static_cast<std::size_t>(smallest.op)];
  std::vector<std::string> parts = describe_operands(op, program);
  const Bytes workspace =
      op.algorithms[static_cast<std::size_t>(least_workspace_algorithm(op))].workspace;
  const Bytes unmovable = unmovable_load(program, 1)[static_cast<std::size_t>(smallest.op)];
  if (unmovable > 0) {
    parts.push_back(fmt::format("bytes that are pinned, stay taken or are at home ({})",
                                format_bytes(unmovable)));
  }
  if (workspace > 0) parts.push_back(fmt::format("workspace ({})", format_bytes(workspace)));
  if (smallest.holes > 0) {
    parts.push_back(
        fmt::format("holes between bytes that may not move ({})", format_bytes(smallest.holes)));
  }
  return fmt::format("the smallest feasible budget is {} B ({}), set by op '{}' with {}",
                     smallest.bytes, format_bytes_up(smallest.bytes), op.name,
                     fmt::join(parts, ", "));
}

}  // namespace tidepool
