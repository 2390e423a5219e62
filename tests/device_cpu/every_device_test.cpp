#include "support/every_device.h"

#include "device_cpu/cpu_subject.h"
#include "support/plans_on_every_device.h"

namespace tidepool::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, EveryDevice, CpuSubject);
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, PlansOnEveryDevice, CpuSubject);

}  // namespace tidepool::testing
