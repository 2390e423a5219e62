#include "spill_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/bytes.h"
#include "planning/planning_spec.h"

namespace tidepool::cli {

Bytes size_above_0(const std::string& option, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) throw CLI::ValidationError(option, bytes.error().message);
  if (*bytes == 0) throw CLI::ValidationError(option, "must be above 0");
  return *bytes;
}

void parse_speeds(const std::string& option, const std::string& text, SpillOptions& file) {
  const auto refuse = [&] {
    throw CLI::ValidationError(
        option,
        fmt::format("'{}' is not WRITE,READ in bytes per second such as 450MB,500MB, perhaps with "
                    ",duplex behind it{}",
                    text, option == "--file-tier" ? "; nor is it measured" : ""));
  };
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) refuse();
  const std::size_t second = text.find(',', comma + 1);
  file.paced_duplex = second != std::string::npos;
  if (file.paced_duplex && text.substr(second + 1) != "duplex") refuse();
  const auto write = parse_bytes(text.substr(0, comma));
  const auto read = parse_bytes(text.substr(comma + 1, second - comma - 1));
  constexpr Bytes kSlowest = 100'000;
  if (!write || !read || *write == 0 || *read == 0) refuse();
  if (std::min(*write, *read) < kSlowest) {
    throw CLI::ValidationError(option,
                               fmt::format("'{}': no disk is slower than 100 kB a second", text));
  }
  file.write_speed = static_cast<double>(*write);
  file.read_speed = static_cast<double>(*read);
}

void add_memory_options(CLI::App& command, MemorySpec& memory, SpillOptions& spill,
                        Spilling spilling) {
  CLI::Option* const budget = command.get_option("--budget");
  CLI::Option* const whole =
      command
          .add_option_function<std::string>(
              "--memory",
              [&memory](const std::string& text) {
                memory.automatic = text == "auto";
                if (!memory.automatic) memory.bytes = size_above_0("--memory", text);
              },
              "RAM of the whole process, such as 2GiB: code, heap and inputs count; auto: what the "
              "control group allows less what others in it take, else what the machine has left. "
              "Needs --spill")
          ->type_name("SIZE|auto")
          ->excludes(budget);
  CLI::Option* const folder =
      command
          .add_option("--spill", spill.folder,
                      "what does not fit goes to a file in this folder, by direct I/O; the file "
                      "has no name and is gone at the end, but its blocks are not wiped")
          ->type_name("DIR");
  if (spilling == Spilling::in_memory) folder->needs(whole);
  whole->needs(folder);
  for (const char* other : {"--link", "--host-budget"}) {
    if (command.get_option_no_throw(other) != nullptr) folder->excludes(command.get_option(other));
  }
  command
      .add_option_function<std::string>(
          "--spill-limit",
          [&spill](const std::string& text) { spill.limit = size_above_0("--spill-limit", text); },
          "largest size of the file, also while profiling (default: the free space less the larger "
          "of 5 % and 1 GiB, rounded down by up to a fifth); weights and optimizer state outside "
          "of iterations take a second file")
      ->type_name("SIZE")
      ->needs(folder);
  command
      .add_option_function<std::string>(
          "--spill-speed",
          [&spill](const std::string& text) { parse_speeds("--spill-speed", text, spill); },
          "do not measure the disk; copies are paced to these speeds, in bytes per second, one at "
          "a time unless duplex is said")
      ->type_name("WRITE,READ[,duplex]")
      ->needs(folder);
  command
      .add_flag("--spill-verify", spill.verify,
                "compare what is read from the file with what was written to it")
      ->needs(folder);
}

}  // namespace tidepool::cli
