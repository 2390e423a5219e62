#include "runtime/away_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"

namespace tidepool {
namespace {

/// Of copies with a file behind the host.
constexpr Bytes kBlock = SpillOptions::kAlignment;

std::vector<char> touched_by_host_ops(const Program& program) {
  std::vector<char> touched(program.tensors.size(), 0);
  for (const Op& op : program.ops) {
    if (op.place != OpPlace::host) continue;
    for (const Access& a : op.accesses) touched[at(a.tensor)] = 1;
  }
  return touched;
}

std::vector<SpaceId> spaces_away(std::span<const char> host_ops_touch, Away away) {
  std::vector<SpaceId> spaces;
  for (const char touched : host_ops_touch) {
    spaces.push_back(touched != 0 || away == Away::host ? AwayPlaces::kHostSpace
                                                        : AwayPlaces::kFileSpace);
  }
  return spaces;
}

/// The largest tensor that passes through the host to the file.
Bytes largest_staged(const Program& program, std::span<const SpaceId> spaces, Away away) {
  Bytes most = 0;
  for (std::size_t t = 0; t < spaces.size(); ++t) {
    const Tensor& tensor = program.tensors[t];
    const bool passes = tensor.persistent || away == Away::host_then_file;
    if (passes && spaces[t] == AwayPlaces::kFileSpace) most = std::max(most, tensor.bytes);
  }
  return away == Away::host_then_file ? align_up(most, kBlock) : most;
}

}  // namespace

ReactiveBudget enough_bytes_away(const Program& program, Bytes alignment,
                                 std::span<const char> made_up, Away away) {
  const auto spaces = spaces_away(touched_by_host_ops(program), away);
  ReactiveBudget sum;
  sum.file_behind_host = away == Away::host_then_file;
  const Bytes in_file = sum.file_behind_host ? kBlock : alignment;
  if (!made_up.empty()) sum.host += align_up(AwayPlaces::kNumbers, alignment);
  sum.host += align_up(largest_staged(program, spaces, away), alignment);
  for (std::size_t t = 0; t < spaces.size(); ++t) {
    if (!made_up.empty() && made_up[t] != 0) continue;
    const Bytes bytes = program.tensors[t].bytes;
    if (spaces[t] == AwayPlaces::kFileSpace) {
      sum.file += align_up(bytes, in_file);
    } else {
      sum.host += align_up(bytes, alignment);
    }
  }
  return sum;
}

AwayPlaces::AwayPlaces(const Program& program, ReactiveBudget budget, Bytes alignment,
                       std::span<const char> made_up)
    : program_(program),
      away_(budget.away()),
      host_ops_touch_(touched_by_host_ops(program)),
      spaces_(spaces_away(host_ops_touch_, away_)),
      host_(budget.host, alignment),
      file_(budget.file, over_host() ? kBlock : alignment),
      staging_bytes_(largest_staged(program, spaces_, away_)) {
  if (!made_up.empty()) numbers_ = reserve(kNumbers, "values are made up from");
  if (staging_bytes_ > 0) staging_ = reserve(staging_bytes_, "values pass through to the file");
  over_host() ? find_homes_over_host(budget) : find_homes(budget, alignment, made_up);
}

Bytes AwayPlaces::reserve(Bytes bytes, const char* what) {
  const auto place = host_.allocate(bytes);
  if (place) return *place;
  throw HostArenaFull(fmt::format("the host arena of {} has no room for the {} that {}",
                                  format_bytes(host_.size()), format_bytes(bytes), what));
}

void AwayPlaces::find_homes(ReactiveBudget budget, Bytes alignment, std::span<const char> made_up) {
  const ReactiveBudget enough = enough_bytes_away(program_, alignment, made_up, away_);
  if (budget.host < enough.host || budget.file < enough.file) return;
  Bytes on_host = host_.used();
  Bytes in_file = 0;
  for (std::size_t t = 0; t < spaces_.size(); ++t) {
    Bytes& next = spaces_[t] == kFileSpace ? in_file : on_host;
    homes_.push_back(next);
    if (made_up.empty() || made_up[t] == 0) next += align_up(program_.tensors[t].bytes, alignment);
  }
}

/// What host ops touch cannot go on to the file when the host is full of the rest.
void AwayPlaces::find_homes_over_host(ReactiveBudget budget) {
  const Bytes enough = enough_bytes_away(program_, kBlock, {}, away_).file;
  Bytes in_file = 0;
  for (std::size_t t = 0; t < spaces_.size(); ++t) {
    const Bytes bytes = program_.tensors[t].bytes;
    if (host_ops_touch_[t] != 0) {
      homes_.push_back(reserve(bytes, "host ops use"));
      continue;
    }
    homes_.push_back(budget.file < enough ? kNowhere : in_file);
    in_file += align_up(bytes, kBlock);
  }
}

std::optional<Bytes> AwayPlaces::find_room(TensorId tensor) {
  const Bytes bytes = program_.tensors[at(tensor)].bytes;
  if (moves_on(tensor)) {
    const auto on_host = host_.allocate(bytes);
    spaces_[at(tensor)] = on_host ? kHostSpace : kFileSpace;
    if (on_host) return on_host;
  }
  if (!homes_.empty() && homes_[at(tensor)] != kNowhere) return homes_[at(tensor)];
  return segments(tensor).allocate(bytes);
}

void AwayPlaces::release(TensorId tensor, Bytes offset) {
  const bool kept = moves_on(tensor) && space(tensor) == kHostSpace;
  const bool at_home = !kept && !homes_.empty() && homes_[at(tensor)] != kNowhere;
  if (!at_home) segments(tensor).free(offset);
}

void AwayPlaces::throw_full(TensorId id) const {
  const Tensor& tensor = program_.tensors[at(id)];
  const bool in_file = space(id) == kFileSpace;
  const Segments& full = in_file ? file_ : host_;
  const std::string message =
      fmt::format("the {} of {} is full: no {} in one piece for tensor '{}' ({} are used)",
                  in_file ? "file" : "host arena", format_bytes(full.size()),
                  format_bytes(tensor.bytes), tensor.name, format_bytes(full.used()));
  if (in_file) throw FileFull(message);
  throw HostArenaFull(message);
}

}  // namespace tidepool
