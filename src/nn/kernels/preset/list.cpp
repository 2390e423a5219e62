#include "nn/kernels/preset/convolution_algorithms.h"

namespace tidepool::nn {
namespace {

/// The reference kernel of a convolution, whatever the algorithm: a preset is planned for, it has
/// no memory to run in.
class PresetConvolution final : public Kernel {
 public:
  PresetConvolution(std::vector<KernelAlgorithm> algorithms, std::unique_ptr<Kernel> reference)
      : algorithms_(std::move(algorithms)), reference_(std::move(reference)) {}

  [[nodiscard]] std::span<const KernelAlgorithm> algorithms() const override { return algorithms_; }
  void run(int /*algorithm*/, std::span<std::byte* const> pointers, std::byte* workspace,
           NativeStream stream) override {
    reference_->run(0, pointers, workspace, stream);
  }

 private:
  std::vector<KernelAlgorithm> algorithms_;
  std::unique_ptr<Kernel> reference_;
};

std::unique_ptr<Kernel> make_convolution(const OpDesc& desc, const KernelContext& /*context*/) {
  auto algorithms = convolution_algorithms(desc);
  if (algorithms.empty()) return nullptr;
  return std::make_unique<PresetConvolution>(std::move(algorithms), reference_kernels().make(desc));
}

}  // namespace

const KernelList& preset_kernels() {
  static const KernelList list = [] {
    KernelList made{"preset", 1, {make_convolution}};
    const KernelList& reference = reference_kernels();
    made.factories.insert(made.factories.end(), reference.factories.begin(),
                          reference.factories.end());
    made.adding = made.factories;
    return made;
  }();
  return list;
}

}  // namespace tidepool::nn
