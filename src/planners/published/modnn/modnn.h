// moDNN: the sub-batch, the data transfers and the convolution algorithms for a memory budget.
//
// Source: Chen, Chen, Han, Hu: moDNN: Memory Optimal Deep Neural Network Training on Graphics
// Processing Units, IEEE TPDS 30(3), 2019, sections 3.3, 5.1 and 5.2.
//
// Note [moDNN]. `sub_batch` chooses the rounds, `scheduler` goes through the tasks with the memory
// of `memory_manager`, `offloading_scheme` says what leaves, `script_writer` makes the list that
// runs. `task_memory` has the bounds.
//
// What the paper leaves open, or this system sees otherwise (more in those files):
// - The paper has one stream of data. Here there are as many as the machine has channels: two
//   directions at the same time unless it says otherwise, or the option asks for one stream.
// - Weights stay. Where they leave no room for the largest task at the smallest sub-batch, the
//   published system cannot train; here weights leave too, as the paper says they could, and a note
//   says so. Where equation 8 has no size with them, its answer would be rounds of one sample: the
//   faster of both ways is taken.
// - Tensors that are pinned, or stay taken after their last access, may leave holes in which a task
//   finds no place at all; the streaming schedule takes over there.
// - A tensor whose home is the device stays all the time.
// - Where nothing may leave, what is left of moDNN is the choice of the sub-batch and of all
// fastest
//   or all least algorithms.
#pragma once

#include "planners/planner.h"

namespace tidepool {

struct ModnnOptions {
  bool weights_leave = false;    ///< whatever the budget
  bool one_data_stream = false;  ///< as published

  bool operator==(const ModnnOptions&) const = default;
};

std::span<const OptionRecord> modnn_options();
ModnnOptions modnn_options_of(const OptionValues& values);

std::unique_ptr<Planner> make_modnn();

}  // namespace tidepool
