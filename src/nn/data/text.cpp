#include "nn/data/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "nn/data/sample_bytes.h"

namespace tidepool::nn {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBytes = 256;

class Text final : public TokenSamples {
 public:
  /// Of the text the bytes [begin, end).
  Text(const TokenTask& task, SampleBytes text, std::int64_t begin, std::int64_t end)
      : TokenSamples(task, kBytes), text_(std::move(text)), begin_(begin), end_(end) {}

  [[nodiscard]] std::string name() const override { return "text"; }
  [[nodiscard]] std::int64_t size() const override { return length() / task().sequence; }

 private:
  [[nodiscard]] std::int64_t length() const { return end_ - begin_; }

  void write_window(std::int64_t sample, std::span<std::int32_t> to) const override {
    const auto starts = static_cast<std::uint64_t>(length() - task().sequence);
    const std::uint64_t start =
        hash_combine(mix64(task().seed) + 1, static_cast<std::uint64_t>(sample)) % starts;
    std::vector<std::uint8_t> bytes(to.size());
    text_.read(begin_ + static_cast<std::int64_t>(start), bytes);
    std::ranges::copy(bytes, to.begin());
  }

  SampleBytes text_;
  std::int64_t begin_;
  std::int64_t end_;
};

/// In the order of their names.
Result<std::vector<fs::path>> files_of(const std::string& folder, bool all) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: cannot open the folder: {}", folder, error.message()));
  }
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : entries) {
    const bool wanted = all ? !entry.is_symlink(error) : entry.path().extension() == ".txt";
    if (wanted && entry.is_regular_file(error)) paths.push_back(entry.path());
  }
  if (paths.empty()) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: has no {}", folder, all ? "files" : "files that end in .txt"));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<SampleBytes> read_text(const std::string& folder, bool all,
                              const std::string& scratch_folder) {
  const auto paths = files_of(folder, all);
  if (!paths) return fail(paths.error());
  auto text = SampleBytes::make(scratch_folder);
  if (!text) return text;
  for (const fs::path& path : *paths) {
    const auto content = read_file(path.string());
    if (!content) return fail(content.error());
    if (const std::size_t at = content->find('\0'); at != std::string::npos) {
      return fail(ErrorCode::bad_input,
                  fmt::format("{}: is no text: byte {} is 0", path.string(), at));
    }
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(content->data());
    if (auto added = text->append({bytes, content->size()}); !added) return fail(added.error());
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<SampleSource>> load_text(Split split, const TokenTask& task,
                                                const std::string& folder,
                                                const std::string& scratch_folder) {
  const std::string& from = folder.empty() ? std::string(kTextFolder) : folder;
  auto text = read_text(from, folder.empty(), scratch_folder);
  if (!text) return fail(text.error());
  const std::int64_t window = task.sequence + 1;
  if (text->size() < 2 * window) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: {} bytes of text are too few for sequences of {}: at least {}",
                            from, text->size(), task.sequence, 2 * window));
  }
  const std::int64_t size = text->size();
  const std::int64_t cut = size - std::max(window, size / 10);
  const bool train = split == Split::train;
  return std::make_unique<Text>(task, std::move(*text), train ? 0 : cut, train ? cut : size);
}

}  // namespace tidepool::nn
