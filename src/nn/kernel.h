// Kernel: runs one OpDesc on one kind of device. Kernels are looked up in an ordered list per
// device whose last entry is the plain reference kernel (oneDNN's scheme) where that can run: on a
// GPU it cannot, its list has a kernel for every op.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "nn/op_desc.h"

namespace tidepool::nn {

struct KernelAlgorithm {
  std::string name;
  Bytes workspace = 0;
  bool deterministic = true;
};

/// Made once per op; `run` is called from the stream's thread, never twice at the same time for
/// one kernel, and allocates nothing.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// At least one; all share the OpDesc's layouts and differ in time, workspace and bits only.
  [[nodiscard]] virtual std::span<const KernelAlgorithm> algorithms() const = 0;
  /// `pointers` in the order of the op's operands. `workspace` is aligned and of the algorithm's
  /// size, its content undefined before and after.
  virtual void run(int algorithm, std::span<std::byte* const> pointers, std::byte* workspace,
                   NativeStream stream) = 0;
};

/// Makes a kernel, or returns null when it does not support the op.
using KernelFactory = std::unique_ptr<Kernel> (*)(const OpDesc& desc);

struct KernelList {
  std::string name;                      ///< "cpu", "reference"
  bool blocked_layouts = false;          ///< activations in nChw16c; otherwise all plain
  std::vector<KernelFactory> factories;  ///< in order of preference; the last is the reference

  /// The first factory's kernel that takes the op. Asserts that one does.
  [[nodiscard]] std::unique_ptr<Kernel> make(const OpDesc& desc) const;
};

/// Plain loops for every device op, any layout; the oracle of the kernel tests.
const KernelList& reference_kernels();
/// oneDNN where it has the op, our own loops elsewhere, then the reference kernels.
const KernelList& cpu_kernels();

}  // namespace tidepool::nn
