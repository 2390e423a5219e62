#include "nn/kernels/cpu/cpu.h"

namespace tidepool::nn {
namespace {

KernelList make_list() {
  KernelList list{
      "cpu",
      true,
      {cpu::make_convolution, cpu::make_reorder, cpu::make_batch_norm, cpu::make_relu,
       cpu::make_add, cpu::make_pooling, cpu::make_dropout, cpu::make_linear,
       cpu::make_softmax_loss, cpu::make_count_correct, cpu::make_sgd, cpu::make_adamw}};
  const KernelList& reference = reference_kernels();
  list.factories.insert(list.factories.end(), reference.factories.begin(),
                        reference.factories.end());
  return list;
}

}  // namespace

const KernelList& cpu_kernels() {
  static const KernelList list = make_list();
  return list;
}

}  // namespace tidepool::nn
