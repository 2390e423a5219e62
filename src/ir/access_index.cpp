#include "ir/access_index.h"

namespace tidepool {
namespace {

GapKind gap_kind(const Tensor& tensor, const Op& from, const Op& to, bool wraps) {
  const bool from_device = from.place == OpPlace::device;
  const bool to_device = to.place == OpPlace::device;
  const bool at_home = wraps && tensor.home == Home::device && from.device == to.device;
  if (from_device && to_device) return tensor.pinned || at_home ? GapKind::kept : GapKind::device;
  if (from_device) return GapKind::download;
  return to_device ? GapKind::upload : GapKind::host;
}

}  // namespace

AccessIndex::AccessIndex(const Program& program) {
  const std::size_t tensors = program.tensors.size();
  std::vector<std::vector<TensorAccess>> by_tensor(tensors);
  for (OpId id = 0; id < static_cast<OpId>(program.ops.size()); ++id) {
    const Op& op = program.ops[static_cast<std::size_t>(id)];
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(op.accesses.size()); ++i) {
      const Access& access = op.accesses[static_cast<std::size_t>(i)];
      by_tensor[static_cast<std::size_t>(access.tensor)].push_back(
          {id, i, access.mode, kNone, kNone});
    }
  }
  for (std::size_t t = 0; t < tensors; ++t) {
    access_start_.push_back(static_cast<std::int32_t>(accesses_.size()));
    gap_start_.push_back(static_cast<std::int32_t>(gaps_.size()));
    std::vector<TensorAccess>& list = by_tensor[t];
    std::int32_t version = 0;
    for (TensorAccess& access : list) {
      if (access.mode != AccessMode::write) access.version_read = version;
      if (access.mode != AccessMode::read) access.version_written = ++version;
      accesses_.push_back(access);
    }
    const auto add_gap = [&](const TensorAccess& from, const TensorAccess& to, bool wraps) {
      const auto& ops = program.ops;
      gaps_.push_back({static_cast<TensorId>(t), from.op, to.op, wraps,
                       gap_kind(program.tensors[t], ops[static_cast<std::size_t>(from.op)],
                                ops[static_cast<std::size_t>(to.op)], wraps),
                       from.version_written != kNone ? from.version_written : from.version_read,
                       !wraps && to.mode == AccessMode::write});
    };
    for (std::size_t i = 0; i + 1 < list.size(); ++i) add_gap(list[i], list[i + 1], false);
    if (program.tensors[t].persistent && !list.empty()) add_gap(list.back(), list.front(), true);
  }
  access_start_.push_back(static_cast<std::int32_t>(accesses_.size()));
  gap_start_.push_back(static_cast<std::int32_t>(gaps_.size()));
}

}  // namespace tidepool
