// HostUpdate: runs an update of what devices share on the host with the kernels that a device runs,
// or others of their bits, so that the bits are the same.
#pragma once

#include <memory>
#include <span>

#include "nn/kernel.h"

namespace tidepool::nn {

struct ControlBlock;

class HostUpdate {
 public:
  /// Whether it is such an op.
  static bool is(const OpDesc& desc);
  /// Where `kernels` run on host memory themselves one thread of them is taken: the other cores
  /// have work.
  HostUpdate(const OpDesc& desc, const KernelList& kernels);
  /// `pointers` in the order of the op's operands.
  void run(std::span<std::byte* const> pointers, ControlBlock control);

 private:
  void make_update_of_weight(const OpDesc& desc, const KernelList& alone);
  void run_update_of_statistics(std::span<std::byte* const> pointers);

  std::size_t gradients_ = 0;    ///< 0: it updates statistics
  std::unique_ptr<Kernel> add_;  ///< of gradients
  std::unique_ptr<Kernel> update_;
  std::vector<std::byte*> operands_;  ///< of `update_`
};

}  // namespace tidepool::nn
