// Data parallel training on several devices of one machine (Chen, Chen, Hu: "moDNN", TPDS 2019,
// section 6): the batch is split in equal parts, every device runs the same ops on its part, and
// the host adds the gradients and updates the weights.
#pragma once

#include "ir/replication.h"
#include "nn/training_program.h"

namespace tidepool::nn {

struct DataParallel {
  TrainingProgram whole;
  Replication replication;
};

/// The program of all devices, of the part that `build_training_program` makes with these options
/// (`devices` above 1). A weight is one tensor, which every device reads a copy of; one host op per
/// weight adds the gradients in the order of the devices and updates it; with naive accumulation
/// ops of device 0 do, at the end (moDNN, section 7.5). Random numbers and data
/// are those of each sample's place in the whole batch, so parts that are summed in the same order,
/// as the rounds of one device are, give the same bits. Running statistics of batch norm are one
/// tensor, too, on the host, which takes in those of the parts in the order of the devices.
DataParallel replicate(const TrainingProgram& part, const TrainingOptions& options,
                       const KernelList& kernels);

}  // namespace tidepool::nn
