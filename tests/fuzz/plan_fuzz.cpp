// Plan files: what parses can be proved or refuted, and what is proved can be simulated.
#include "check/check.h"
#include "lower/plan_file.h"
#include "sim/simulate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidepool;
  const auto file = read_plan({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!file) return 0;
  const auto proof = check(file->program, file->plan,
                           {file->device_budget, file->host_budget, file->machine.alignment()});
  if (proof) (void)simulate(file->program, file->plan, file->machine, 2);
  return 0;
}
