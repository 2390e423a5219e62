// SuperNeurons, recomputation only: the outputs of cheap layers are dropped behind their last
// reader in forward and computed again, segment by segment, from the checkpoints before, which
// stay.
//
// Source: Wang and others: SuperNeurons, PPoPP 2018, section 3.4 (cost-aware recomputation); one of
// the three points that the deep Q-network paper (section 5.1) has of it, which has none of
// residual networks: the published program does not recompute there. Here it does.
//
// As superneurons.h, Note [SuperNeurons], without the transfers. The batch's input stays too.
#pragma once

#include "planners/planner.h"

namespace tidepool {

std::unique_ptr<Planner> make_superneurons_recompute();

}  // namespace tidepool
