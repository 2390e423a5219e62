// Fashion-MNIST (Xiao et al. 2017), from the four .gz files of Debian's dataset-fashion-mnist. The
// 28x28 grey images are padded to 32x32 and repeated to three channels, the shape of CIFAR.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "nn/data/dataset.h"

namespace tidepool::nn {

inline constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";

/// A missing or malformed file is an error that names it. The images are in a file of
/// `scratch_folder`; in memory where it is empty.
Result<std::unique_ptr<Dataset>> load_fashion_mnist(Split split,
                                                    const std::string& folder = kFashionMnistFolder,
                                                    const std::string& scratch_folder = {});

/// The images as they are, {1, 28, 28}, without labels: vectors of 784 floats.
Result<std::unique_ptr<SampleSource>> load_fashion_mnist_vectors(
    Split split, const std::string& folder = kFashionMnistFolder,
    const std::string& scratch_folder = {});

/// The images of `load_fashion_mnist`; the labels are the classes of the pixels: 1 where there is
/// clothing (the pixel is not 0), 0 where not and in the padding.
Result<std::unique_ptr<SampleSource>> load_fashion_mnist_masks(
    Split split, const std::string& folder = kFashionMnistFolder,
    const std::string& scratch_folder = {});

}  // namespace tidepool::nn
