// Whether the disk behind a training is as fast as its plan counts on: from the copies themselves.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "cost/machine.h"
#include "device/spill_options.h"

namespace tidepool {

/// Bytes per second.
struct DirectionSpeed {
  double planned = 0;
  double measured = 0;
  [[nodiscard]] bool changed() const { return measured != planned; }
};

struct DiskChange {
  DirectionSpeed write;
  DirectionSpeed read;
  /// "writes 210 MB/s where the plan counts on 500 MB/s": only what has changed.
  [[nodiscard]] std::string text() const;
};

// Note [Drift]. What a copy takes besides its bytes is known badly: a stated disk has a guess, and
// a slow thread adds to it. So two speeds are taken from the copies of an iteration: with all of
// their time counted as that of their bytes, and without the latencies that the plan counts on. A
// disk is slower only where the second says so, and faster only where the first does.

class DiskDrift {
 public:
  static constexpr std::size_t kIterations = 5;  ///< whose median counts
  static constexpr double kMost = 0.25;          ///< by so much it may differ
  /// Iterations that copy less one way say nothing of its speed.
  static constexpr Bytes kLeastBytes = kMiB;

  /// The machine that the plan was made for; nothing ever changes on one without a file.
  explicit DiskDrift(const Machine& machine);

  /// What is copied until then does not count.
  void begin(const FileTraffic& now) { before_ = now; }
  /// After each iteration.
  void iteration(const FileTraffic& now);

  /// Of the last iterations, where either direction differs by more than kMost.
  [[nodiscard]] std::optional<DiskChange> change() const;
  /// The same, the first time there is any.
  std::optional<DiskChange> news();

 private:
  /// How many times as fast as planned, at least and at most.
  struct Ratio {
    double least = 1;
    double most = 1;
  };
  struct Way {
    LinkSpeed planned;
    std::deque<Ratio> last;
    void add(const FileTraffic::Direction& before, const FileTraffic::Direction& now);
    [[nodiscard]] DirectionSpeed speed() const;
  };
  bool has_file_ = false;
  bool told_ = false;
  Way write_;
  Way read_;
  FileTraffic before_;
};

}  // namespace tidepool
