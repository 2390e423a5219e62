// KernelDevice: runs single kernels on a GPU on the operands of an OpRun.
#pragma once

#include <cstring>
#include <vector>

#include "device/cuda/cuda_device.h"
#include "nn/kernel_testing.h"

namespace tidepool::nn::testing {

class KernelDevice {
 public:
  KernelDevice() : device_(CudaDeviceOptions{}) {
    device_.open({kDeviceBytes, kHostBytes, {StreamKind::compute}});
  }

  /// Whether the algorithm's workspace fits.
  [[nodiscard]] static bool fits(const KernelAlgorithm& algorithm) {
    return algorithm.workspace <= kDeviceBytes - kHostBytes;
  }

  /// Copies the operands of `run` to the device, runs the kernel on them and copies them back.
  /// Operands start `shift` alignments later; the workspace starts as bytes of `poison`.
  void run(Kernel& kernel, int algorithm, const OpRun& run, int poison = 0xff, int shift = 0) {
    const Bytes align = device_.alignment();
    std::vector<Bytes> offsets;
    Bytes end = shift * align;
    for (std::size_t i = 0; i < run.desc().operands.size(); ++i) {
      offsets.push_back(end);
      // At least kGuard bytes up to the next operand.
      end = align_up(end + run.desc().operands[i].bytes() + kGuard, align);
    }
    const Bytes workspace = kernel.algorithms()[static_cast<std::size_t>(algorithm)].workspace;
    const Bytes poisoned = std::min(workspace + kGuard, kHostBytes - end);
    ASSERT_LE(end, kHostBytes);
    std::byte* const host = device_.host_arena();
    std::memset(host, kGuardByte, static_cast<std::size_t>(end));
    std::memset(host + end, poison, static_cast<std::size_t>(poisoned));
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      std::memcpy(host + offsets[i], run.buffer(i).data(), run.buffer(i).size());
    }
    device_.copy(0, {0, 0}, {1, 0}, end + poisoned);

    std::vector<std::byte*> pointers;
    for (const Bytes offset : offsets) pointers.push_back(device_.arena() + offset);
    struct Call {
      Kernel* kernel;
      std::vector<std::byte*>* pointers;
      std::byte* workspace;
    } call{&kernel, &pointers, workspace > 0 ? device_.arena() + end : nullptr};
    Work work;
    work.context = &call;
    work.argument = algorithm;
    work.run = [](void* context, std::int64_t argument, NativeStream stream) {
      const auto& c = *static_cast<Call*>(context);
      c.kernel->run(static_cast<int>(argument), *c.pointers, c.workspace, stream);
    };
    device_.launch(0, work);
    device_.copy(0, {1, 0}, {0, 0}, end);
    const bool guarded = poisoned == workspace + kGuard;
    if (guarded) {
      device_.copy(0, {1, end}, {0, end + workspace}, kGuard);
    }
    device_.synchronize();
    for (Bytes k = 0; guarded && k < kGuard; ++k) {
      ASSERT_EQ(host[end + k], static_cast<std::byte>(poison)) << "written behind the workspace";
    }

    for (std::size_t i = 0; i < offsets.size(); ++i) {
      const std::byte* const from = host + offsets[i];
      const std::size_t size = run.buffer(i).size();
      std::memcpy(run.buffer(i).data(), from, size);
      for (Bytes k = 0; k < kGuard; ++k) {
        ASSERT_EQ(from[static_cast<Bytes>(size) + k], std::byte{kGuardByte})
            << "written behind operand " << i;
      }
    }
  }

  CudaDevice& device() { return device_; }

 private:
  static constexpr Bytes kDeviceBytes = 3 * kGiB, kHostBytes = 256 * kMiB, kGuard = 64;
  static constexpr unsigned char kGuardByte = 0xab;
  CudaDevice device_;
};

}  // namespace tidepool::nn::testing
