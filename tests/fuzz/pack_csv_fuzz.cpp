// Packing problems: what parses can be packed by everything, and is read again as written.
#include <cstdlib>

#include "pack/pack_csv.h"
#include "pack/search.h"
#include "pack/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidepool;
  const auto file = read_pack_csv({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!file || file->ids.size() > 200) return 0;
  for (const Packer& packer : packers()) {
    const Packing packing = packer.pack(file->problem);
    if (!validate(file->problem, packing)) std::abort();
    if (!read_pack_csv(write_pack_csv(*file, packing), "fuzz")) std::abort();
  }
  SearchOptions options;
  options.time_limit = from_seconds(1);
  options.rounds = 1;
  if (!validate(file->problem, search_packing(file->problem, options).packing)) std::abort();
  return 0;
}
