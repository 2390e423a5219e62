// The state of a training between runs: its persistent tensors, and checkpoints of them.
#pragma once

#include <string>
#include <vector>

#include "job/job.h"
#include "nn/data/checkpoint.h"
#include "nn/program_runner.h"
#include "planning/algorithm_choice.h"

namespace tidepool {

/// Gives the runner those of its persistent tensors that the checkpoint has. One that the runner
/// lacks is no error: evaluation needs no optimizer state.
Result<void> restore(const nn::CheckpointFile& file, nn::ProgramRunner& runner);

/// CRC-32 of all stored values.
std::uint32_t checksum(const nn::ProgramRunner& runner);

/// Bit for bit: losses and every persistent tensor.
bool identical(const Program& program, const nn::TrainingRunner& a, const nn::TrainingRunner& b);

/// A checkpoint that this job can go on from, bit for bit; else an error that says what differs.
Result<nn::CheckpointFile> load_checkpoint(const Job& job, const std::string& path);
/// The samples a round of a checkpoint's training; 0 where it is of another batch.
Result<std::int64_t> saved_sub_batch(const std::string& path, std::int64_t batch);
Result<void> save_checkpoint(const Job& job, const AlgorithmChoice& algorithms,
                             std::int64_t next_iteration, const nn::ProgramRunner& runner,
                             const std::string& path);
/// The algorithms the checkpoint's training ran.
Result<AlgorithmChoice> saved_choice(const Job& job, const nn::Checkpoint& checkpoint,
                                     const std::string& path);

}  // namespace tidepool
