// CIFAR-10 (Krizhevsky 2009) in its binary version: data_batch_1.bin ... data_batch_5.bin and
// test_batch.bin, records of one label byte and 3072 pixels.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "nn/data/dataset.h"

namespace tidepool::nn {

/// Reads all files of the split that `folder` has; a gap in their numbers, none at all, or a
/// malformed one is an error that names the file. The images are in a file of `scratch_folder`; in
/// memory where it is empty.
Result<std::unique_ptr<Dataset>> load_cifar10(Split split, const std::string& folder,
                                              const std::string& scratch_folder = {});

}  // namespace tidepool::nn
