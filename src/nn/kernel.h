// Kernel: runs one OpDesc on one kind of device. Kernels are looked up in an ordered list per
// device whose last entry is the plain reference kernel (oneDNN's scheme) where that can run: on a
// GPU it cannot, its list has a kernel for every op.
//
// Nothing is read from the surroundings: bits depend on the op and the context alone. How many
// channels a block has depends on the processor (KernelList::channel_block: 16 with AVX-512), and
// with it a tensor's bytes, the algorithms and budgets: tests ask what there is.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"

namespace tidepool::nn {

struct OpDesc;

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

/// What the kernels of a list are made with. Each device uses what concerns it.
struct KernelContext {
  int threads = 1;    ///< worker threads of CPU kernels; bits and workspaces depend on it
  bool tf32 = false;  ///< float32 products may round their inputs to TF32
  bool nondeterministic = false;  ///< also list algorithms that do not repeat their bits
  bool own_convolutions = false;  ///< of this project where a library has some, too
};

/// Makes a kernel, or returns null when it does not support the op. May be called from any thread.
using KernelFactory = std::unique_ptr<Kernel> (*)(const OpDesc& desc, const KernelContext& context);

struct KernelList {
  std::string name;                      ///< "cpu", "reference"
  std::int64_t channel_block = 1;        ///< of images: 8, 16, or 1, which is plain
  std::vector<KernelFactory> factories;  ///< in order of preference; the last is the reference
  KernelContext context{};
  /// For ops that add to gradients, of which `factories` know nothing.
  std::vector<KernelFactory> adding{};
  /// What updates weights in host memory with the bits of this list's kernels; null: this list.
  const KernelList* on_host = nullptr;
  /// Of a tensor; what the kernels count in.
  std::int64_t most_elements = std::numeric_limits<std::int64_t>::max();

  /// Whether a kernel of `adding` takes an op that adds to gradients: it needs no second buffer.
  [[nodiscard]] bool adds_in_place(const OpDesc& desc) const;

  /// The first factory's kernel that takes the op, or null. Where the op adds to gradients and
  /// none of `adding` takes it: the kernel of the op that does not, with a sum in its workspace.
  [[nodiscard]] std::unique_ptr<Kernel> make(const OpDesc& desc) const;
};

/// Plain loops for every device op, any layout; the oracle of the kernel tests.
const KernelList& reference_kernels();
/// The same layouts and sizes; convolutions have the algorithms of a GPU (kernels/preset), for the
/// machine presets.
const KernelList& preset_kernels();
/// oneDNN where it has the op, our own loops elsewhere, then the reference kernels. One list for
/// each number of threads, all of one name; they live as long as the process.
const KernelList& cpu_kernels(int threads = 1);

}  // namespace tidepool::nn
