// The commands that README and USAGE show: each runs, and each that trains has the bits that it has
// without its budget. On small networks and with short searches; what needs a GPU, libtorch or a
// file of the reader's is left out.
#include <filesystem>
#include <map>
#include <sstream>

#include "base/file.h"
#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using Words = std::vector<std::string>;

/// Writes the files that a document shows by `$ cat FILE`.
void write_files_of(const std::string& document) {
  const auto text = read_file(TIDEPOOL_SOURCE_FOLDER "/" + document);
  ASSERT_TRUE(text) << text.error().message;
  std::istringstream lines(*text);
  std::string file;
  std::map<std::string, std::string> files;
  for (std::string line; std::getline(lines, line);) {
    const bool shows = line.starts_with("$ cat ");
    if (shows || line.starts_with("$ ") || line.starts_with("```")) {
      file = shows ? line.substr(6) : std::string();
    } else if (!file.empty()) {
      files[file] += line + "\n";
    }
  }
  for (const auto& [name, content] : files) ASSERT_TRUE(write_file(name, content)) << name;
}

/// Lines of code blocks that begin with the program's name, without their comments.
std::vector<Words> commands_of(const std::string& document) {
  const auto text = read_file(TIDEPOOL_SOURCE_FOLDER "/" + document);
  EXPECT_TRUE(text) << text.error().message;
  std::vector<Words> commands;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("$ ")) line.erase(0, 2);
    if (!line.starts_with("tidepool ")) continue;
    std::istringstream in(line.substr(0, line.find('#')));
    Words words;
    for (std::string word; in >> word;) words.push_back(word);
    words.erase(words.begin());
    commands.push_back(std::move(words));
  }
  return commands;
}

bool has(const Words& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

/// What this machine may not have.
bool needs_more(const Words& words) {
  for (const char* missing : {"cuda", "FOLDER", "dqn", "--network", "vgg16.csv", "vgg16.trace.json",
                              "program.json", "--memory"}) {
    if (has(words, missing)) return true;
  }
  return false;
}

void add_unless(Words& words, const std::string& option, const std::string& value) {
  if (!has(words, option)) words.insert(words.end(), {option, value});
}

void set(Words& words, const std::string& option, const std::string& value) {
  add_unless(words, option, value);
  *(std::ranges::find(words, option) + 1) = value;
}

Words without(Words words, const std::map<std::string, int>& options) {
  for (const auto& [option, values] : options) {
    const auto found = std::ranges::find(words, option);
    if (found != words.end()) words.erase(found, found + 1 + values);
  }
  return words;
}

/// The same command on a small network, in seconds. Epochs are of all samples: those that nothing
/// goes on from are a few iterations.
Words small(Words words) {
  static const std::map<std::string, std::string> kSmall{{"transformer", "tiny-transformer"},
                                                         {"vgg11", "tiny-vgg"},
                                                         {"char-lstm", "tiny-lstm"},
                                                         {"500", "5"},
                                                         {"20%..100%:10%", "50%..100%:50%"}};
  const bool trains = words.front() == "train";
  for (std::string& word : words) {
    const auto other = kSmall.find(word);
    if (other != kSmall.end()) word = other->second;
  }
  if (trains) {
    if (!has(words, "--plan")) add_unless(words, "--data", "synthetic");
    if (has(words, "--checkpoint") || has(words, "--resume")) {
      set(words, "--batch", "2000");
      words.emplace_back("--no-evaluate");
    } else {
      words = without(words, {{"--epochs", 1}});
      add_unless(words, "--iterations", "2");
    }
    add_unless(words, "--link", "2GB");
  }
  const bool searches =
      trains || words.front() == "plan" || words.front() == "compare" || words.front() == "fit";
  if (searches && !has(words, "--plan")) {
    words = without(words, {{"--time-limit", 1}});
    set(words, "--evaluations", "20");
  }
  if (words.front() == "fit") {
    add_unless(words, "--resolution", "50%");
    add_unless(words, "--most-batch", "64");
  }
  return words;
}

class Documents : public testing::Cli {
 protected:
  void SetUp() override {
    testing::Cli::SetUp();
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(folder_.path());
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
    testing::Cli::TearDown();
  }

  void run_all_of(const std::string& document) {
    write_files_of(document);
    int trained = 0;
    int run = 0;
    for (const Words& shown : commands_of(document)) {
      if (needs_more(shown)) continue;
      const Words words = small(shown);
      SCOPED_TRACE(fmt::format("{}", fmt::join(words, " ")));
      ++run;
      if (words.front() != "train") {
        const testing::Finished f = tidepool(words);
        EXPECT_EQ(f.exit_code, 0) << f.err;
        continue;
      }
      const Json inside = success(words);
      EXPECT_TRUE(inside["identical"].is_null() || inside["identical"] == true);
      if (has(words, "--resume") || has(words, "--checkpoint")) continue;
      const Json free = success(without(words, {{"--budget", 1},
                                                {"--host-budget", 1},
                                                {"--file-tier", 1},
                                                {"--planner", 1},
                                                {"--plan", 1},
                                                {"--verify", 0}}));
      if (inside["sub_batch_chosen"] == true) continue;  // that is what was asked for
      EXPECT_EQ(inside["state_crc32"], free["state_crc32"]);
      ++trained;
    }
    EXPECT_GT(run, 3);
    EXPECT_GT(trained, 0);
  }

 private:
  std::filesystem::path before_;
};

TEST_F(Documents, EveryCommandOfReadmeRunsAndTrainsToTheBitsOfNoBudget) { run_all_of("README.md"); }

TEST_F(Documents, EveryCommandOfUsageRunsAndTrainsToTheBitsOfNoBudget) {
  run_all_of("docs/USAGE.md");
}

}  // namespace
}  // namespace tidepool
