// Traces of both forms: what parses survives a round trip, and what repeats in it is a valid
// program with at most the recorded peak, if it is a program at all.
#include <cstdlib>

#include "ir/load_profile.h"
#include "trace/allocators/caching.h"
#include "trace/allocators/cnmem.h"
#include "trace/allocators/expandable.h"
#include "trace/recording_csv.h"
#include "trace/recording_json.h"
#include "trace/trace_program.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidepool;
  const auto recording = read_recording({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!recording) return 0;
  const std::string json = to_json_text(*recording);
  const auto back = read_recording(json, "back");
  if (!back || to_json_text(*back) != json) std::abort();
  // CSV numbers blocks in the order of their first events, JSON as it likes.
  const auto from_csv = read_recording(to_csv(*recording), "back");
  if (!from_csv) std::abort();
  const auto again = read_recording(to_csv(*from_csv), "again");
  if (!again || to_csv(*again) != to_csv(*from_csv)) std::abort();

  CnMemAllocator cnmem(kMiB);
  CachingAllocator caching;
  ExpandableAllocator expandable;
  const auto requests = allocation_requests(*recording);
  const Bytes peak = peak_live_bytes(*recording);
  for (Allocator* allocator : std::initializer_list<Allocator*>{&cnmem, &caching, &expandable}) {
    if (replay(*allocator, requests) < peak) std::abort();
  }
  const auto iteration = find_iteration(*recording);
  if (!iteration) return 0;
  const auto workload = trace_program(*recording, *iteration, machine_presets()[0].compute);
  if (!workload) return 0;
  const Program& program = workload->program;
  const LoadProfile load =
      load_profile(program, AccessIndex(program), 1, least_workspace_algorithms(program));
  if (load.peak + workload->resident > workload->recorded_peak) std::abort();
  return 0;
}
