// What a training in the RAM of its process will take beside the device's arena.
#pragma once

#include "job/job.h"
#include "planning/process_memory.h"

namespace tidepool {

/// Before anything is measured or planned: the kernels are made to see what they take. `plans`:
/// what planning adds to the heap has to find room too; a plan from a file adds less.
Result<ProcessMemory> expected_memory(const Job& job, Bytes limit, bool plans = true);

/// Of a file of so many bytes, where they are asked for: FileSpace keeps 8 B a block.
Bytes bytes_of_hashes(const Job& job, Bytes file);
/// Of the file of this plan, where it has one.
Bytes bytes_of_hashes(const Job& job, const Plan& plan);

}  // namespace tidepool
