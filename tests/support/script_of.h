// The script of a plan: its steady state without waits.
#pragma once

#include "lower/scripted.h"

namespace tidepool::testing {

inline Script script_of(const Plan& plan) {
  Script script;
  script.arenas = plan.arenas;
  script.streams = plan.streams;
  script.placements = plan.placements;
  script.boundary = plan.boundary;
  for (const Instruction& x : plan.steady.instructions) {
    ScriptItem item;
    item.kind = x.kind;
    item.stream = x.stream;
    item.op = x.op;
    item.algorithm = x.algorithm;
    item.operands = x.operands;
    item.workspace_offset = x.workspace_offset;
    item.from = x.from;
    item.to = x.to;
    script.items.push_back(std::move(item));
  }
  return script;
}

}  // namespace tidepool::testing
