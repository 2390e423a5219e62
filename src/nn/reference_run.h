// The oracle of exactness tests: a program run with all the memory there is.
#pragma once

#include <cstdint>
#include <span>

#include "nn/training_program.h"
#include "runtime/op_runner.h"

namespace tidepool::nn {

/// Runs `iterations` iterations in program order on the calling thread, each tensor in a buffer of
/// its own; ops whose guard is off are skipped. Loads persistent tensors from the runner and stores
/// them back. `algorithms` has one index per op; empty means the first of each op.
void run_reference(const TrainingProgram& program, OpRunner& runner, std::int64_t iterations,
                   std::span<const int> algorithms = {});

}  // namespace tidepool::nn
