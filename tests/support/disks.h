// Places for files that are not in memory, and small disks of their own where the tests may mount.
#pragma once

#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "support/process.h"

namespace tidepool::testing {

/// A folder of its own on a disk, removed at the end.
class DiskFolder {
 public:
  DiskFolder() {
    const std::string usual = std::filesystem::temp_directory_path().string();
    for (const std::string& base : {usual, std::string("/var/tmp"), std::string(".")}) {
      struct statfs status {};
      if (::statfs(base.c_str(), &status) != 0 || status.f_type == TMPFS_MAGIC) continue;
      std::string pattern = base + "/tidepool-disk-XXXXXX";
      if (::mkdtemp(pattern.data()) == nullptr) continue;
      path_ = pattern;
      return;
    }
    std::abort();
  }
  ~DiskFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  DiskFolder(const DiskFolder&) = delete;
  DiskFolder& operator=(const DiskFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Bytes free_on(const std::string& folder) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) return -1;
  return static_cast<Bytes>(status.f_bavail) * static_cast<Bytes>(status.f_frsize);
}

/// Mounts of this thread, and of those it starts, are seen by nobody else. False where that is not
/// allowed.
inline bool own_mounts() {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

/// A file system in a file, mounted while this lives.
class SmallDisk {
 public:
  /// `make`: the program that makes it, such as mkfs.ext4.
  SmallDisk(const std::string& make, Bytes bytes, const std::string& options = "loop")
      : folder_(), mounted_(folder_.path() + "/disk") {
    if (!own_mounts()) {
      why_not_ = "no right to mount";
      return;
    }
    const std::string image = folder_.path() + "/image";
    std::ofstream(image).flush();
    std::filesystem::resize_file(image, static_cast<std::uintmax_t>(bytes));
    std::filesystem::create_directory(mounted_);
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"/usr/bin/env", make, "-q", image},
          {"/usr/bin/env", "mount", "-o", options, image, mounted_}}) {
      const Finished done = run_process(command);
      if (done.exit_code == 0) continue;
      why_not_ = command[1] + ": " + done.err;
      return;
    }
  }
  ~SmallDisk() {
    if (why_not_.empty()) ::umount2(mounted_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  /// Why there is none; empty: there is one.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  [[nodiscard]] const std::string& path() const { return mounted_; }

 private:
  DiskFolder folder_;
  std::string mounted_;
  std::string why_not_;
};

}  // namespace tidepool::testing
