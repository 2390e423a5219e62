#include "runtime/away_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"

namespace tidepool {
namespace {

std::vector<SpaceId> spaces_away(const Program& program, bool with_file) {
  std::vector<SpaceId> spaces(program.tensors.size(),
                              with_file ? AwayPlaces::kFileSpace : AwayPlaces::kHostSpace);
  for (const Op& op : program.ops) {
    if (op.place != OpPlace::host) continue;
    for (const Access& a : op.accesses) spaces[at(a.tensor)] = AwayPlaces::kHostSpace;
  }
  return spaces;
}

/// The largest persistent tensor in the file.
Bytes largest_staged(const Program& program, std::span<const SpaceId> spaces) {
  Bytes most = 0;
  for (std::size_t t = 0; t < spaces.size(); ++t) {
    const Tensor& tensor = program.tensors[t];
    if (tensor.persistent && spaces[t] == AwayPlaces::kFileSpace) {
      most = std::max(most, tensor.bytes);
    }
  }
  return most;
}

}  // namespace

ReactiveBudget enough_bytes_away(const Program& program, Bytes alignment,
                                 std::span<const char> made_up, bool with_file) {
  const auto spaces = spaces_away(program, with_file);
  ReactiveBudget sum;
  if (!made_up.empty()) sum.host += align_up(AwayPlaces::kNumbers, alignment);
  sum.host += align_up(largest_staged(program, spaces), alignment);
  for (std::size_t t = 0; t < spaces.size(); ++t) {
    if (!made_up.empty() && made_up[t] != 0) continue;
    Bytes& side = spaces[t] == AwayPlaces::kFileSpace ? sum.file : sum.host;
    side += align_up(program.tensors[t].bytes, alignment);
  }
  return sum;
}

AwayPlaces::AwayPlaces(const Program& program, ReactiveBudget budget, Bytes alignment,
                       std::span<const char> made_up)
    : program_(program),
      spaces_(spaces_away(program, budget.file > 0)),
      host_(budget.host, alignment),
      file_(budget.file, alignment),
      staging_bytes_(largest_staged(program, spaces_)) {
  if (!made_up.empty()) numbers_ = reserve(kNumbers, "values are made up from");
  if (staging_bytes_ > 0) staging_ = reserve(staging_bytes_, "values pass through to the file");
  find_homes(budget, alignment, made_up);
}

Bytes AwayPlaces::reserve(Bytes bytes, const char* what) {
  const auto place = host_.allocate(bytes);
  if (place) return *place;
  throw HostArenaFull(fmt::format("the host arena of {} has no room for the {} that {}",
                                  format_bytes(host_.size()), format_bytes(bytes), what));
}

void AwayPlaces::find_homes(ReactiveBudget budget, Bytes alignment, std::span<const char> made_up) {
  const ReactiveBudget enough = enough_bytes_away(program_, alignment, made_up, budget.file > 0);
  if (budget.host < enough.host || budget.file < enough.file) return;
  Bytes on_host = host_.used();
  Bytes in_file = 0;
  for (std::size_t t = 0; t < spaces_.size(); ++t) {
    Bytes& next = spaces_[t] == kFileSpace ? in_file : on_host;
    homes_.push_back(next);
    if (made_up.empty() || made_up[t] == 0) next += align_up(program_.tensors[t].bytes, alignment);
  }
}

std::optional<Bytes> AwayPlaces::find_room(TensorId tensor) {
  if (!homes_.empty()) return homes_[at(tensor)];
  return segments(tensor).allocate(program_.tensors[at(tensor)].bytes);
}

void AwayPlaces::release(TensorId tensor, Bytes offset) {
  if (homes_.empty()) segments(tensor).free(offset);
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
