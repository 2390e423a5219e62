// What a program does from its arguments to its exit code, whatever its commands are.
//
// All of the command line but `main` is a library, of which tests build the same program on a
// device with faults (tests/cli/faulty_device.cpp).
#pragma once

#include <string>

#include "context.h"

namespace tidepool::cli {

struct ProgramFace {
  const char* name;
  const char* description;
  std::string footer;  ///< of --help, before the exit codes
  const char* version;
  void (*add_commands)(CLI::App& app, Context& context);
};

/// Parses, runs the command that was asked for, and reports whatever goes wrong. The exit code.
int run_program(const ProgramFace& face, int argc, char** argv);

}  // namespace tidepool::cli
