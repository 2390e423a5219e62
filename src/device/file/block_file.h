// BlockFile: one file without a name, below the memory of a process. Its blocks are free again when
// the process ends, however it ends. Transfers go around the page cache where the file system lets
// them. Nothing in it outlives the process: it is never synced.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "device/faults.h"
#include "device/spill_options.h"

namespace tidepool {

class BlockFile {
 public:
  static constexpr Bytes kAlignment = SpillOptions::kAlignment;
  /// Most bytes of one transfer.
  static constexpr Bytes kPiece = 4 * kMiB;

  /// A file of `bytes`, rounded up to whole blocks. Its space is taken here, where the file system
  /// can. Errors: `usage` where the folder is in memory, `infeasible` where `bytes` are more than
  /// the limit or than what is free, `runtime` with the system's reason otherwise.
  /// From here on a write over the limit of file sizes is an error and no longer a signal.
  static Result<BlockFile> open(const SpillOptions& options, Bytes bytes,
                                const FaultPlan& faults = {});
  /// The largest file that `open` takes now: the limit, or what is free less the larger of 5 % and
  /// 1 GiB; `usage` or `runtime` where the folder cannot have any.
  static Result<Bytes> room(const SpillOptions& options);
  ~BlockFile();
  BlockFile(BlockFile&& other) noexcept;
  BlockFile& operator=(BlockFile&& other) noexcept;

  /// All of the bytes, or DeviceError naming operation, file, offset, bytes and errno, and `what`
  /// where it is not null. `offset`, `bytes` and the address are multiples of kAlignment, else
  /// EINVAL. Any thread; on ranges that do not overlap.
  void write(Bytes offset, const std::byte* from, Bytes bytes, const char* what = nullptr);
  void read(Bytes offset, std::byte* to, Bytes bytes, const char* what = nullptr);

  [[nodiscard]] Bytes size() const;
  [[nodiscard]] bool direct() const;
  /// For people: "ext4, direct".
  [[nodiscard]] std::string kind() const;
  /// For people; empty where transfers go around the page cache.
  [[nodiscard]] const std::string& warning() const;
  /// Bytes of it that the page cache holds; nothing where the kernel does not say.
  [[nodiscard]] std::optional<Bytes> cached() const;
  [[nodiscard]] int descriptor() const;
  /// Later transfers of one copy run so many at a time, 1 to SpillOptions::kMostDepth.
  void set_depth(int depth);

 private:
  struct State;
  explicit BlockFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tidepool
