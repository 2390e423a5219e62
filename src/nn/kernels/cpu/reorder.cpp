#include "nn/kernels/cpu/dnnl_kernel.h"
#include "nn/kernels/cpu/factories.h"
#include "nn/kernels/cpu/team_size.h"

namespace tidepool::nn::cpu {

std::unique_ptr<Kernel> make_reorder(const OpDesc& desc, const KernelContext& context) {
  if (!desc.is<Reorder>()) return nullptr;
  const TeamSize team(context.threads);
  const dnnl::memory::desc from = dnnl_desc(desc.operands[0]);
  const dnnl::memory::desc to = dnnl_desc(desc.operands[1]);
  const dnnl::reorder::primitive_desc reorder(dnnl_engine(), from, dnnl_engine(), to,
                                              dnnl_attributes(), true);
  if (!reorder.get(true)) return nullptr;
  return make_dnnl_kernel(context, dnnl::reorder(reorder), reorder,
                          {{DNNL_ARG_FROM, from, {0}}, {DNNL_ARG_TO, to, {1}}});
}

}  // namespace tidepool::nn::cpu
