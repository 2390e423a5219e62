#include "train/training_state.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "base/file.h"

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

/// Of the values: pieces of a persistent tensor, in order.
void for_each_piece(Bytes bytes, const std::function<void(Bytes, std::span<std::byte>)>& visit) {
  std::vector<std::byte> buffer;
  for (Bytes done = 0; done < bytes; done += kMiB) {
    buffer.resize(static_cast<std::size_t>(std::min(kMiB, bytes - done)));
    visit(done, buffer);
  }
}

}  // namespace

Result<void> restore(const nn::CheckpointFile& file, nn::ProgramRunner& runner) {
  const auto& saved = file.checkpoint().tensors;
  for (const nn::PersistentTensor& t : runner.persistent_tensors()) {
    const auto found = std::ranges::find(saved, t.name, &nn::CheckpointTensor::name);
    if (found == saved.end()) {
      return fail(ErrorCode::bad_input, fmt::format("the checkpoint has no tensor '{}'", t.name));
    }
    if (found->bytes != t.bytes) {
      return fail(ErrorCode::bad_input, fmt::format("the checkpoint's tensor '{}' has {} B, not {}",
                                                    t.name, found->bytes, t.bytes));
    }
    const TensorId tensor = *runner.find(t.name);
    const auto index = static_cast<std::size_t>(found - saved.begin());
    auto read = file.read(index, [&](std::size_t, Bytes offset, std::span<const std::byte> part) {
      runner.write_part(tensor, offset, part);
    });
    if (!read) return read;
  }
  return {};
}

std::uint32_t checksum(const nn::ProgramRunner& runner) {
  uLong crc = crc32(0, nullptr, 0);
  for (const nn::PersistentTensor& t : runner.persistent_tensors()) {
    const TensorId tensor = *runner.find(t.name);
    for_each_piece(t.bytes, [&](Bytes offset, std::span<std::byte> piece) {
      runner.read_part(tensor, offset, piece);
      crc =
          crc32(crc, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(piece.size()));
    });
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

Result<nn::CheckpointFile> load_checkpoint(const Job& job, const std::string& path) {
  auto file = nn::CheckpointFile::open(path);
  if (!file) return fail(file.error());
  for (const auto& [name, value] : job.settings()) {
    const std::string saved = file->checkpoint().setting(name);
    if (same_setting(name, saved, value)) continue;
    return fail(
        ErrorCode::bad_input,
        fmt::format("{}: was saved with {} '{}', this training has '{}'; going on would not be "
                    "bit for bit the same training",
                    path, name, saved.empty() ? "unknown" : saved, value));
  }
  return file;
}

Result<std::int64_t> saved_sub_batch(const std::string& path, std::int64_t batch) {
  const auto file = nn::CheckpointFile::open(path);
  if (!file) return fail(file.error());
  const nn::Checkpoint& checkpoint = file->checkpoint();
  if (checkpoint.setting("batch") != fmt::format("{}", batch)) return 0;
  const std::string text = checkpoint.setting("sub_batch");
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::max<std::int64_t>(value, 0);
}

Result<void> save_checkpoint(const Job& job, const AlgorithmChoice& algorithms,
                             std::int64_t next_iteration, const nn::ProgramRunner& runner,
                             const std::string& path) {
  nn::Checkpoint checkpoint;
  checkpoint.settings = job.settings();
  checkpoint.settings.emplace_back(kChoiceSetting, to_text(job.program(), algorithms));
  checkpoint.next_iteration = next_iteration;
  std::vector<TensorId> tensors;
  for (const nn::PersistentTensor& t : runner.persistent_tensors()) {
    checkpoint.tensors.push_back({t.name, t.bytes});
    tensors.push_back(*runner.find(t.name));
  }
  const auto values = [&](std::size_t t, Bytes offset, std::span<std::byte> to) {
    runner.read_part(tensors[t], offset, to);
  };
  return write_file(path,
                    [&](const FileSink& sink) { nn::write_checkpoint(checkpoint, values, sink); });
}

Result<AlgorithmChoice> saved_choice(const Job& job, const nn::Checkpoint& checkpoint,
                                     const std::string& path) {
  const std::string text = checkpoint.setting(kChoiceSetting);
  if (!text.empty()) return read_algorithm_choice(job.program(), text, path);
  return fail(ErrorCode::bad_input,
              fmt::format("{}: has no setting '{}', the algorithms its training ran; going on "
                          "would not be bit for bit the same training",
                          path, kChoiceSetting));
}

}  // namespace tidepool
