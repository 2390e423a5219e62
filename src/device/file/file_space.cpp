#include "device/file/file_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

#include "base/at.h"
#include "base/random.h"
#include "device/file/sleep.h"

namespace tidepool {
namespace {

constexpr Bytes kBlock = BlockFile::kAlignment;

BlockFile opened_file(const SpillOptions& options, Bytes bytes, const FaultPlan& faults) {
  auto file = BlockFile::open(options, bytes, faults);
  if (!file) throw DeviceError(file.error().message, file.error().code);
  return std::move(*file);
}

/// Never 0.
std::uint64_t hash_of_block(const std::byte* block) {
  std::array<std::uint64_t, 4> lanes{1, 2, 3, 4};
  std::array<std::uint64_t, 4> words{};
  for (Bytes i = 0; i < kBlock; i += static_cast<Bytes>(sizeof words)) {
    std::memcpy(words.data(), block + i, sizeof words);
    // Odd factors: a change of any word changes its lane, whatever comes after.
    for (std::size_t k = 0; k < 4; ++k) {
      lanes[k] = (lanes[k] ^ words[k]) * 0x9e3779b97f4a7c15ULL;
      lanes[k] ^= lanes[k] >> 29U;
    }
  }
  std::uint64_t hash = 0;
  for (const std::uint64_t lane : lanes) hash = hash_combine(hash, lane);
  return hash == 0 ? 1 : hash;
}

bool huge_pages_are_off() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string modes;
  std::getline(file, modes);
  return modes.find("[never]") != std::string::npos;
}

}  // namespace

Bytes take_file_arena(DeviceConfig& config) {
  if (config.arenas.empty() || config.arenas.back().kind != SpaceKind::file) return 0;
  const Bytes bytes = config.arenas.back().bytes;
  config.arenas.pop_back();
  return bytes;
}

FileSpace::FileSpace(const SpillOptions& options, Bytes bytes, const FaultPlan& faults)
    : options_(options), file_(opened_file(options, bytes, faults)), warning_(file_.warning()) {
  if (huge_pages_are_off()) {
    if (!warning_.empty()) warning_ += "; ";
    warning_ += "this machine has no transparent huge pages: copies are slower";
  }
  if (options_.verify) hashes_.resize(static_cast<std::size_t>(file_.size() / kBlock));
}

/// Paced by pieces: while a piece of one direction is due on a bus that both share, those of the
/// other wait for their turn.
template <class Transfer>
void FileSpace::copy(Bytes bytes, double speed, SharedBus& bus, Count& count,
                     const Transfer& transfer) {
  using Steady = std::chrono::steady_clock;
  const Steady::time_point begin = Steady::now();
  const Bytes piece = speed > 0 ? BlockFile::kPiece * options_.depth : bytes;
  Steady::time_point at = begin;
  for (Bytes done = 0; done < bytes; done += piece) {
    const Bytes now = std::min(piece, bytes - done);
    if (speed <= 0) {
      transfer(done, now);
      continue;
    }
    const auto turn = bus.take_time(from_seconds(static_cast<double>(now) / speed), at);
    transfer(done, now);
    // The next one counts from where this one should have ended: waking up late adds up to nothing.
    at = std::max(turn, Steady::now());
    if (at == turn) sleep_until(turn);
  }
  count.bytes += bytes;
  ++count.copies;
  count.time += Nanos(Steady::now() - begin).count();
}

void FileSpace::write(Bytes offset, const std::byte* from, Bytes bytes, const char* what) {
  bytes = align_up(bytes, kBlock);
  if (options_.verify) keep_hashes(offset, from, bytes);
  copy(bytes, options_.write_speed, writes_, written_,
       [&](Bytes at, Bytes now) { file_.write(offset + at, from + at, now, what); });
}

void FileSpace::read(Bytes offset, std::byte* to, Bytes bytes, const char* what) {
  bytes = align_up(bytes, kBlock);
  copy(bytes, options_.read_speed, options_.paced_duplex ? reads_ : writes_, read_,
       [&](Bytes at, Bytes now) { file_.read(offset + at, to + at, now, what); });
  if (options_.verify) compare_hashes(offset, to, bytes, what);
}

void FileSpace::keep_hashes(Bytes offset, const std::byte* from, Bytes bytes) {
  for (Bytes i = 0; i < bytes; i += kBlock) {
    hashes_[static_cast<std::size_t>((offset + i) / kBlock)] = hash_of_block(from + i);
  }
}

void FileSpace::compare_hashes(Bytes offset, const std::byte* with, Bytes bytes,
                               const char* what) const {
  for (Bytes i = 0; i < bytes; i += kBlock) {
    const std::uint64_t kept = hashes_[static_cast<std::size_t>((offset + i) / kBlock)];
    if (kept == hash_of_block(with + i)) continue;
    throw DeviceError(fmt::format(
        "the file in {}: what was read at offset {}{} is not what was "
        "written there{}",
        options_.folder, offset + i, what != nullptr ? fmt::format(" ('{}')", what) : "",
        kept == 0 ? ": nothing was" : ""));
  }
}

FileTraffic FileSpace::traffic() const {
  const auto direction = [](const Count& count) {
    return FileTraffic::Direction{count.bytes, count.copies, Nanos{count.time}};
  };
  FileTraffic traffic;
  traffic.written = direction(written_);
  traffic.read = direction(read_);
  traffic.size = file_.size();
  traffic.kind = file_.kind();
  traffic.warning = warning_;
  return traffic;
}

}  // namespace tidepool
