#include "device/file/disk_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/median.h"
#include "base/random.h"
#include "device/device.h"
#include "device/file/block_file.h"
#include "device/file/guarded_memory.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Bytes kMostBytes = 256 * kMiB;
constexpr Bytes kLeastBytes = kMiB;
constexpr Bytes kPiece = BlockFile::kPiece;
/// A slow disk is known after less than all bytes.
constexpr double kMostSeconds = 0.6;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The file, and memory as an arena has it.
class Bench {
 public:
  Bench(BlockFile file, Bytes memory)
      : file_(std::move(file)),
        piece_(std::min(kPiece, (file_.size() / 2) & -BlockFile::kAlignment)),
        buffer_(memory, "buffer that a disk is measured with", GuardedMemory::Pages::untouched),
        buffer_bytes_(memory) {
    for (Bytes i = 0; i < memory; i += 8) {  // not all alike: disks notice that
      const std::uint64_t word = mix64(static_cast<std::uint64_t>(i));
      std::memcpy(buffer_.data() + i, &word, sizeof word);
    }
  }

  [[nodiscard]] const BlockFile& file() const { return file_; }
  void set_depth(int depth) { file_.set_depth(depth); }

  /// Bytes per second over the file, or over what the time allows.
  double pass(bool write, int depth) {
    const Clock::time_point begin = Clock::now();
    Bytes done = 0;
    while (done < file_.size() && (done == 0 || seconds_since(begin) < kMostSeconds)) {
      done += move(write, done, piece_ * depth, 0, buffer_bytes_);
    }
    return static_cast<double>(done) / seconds_since(begin);
  }

  /// The first half of the file is written while the second is read, each with a half of the
  /// memory.
  BothDirections both(int depth) {
    const Bytes half = file_.size() / 2 / piece_ * piece_;
    const Bytes memory = (buffer_bytes_ / 2) & -BlockFile::kAlignment;
    std::atomic<bool> over{false};
    std::atomic<Bytes> written{0};
    std::atomic<bool> failed{false};
    const Clock::time_point begin = Clock::now();
    std::thread writer([&] {
      try {
        for (Bytes at = 0; !over; at = (at + piece_) % half) {
          written += move(true, at, std::min(piece_ * depth, half - at), 0, memory);
        }
      } catch (const DeviceError&) {
        failed = true;
      }
    });
    Bytes read = 0;
    while (read < half * 2 && !failed && seconds_since(begin) < kMostSeconds) {
      read += move(false, half + read % half, std::min(piece_ * depth, half - read % half), memory,
                   memory);
    }
    const BothDirections result{written, read, seconds_since(begin)};
    over = true;
    writer.join();
    if (failed) throw DeviceError("a disk that wrote does not while it reads");
    return result;
  }

  /// What one block takes beyond its bytes.
  Nanos latency(bool write, double speed) {
    constexpr Bytes kBlock = BlockFile::kAlignment;
    constexpr int kMost = 64;
    std::vector<double> times;
    Random random(write ? 1 : 2);
    const Clock::time_point begin = Clock::now();
    while (times.size() < kMost && (times.size() < 3 || seconds_since(begin) < kMostSeconds)) {
      const auto blocks = static_cast<std::uint64_t>(file_.size() / kBlock);
      const Bytes at = static_cast<Bytes>(random.below(blocks)) * kBlock;
      const Clock::time_point start = Clock::now();
      move(write, at, kBlock, 0, kBlock);
      times.push_back(seconds_since(start));
    }
    const double rest = median(times) - static_cast<double>(kBlock) / speed;
    return from_seconds(std::max(rest, 0.0));
  }

 private:
  /// As much as lies before the end of the file and in this part of the memory.
  Bytes move(bool write, Bytes offset, Bytes bytes, Bytes memory, Bytes memory_bytes) {
    const Bytes now = std::min({bytes, file_.size() - offset, memory_bytes});
    std::byte* const at = buffer_.data() + memory;
    write ? file_.write(offset, at, now) : file_.read(offset, at, now);
    return now;
  }

  BlockFile file_;
  Bytes piece_;  ///< a small file has smaller ones
  GuardedMemory buffer_;
  Bytes buffer_bytes_;
};

DiskSpeeds measured(Bench& bench) {
  DiskSpeeds speeds;
  bench.pass(true, 1);  // the first writes to blocks are slower than those of a training
  std::vector<double> by_depth;
  for (int depth = 1; depth <= SpillOptions::kMostDepth; depth *= 2) {
    bench.set_depth(depth);
    const double write = bench.pass(true, depth);
    const double read = bench.pass(false, depth);
    by_depth.push_back(2 / (1 / write + 1 / read));
    if (best_depth(by_depth) < depth) break;
    speeds.depth = depth;
    speeds.write = write;
    speeds.read = read;
  }
  bench.set_depth(speeds.depth);
  speeds.duplex = is_duplex(speeds.write, speeds.read, bench.both(speeds.depth));
  speeds.write_latency = bench.latency(true, speeds.write);
  speeds.read_latency = bench.latency(false, speeds.read);
  return speeds;
}

}  // namespace

bool is_duplex(double write, double read, const BothDirections& both) {
  const double of_writes = static_cast<double>(both.written) / write;
  const double of_reads = static_cast<double>(both.read) / read;
  const auto error = [&](double predicted) { return std::abs(std::log(predicted / both.seconds)); };
  return error(std::max(of_writes, of_reads)) < error(of_writes + of_reads);
}

int best_depth(std::span<const double> speeds) {
  const double fastest = std::ranges::max(speeds);
  int depth = 1;
  for (const double speed : speeds) {
    if (speed >= fastest / 1.1) break;
    depth *= 2;
  }
  return depth;
}

Result<DiskSpeeds> calibrate(const SpillOptions& options, Bytes memory) {
  const auto room = BlockFile::room(options);
  if (!room) return fail(room.error());
  if (options.write_speed > 0 && options.read_speed > 0) {
    if (const auto file = BlockFile::open(options, 0); !file) return fail(file.error());
    return DiskSpeeds{.write = options.write_speed,
                      .read = options.read_speed,
                      .duplex = options.paced_duplex,
                      .depth = options.depth,
                      .room = *room};
  }
  if (*room < kLeastBytes) {
    const std::string why =
        options.limit > 0
            ? fmt::format("{} and what is free there leave {} B", options.limit_name(), *room)
            : fmt::format(
                  "of what is free there, less the larger of 5 % and 1 GiB, {} B are left; "
                  "{} says how much it may have instead",
                  *room, options.limit_name());
    return fail(Error{ErrorCode::infeasible,
                      fmt::format("the disk is too small: its speed is measured with a file of at "
                                  "least {} B ({}) in {}; {}",
                                  kLeastBytes, format_bytes(kLeastBytes), options.folder, why),
                      std::nullopt, true});
  }
  const Bytes piece = *room < 2 * kPiece ? 2 * BlockFile::kAlignment : kPiece;
  const Bytes bytes = std::min(kMostBytes, *room) / piece * piece;
  auto file = BlockFile::open(options, bytes);
  if (!file) return fail(file.error());
  const Bytes most = kPiece * SpillOptions::kMostDepth * 2;
  try {
    Bench bench(std::move(*file), std::max(std::min(memory, most) & -kPiece, 2 * kPiece));
    DiskSpeeds speeds = measured(bench);
    speeds.room = *room;
    // A file system that keeps what it was told to let go of is no better than memory.
    if (bench.file().cached().value_or(0) > bytes / 2) {
      return fail(ErrorCode::usage, fmt::format("{} keeps files in memory", options.folder));
    }
    return speeds;
  } catch (const DeviceError& error) {
    return fail(ErrorCode::runtime, error.what());
  }
}

}  // namespace tidepool
