// Options in a file: `--spec FILE` says as a JSON object what a command line would say. Its keys
// are the long names of the command's options, with underscores: whatever option a command has, a
// file can give.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli11_fwd.h"

namespace tidepool::cli {

struct SpecFile {
  struct Member {
    std::string option;  ///< "--batch"
    int line = 0;
  };

  std::string name;  ///< as messages have it; empty: there is none
  std::vector<Member> members;
  /// For the command, before those of the command line: without what the command line says itself.
  std::vector<std::string> arguments;
};

/// --spec, --write-spec
void add_spec_file_options(CLI::App& command);

/// Reads what --spec names among `arguments`, which follow the command's name. Each value is tried
/// on its option, so that what is wrong is said with its file and line: the command is used up.
Result<SpecFile> read_spec_file(CLI::App& command, std::span<const std::string> arguments);

/// Which of the options that a message names stand in the file, as its end; may be empty.
std::string where_named(const SpecFile& spec, std::string_view message);

/// Writes what a parsed command was given, where it was told to by --write-spec. Fails with `usage`
/// where that, or --spec, is a file that another option names.
Result<void> write_spec_file(const CLI::App& command);

}  // namespace tidepool::cli
