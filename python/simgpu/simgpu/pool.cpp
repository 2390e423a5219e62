#include "pool.h"

#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <algorithm>
#include <tuple>

namespace sim {
namespace {

size_t up(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

}  // namespace

bool Pool::Free::operator<(const Free& other) const {
  return std::tie(stream, size, at) < std::tie(other.stream, other.size, other.at);
}

Pool::Pool() {
  void* at =
      mmap(nullptr, 2 * kRegion, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TORCH_CHECK(at != MAP_FAILED, "sim: no address space");
  base_ = end_ = reinterpret_cast<uintptr_t>(at);
  mprotect(reinterpret_cast<void*>(base_ + kRegion), kRegion, PROT_READ | PROT_WRITE);
}

void* Pool::real(const void* at) {
  return at == nullptr ? nullptr : reinterpret_cast<char*>(const_cast<void*>(at)) + kRegion;
}

uintptr_t Pool::take(size_t asked, int stream) {
  const size_t size = up(asked, kGrain);
  const auto found = free_.lower_bound({stream, size, 0});
  if (found == free_.end() || found->stream != stream) return 0;
  const uintptr_t at = found->at;
  free_.erase(found);
  Block& block = blocks_.at(at);
  if (block.size > size) {
    const Block rest{block.size - size, stream, true, block.segment, {}};
    blocks_[at + size] = rest;
    set_free(at + size, rest);
    block.size = size;
  }
  block.free = false;
  block.used_by.clear();
  allocated += size;
  peak = std::max(peak, allocated);
  ++allocations;
  return at;
}

size_t Pool::segment_for(size_t asked) const { return up(up(asked, kGrain), segment); }

void Pool::grow(size_t asked, int stream) {
  const size_t size = segment_for(asked);
  const uintptr_t at = end_;
  TORCH_CHECK(at + size <= base_ + kRegion, "sim: address space used up");
  end_ += size;
  reserved += size;
  peak_reserved = std::max(peak_reserved, reserved);
  blocks_[at] = Block{size, stream, true, at, {}};
  set_free(at, blocks_[at]);
}

void Pool::free(uintptr_t at) {
  allocated -= blocks_.at(at).size;
  give_back(at);
}

void Pool::free_behind(uintptr_t at, std::vector<Recorded> streams) {
  allocated -= blocks_.at(at).size;
  kept_.push_back({at, std::move(streams)});
}

void Pool::note_use(uintptr_t at, int stream) {
  const auto it = blocks_.find(at);
  if (it != blocks_.end() && it->second.stream != stream) it->second.used_by.insert(stream);
}

std::set<int> Pool::other_streams_of(uintptr_t at) const {
  const Block& block = blocks_.at(at);
  TORCH_CHECK(!block.free, "sim: freed twice");
  return block.used_by;
}

/// Says whether two free blocks in a row are one: parts between them may have been released.
bool Pool::touch(const Blocks::value_type& one, const Blocks::value_type& next) {
  return one.second.free && next.second.free && one.second.segment == next.second.segment &&
         one.first + one.second.size == next.first;
}

void Pool::give_back(uintptr_t at) {
  auto it = blocks_.find(at);
  it->second.free = true;
  const auto next = std::next(it);
  if (next != blocks_.end() && touch(*it, *next)) {
    not_free(next->first, next->second);
    it->second.size += next->second.size;
    blocks_.erase(next);
  }
  if (it != blocks_.begin()) {
    const auto before = std::prev(it);
    if (touch(*before, *it)) {
      not_free(before->first, before->second);
      before->second.size += it->second.size;
      blocks_.erase(it);
      it = before;
    }
  }
  set_free(it->first, it->second);
}

void Pool::reclaim(Clock& host) {
  std::erase_if(kept_, [&](const Kept& kept) {
    for (const Recorded& stream : kept.streams) {
      if (!stream->done) return false;
    }
    for (const Recorded& stream : kept.streams) host.join(stream->clock);
    give_back(kept.at);
    return true;
  });
}

void Pool::release_segments() {
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    const auto next = std::next(it);
    const auto& [at, block] = *it;
    const bool is_all =
        at == block.segment && (next == blocks_.end() || next->second.segment != block.segment);
    if (block.free && (expandable || is_all)) {
      reserved -= block.size;
      if (is_all)
        madvise(real(reinterpret_cast<void*>(at)), block.size,
                MADV_DONTNEED);  // whole pages are one owner's
      not_free(at, block);
      blocks_.erase(it);
    }
    it = next;
  }
}

bool Pool::is_alive(const Range& range) const {
  auto it = blocks_.upper_bound(range.begin);
  if (it == blocks_.begin()) return false;
  --it;
  return !it->second.free && range.end <= it->first + it->second.size;
}

}  // namespace sim
