#include "support/every_device.h"

#include "device_cuda/cuda_subject.h"
#include "support/plans_on_every_device.h"

namespace tidepool::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, EveryDevice, CudaSubject);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, PlansOnEveryDevice, CudaSubject);

}  // namespace tidepool::testing
