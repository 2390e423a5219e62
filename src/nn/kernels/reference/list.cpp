#include "nn/kernels/reference/reference.h"

namespace tidepool::nn {
namespace {

template <class Op>
void run(const OpDesc& desc, Pointers pointers, std::byte* /*workspace*/,
         const KernelContext& /*context*/) {
  reference::run(std::get<Op>(desc.op), desc, pointers);
}

std::unique_ptr<Kernel> make_writing(const OpDesc& desc, const KernelContext& context) {
  return std::visit(
      [&]<class Op>(const Op& /*op*/) -> std::unique_ptr<Kernel> {
        if constexpr (on_host(Op::role)) {
          return nullptr;
        } else {
          return std::make_unique<FunctionKernel>(desc, context, "reference", run<Op>);
        }
      },
      desc.op);
}

/// An op that adds to gradients: what the same op writes, added. It has memory of its own for that,
/// and no workspace, like a library that adds each sum to its place.
class Adding final : public Kernel {
 public:
  Adding(OpDesc desc, std::unique_ptr<Kernel> writing)
      : desc_(std::move(desc)), writing_(std::move(writing)) {}

  [[nodiscard]] std::span<const KernelAlgorithm> algorithms() const override {
    return writing_->algorithms();
  }
  void run(int algorithm, Pointers pointers, std::byte* workspace, NativeStream stream) override {
    std::vector<std::vector<float>> written(pointers.size());
    std::vector<std::byte*> places(pointers.begin(), pointers.end());
    for (std::size_t i = 0; i < pointers.size(); ++i) {
      if (!desc_.adds(i)) continue;
      written[i].resize(static_cast<std::size_t>(desc_.operands[i].bytes()) / sizeof(float));
      places[i] = reinterpret_cast<std::byte*>(written[i].data());
    }
    writing_->run(algorithm, places, workspace, stream);
    for (std::size_t i = 0; i < pointers.size(); ++i) {
      auto* sum = reinterpret_cast<float*>(pointers[i]);
      for (const float term : written[i]) *sum++ += term;
    }
  }

 private:
  OpDesc desc_;
  std::unique_ptr<Kernel> writing_;
};

std::unique_ptr<Kernel> make_reference(const OpDesc& desc, const KernelContext& context) {
  auto writing = make_writing(desc, context);
  if (desc.added == 0 || writing == nullptr) return writing;
  return std::make_unique<Adding>(desc, std::move(writing));
}

}  // namespace

const KernelList& reference_kernels() {
  static const KernelList list = [] {
    KernelList made{"reference", 1, {make_reference}};
    made.adding = made.factories;
    return made;
  }();
  return list;
}

}  // namespace tidepool::nn
