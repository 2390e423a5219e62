#include "nn/kernels/cpu/product.h"

#include "nn/kernels/cpu/dnnl_kernel.h"

namespace tidepool::nn::cpu {

dnnl::memory::desc Matrix::desc() const {
  using Dims = dnnl::memory::dims;
  constexpr auto kFloat = dnnl::memory::data_type::f32;
  if (transposed) return {Dims{columns, rows}, kFloat, Dims{1, pitch}};
  return {Dims{rows, columns}, kFloat, Dims{pitch, 1}};
}

std::optional<Product> Product::make(const Matrix& a, const Matrix& b, const Matrix& c, Sum sum) {
  const bool in_one_piece = b.rows <= kInOnePiece && c.rows > 1 && c.columns > 1;
  if (sum == Sum::added_whole && !in_one_piece) return std::nullopt;
  dnnl::primitive_attr attributes;  // of its own: copies share their content
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (sum != Sum::fresh) {
    dnnl::post_ops add;
    add.append_sum(1.0F);
    attributes.set_post_ops(add);
  }
  const dnnl::matmul::primitive_desc desc({a.desc(), b.desc(), c.desc()}, attributes, dnnl_engine(),
                                          true);
  if (!desc.get(true)) return std::nullopt;
  return Product(desc, {a.desc(), b.desc(), c.desc(), desc.scratchpad_desc()});
}

void Product::run(const float* a, const float* b, float* c, std::byte* scratch) {
  memories_[0].set_data_handle(const_cast<float*>(a));  // it is read only
  memories_[1].set_data_handle(const_cast<float*>(b));
  memories_[2].set_data_handle(c);
  memories_[3].set_data_handle(scratch);
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), dnnl_stream().get(),
                             static_cast<int>(arguments_.size()), arguments_.data()),
      "could not execute a oneDNN product");
}

Product::Product(const dnnl::matmul::primitive_desc& desc,
                 const std::vector<dnnl::memory::desc>& descs)
    : primitive_(desc) {
  constexpr int kNames[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
  for (const dnnl::memory::desc& each : descs) {
    arguments_.push_back({kNames[memories_.size()], nullptr});
    memories_.emplace_back(each, dnnl_engine(), nullptr);
    arguments_.back().memory = memories_.back().get();
  }
}

}  // namespace tidepool::nn::cpu
