// What the handles of the C interface are.
#pragma once

#include <memory>

#include "api/data.h"
#include "tidepool/tidepool.h"

struct tp_program {
  std::shared_ptr<const tidepool::api::ProgramData> data;
};

struct tp_machine {
  std::shared_ptr<const tidepool::api::MachineData> data;
};

struct tp_plan {
  std::shared_ptr<const tidepool::api::PlanData> data;
};
