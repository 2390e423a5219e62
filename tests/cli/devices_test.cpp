// Devices of the build that this machine cannot use: said by `machines`, and by whoever asks for
// one.
#include "support/cli_fixture.h"

namespace tidepool::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CliDevices : public Cli {};

TEST_F(CliDevices, ADeviceThatCannotBeUsedIsListedWithTheReasonAndRefusedWithIt) {
  const Json machines = success({"machines"});
  for (const Json& device : machines["unused_devices"]) {
    const auto name = device["name"].get<std::string>();
    const auto reason = device["reason"].get<std::string>();
    EXPECT_NE(reason, "") << name;
    for (const Json& used : machines["devices"]) EXPECT_NE(used["name"], name);
    expect_error({"train", "tiny-vgg", "--data", "synthetic", "--device", name}, 1,
                 AllOf(HasSubstr(name), HasSubstr(reason)));
  }
}

TEST_F(CliDevices, ChoicesThatAreForGpusAreRefusedElsewhere) {
  const std::vector<std::string> train{"train", "tiny-vgg", "--batch", "16", "--data", "synthetic"};
  for (const char* option : {"--tf32", "--allow-nondeterministic"}) {
    std::vector<std::string> arguments = train;
    arguments.emplace_back(option);
    expect_error(arguments, 2, HasSubstr("mean nothing to device 'cpu'"));
  }
  std::vector<std::string> arguments = train;
  arguments.insert(arguments.end(), {"--graph", "2"});
  expect_error(arguments, 2, HasSubstr("device 'cpu' does not capture graphs"));
}

}  // namespace
}  // namespace tidepool::testing
