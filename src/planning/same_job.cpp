#include "planning/same_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "planning/cache.h"

namespace tidepool {

Result<void> check_fingerprint(const std::string& path, const std::string& of_file,
                               const std::string& of_device) {
  if (of_file == of_device) return {};
  return fail(ErrorCode::bad_input,
              fmt::format("{}: was made on '{}', this device is '{}'", path, of_file, of_device));
}

namespace {

/// How and where weights are updated.
struct Updates {
  std::set<OpPlace> places;
  std::set<std::string> kinds;
};

Updates updates_of(const Program& program) {
  Updates updates;
  for (const Op& op : program.ops) {
    if (op.phase != Phase::update) continue;
    updates.places.insert(op.place);
    updates.kinds.insert(op.kind);
  }
  return updates;
}

/// Of programs that are alike but for sizes: samples of another shape, for one.
std::string differing_tensor(const Program& a, const Program& b) {
  for (std::size_t t = 0; t < std::min(a.tensors.size(), b.tensors.size()); ++t) {
    const Tensor& x = a.tensors[t];
    const Tensor& y = b.tensors[t];
    if (x.name != y.name || x.bytes == y.bytes) continue;
    return fmt::format("tensor '{}' has {} B there and {} B here{}", x.name, x.bytes, y.bytes,
                       x.kind == TensorKind::input ? ", as with samples of another data set" : "");
  }
  return {};
}

/// Of what programs of jobs are made from, as far as they tell; empty where they do not.
std::string differing(const Program& a, const Program& b) {
  std::vector<std::string_view> names;
  if (a.name != b.name) names.emplace_back("model");
  if (on_one_device(a) != on_one_device(b)) names.emplace_back("devices");
  if (a.batch != b.batch) names.emplace_back("batch");
  if (a.batch == b.batch && a.sub_batch != b.sub_batch) names.emplace_back("sub-batch");
  if (names.empty()) {
    const Updates x = updates_of(a), y = updates_of(b);
    if (x.places != y.places) {
      names.emplace_back("accumulation");
    } else if (x.kinds != y.kinds) {
      names.emplace_back("optimizer");
    }
  }
  const auto same_but_algorithms = [](const Op& x, const Op& y) {
    return x.kind == y.kind && x.name == y.name;
  };
  const auto same_algorithms = [](const Op& x, const Op& y) {
    return std::ranges::equal(x.algorithms, y.algorithms, {}, &Algorithm::name, &Algorithm::name);
  };
  if (names.empty() && std::ranges::equal(a.ops, b.ops, same_but_algorithms) &&
      !std::ranges::equal(a.ops, b.ops, same_algorithms)) {
    names.emplace_back("workspace limit");
  }
  if (names.empty()) return differing_tensor(a, b);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<void> check_program(const std::string& path, const Program& of_file, const Program& wanted) {
  if (to_json(without_times(of_file)) == to_json(without_times(wanted))) return {};
  const std::string differs = differing(of_file, wanted);
  const auto described = [](const Program& program) {
    const bool whole = program.sub_batch == program.batch;
    return fmt::format("'{}', batch {}{}, {} ops", program.name, program.batch,
                       whole ? "" : fmt::format(" in rounds of {}", program.sub_batch),
                       program.ops.size());
  };
  return fail(
      ErrorCode::bad_input,
      fmt::format(
          "{}: is of another program ({}) than this job's ({}); model, batch, "
          "sub-batch, devices, accumulation, storage, optimizer, workspace limit and device "
          "must be the same{}",
          path, described(of_file), described(wanted),
          differs.empty() ? "" : "; what differs: " + differs));
}

}  // namespace tidepool
