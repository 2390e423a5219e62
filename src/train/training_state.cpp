#include "train/training_state.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "ir/load_profile.h"

namespace tidepool {
namespace {

constexpr const char* kChoiceSetting = "algorithm_choice";
constexpr const char* kLearningRateSetting = "learning_rate";

/// One schedule can be written in several ways.
bool same_setting(const std::string& name, const std::string& saved, const std::string& now) {
  if (saved == now) return true;
  if (name != kLearningRateSetting) return false;
  const auto a = nn::parse_learning_rate(saved);
  const auto b = nn::parse_learning_rate(now);
  return a && b && *a == *b;
}

}  // namespace

TrainingState state_of(const nn::ProgramRunner& runner) {
  TrainingState state;
  for (const nn::PersistentTensor& t : runner.persistent_tensors()) {
    const auto value = runner.value(t.name);
    state.push_back({t.name, {value->begin(), value->end()}});
  }
  return state;
}

Result<void> restore(const TrainingState& state, nn::ProgramRunner& runner) {
  for (const nn::PersistentTensor& t : runner.persistent_tensors()) {
    const auto found =
        std::find_if(state.begin(), state.end(), [&](const auto& s) { return s.name == t.name; });
    if (found == state.end()) {
      return fail(ErrorCode::bad_input, fmt::format("the checkpoint has no tensor '{}'", t.name));
    }
    if (auto set = runner.set_value(t.name, found->value); !set) return set;
  }
  return {};
}

std::uint32_t checksum(const TrainingState& state) {
  uLong crc = crc32(0, nullptr, 0);
  for (const nn::CheckpointTensor& t : state) {
    crc = crc32(crc, reinterpret_cast<const Bytef*>(t.value.data()),
                static_cast<uInt>(t.value.size()));
  }
  return static_cast<std::uint32_t>(crc);
}

bool identical(const Program& program, const nn::TrainingRunner& a, const nn::TrainingRunner& b) {
  const auto& x = a.losses();
  const auto& y = b.losses();
  if (x.size() != y.size() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) != 0) {
    return false;
  }
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    if (!program.tensors[t].persistent) continue;
    if (a.value(static_cast<TensorId>(t)) != b.value(static_cast<TensorId>(t))) return false;
  }
  return true;
}

Result<nn::Checkpoint> load_checkpoint(const Job& job, const std::string& path) {
  const auto content = read_file(path);
  if (!content) return fail(content.error());
  auto checkpoint = nn::read_checkpoint(*content, path);
  if (!checkpoint) return fail(checkpoint.error());
  for (const auto& [name, value] : job.settings()) {
    const std::string saved = checkpoint->setting(name);
    if (same_setting(name, saved, value)) continue;
    // What files do not say of one device.
    const auto said = [&name](const std::string& text) -> std::string {
      return !text.empty() ? text : name == "devices" ? "1" : "unknown";
    };
    return fail(
        ErrorCode::bad_input,
        fmt::format("{}: was saved with {} '{}', this training has '{}'; going on would not be "
                    "bit for bit the same training",
                    path, name, said(saved), said(value)));
  }
  return checkpoint;
}

Result<std::int64_t> saved_sub_batch(const std::string& path, std::int64_t batch) {
  const auto content = read_file(path);
  if (!content) return fail(content.error());
  const auto checkpoint = nn::read_checkpoint(*content, path);
  if (!checkpoint) return fail(checkpoint.error());
  if (checkpoint->setting("batch") != fmt::format("{}", batch)) return 0;
  const std::string text = checkpoint->setting("sub_batch");
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::max<std::int64_t>(value, 0);
}

Result<void> save_checkpoint(const Job& job, const AlgorithmChoice& algorithms,
                             std::int64_t next_iteration, const TrainingState& state,
                             const std::string& path) {
  auto settings = job.settings();
  settings.emplace_back(kChoiceSetting, to_text(job.program(), algorithms));
  return write_file(path, nn::serialize({std::move(settings), next_iteration, state}));
}

bool may_become_checkpoint(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return true;
  constexpr std::string_view kStart = "tidepool checkpoint ";
  std::ifstream file(path, std::ios::binary);
  std::array<char, kStart.size()> start{};
  file.read(start.data(), start.size());
  const auto read = static_cast<std::size_t>(file.gcount());
  return read == 0 || std::string_view(start.data(), read) == kStart;
}

Result<std::optional<AlgorithmChoice>> saved_choice(const Job& job,
                                                    const nn::Checkpoint& checkpoint,
                                                    const std::string& path) {
  const std::string text = checkpoint.setting(kChoiceSetting);
  if (!text.empty()) return read_algorithm_choice(job.program(), text, path);
  // Files of before planners chose algorithms.
  if (algorithms_of(job.spec()) == AlgorithmPolicy::least_workspace) {
    return least_workspace_algorithms(job.program());
  }
  return fail(ErrorCode::bad_input,
              fmt::format("{}: does not say which algorithms were the fastest when it was saved; "
                          "going on would not be bit for bit the same training",
                          path));
}

}  // namespace tidepool
