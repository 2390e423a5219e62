#include "output_check.h"

#include <fmt/format.h>

#include "base/output_file.h"
#include "nn/data/checkpoint.h"

namespace tidepool::cli {

Result<void> check_output(const std::string& path) {
  if (nn::is_checkpoint(path)) {
    return fail(ErrorCode::usage,
                fmt::format("{}: is a checkpoint; it is not replaced. Name another file", path));
  }
  return check_writable(path);
}

}  // namespace tidepool::cli
