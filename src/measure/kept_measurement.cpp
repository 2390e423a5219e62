#include "measure/kept_measurement.h"

#include <fmt/format.h>

#include "base/random.h"
#include "planning/cache.h"

namespace tidepool {

std::filesystem::path kept_file(std::string_view kind, const std::string& subject,
                                const CacheSpec& cache) {
  const std::filesystem::path folder = cache_folder();
  if (folder.empty() || cache.off) return {};
  std::uint64_t hash = 0;
  for (const char c : subject) hash = hash_combine(hash, static_cast<unsigned char>(c));
  return folder / fmt::format("{}-{:016x}.json", kind, hash);
}

void remember(const std::filesystem::path& file, const std::string& subject, Json content) {
  if (file.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  content["fingerprint"] = subject;
  (void)write_file(file.string(), content.dump(2) + "\n");
}

}  // namespace tidepool
