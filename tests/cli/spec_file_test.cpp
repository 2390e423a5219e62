// Options in files mean what they mean on a command line.
#include "spec_file.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <sstream>

#include "context.h"
#include "help.h"
#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::Cli;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

struct SpecCommand {
  const char* name;
  void (*add)(CLI::App& app, cli::Context& context);
};
constexpr SpecCommand kSpecCommands[] = {
    {"train", cli::add_train},    {"plan", cli::add_plan},   {"compare", cli::add_compare},
    {"fit", cli::add_fit},        {"bound", cli::add_bound}, {"profile", cli::add_profile},
    {"analyse", cli::add_analyse}};

/// One command of the program, not parsed yet.
struct OneCommand {
  explicit OneCommand(const SpecCommand& made) {
    cli::begin_help(app);
    made.add(app, context);
    cli::group_options(app);
    command = app.get_subcommand(made.name);
  }
  CLI::App app{"one command"};
  cli::Context context;
  CLI::App* command = nullptr;
};

/// What the options of a command were given, or why they were refused.
struct Outcome {
  std::string error;
  std::vector<std::pair<std::string, Words>> given;
  bool operator==(const Outcome&) const = default;
};

/// One of each command: making it takes longer than what is asked of it.
OneCommand& kept(const SpecCommand& made) {
  static std::map<std::string, OneCommand> all;
  return all.try_emplace(made.name, made).first->second;
}

Outcome outcome_of(const SpecCommand& made, Words words) {
  OneCommand& one = kept(made);
  words.insert(words.begin(), made.name);
  std::ranges::reverse(words);
  try {
    one.app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return {error.what(), {}};
  }
  Outcome outcome;
  for (const CLI::Option* option : one.command->get_options()) {
    if (option->check_name("--spec") || option->count() == 0) continue;
    outcome.given.emplace_back(option->get_name(), option->results());
  }
  return outcome;
}

bool is_in_specs(const CLI::App& command, const CLI::Option& option) {
  return option.nonpositional() && &option != command.get_help_ptr() &&
         &option != command.get_help_all_ptr() && !option.check_name("--spec") &&
         !option.check_name("--write-spec");
}

/// A value that the option takes; empty: it is a flag.
std::string value_for(CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  Words texts{"7", "2s", "40%", "4MiB", "1GB,2GB", "0.5"};
  std::istringstream choices(option.get_type_name());
  for (std::string choice; std::getline(choices, choice, '|');) texts.push_back(choice);
  for (const std::string& text : texts) {
    try {
      option.clear();
      option.add_result(text);
      option.run_callback();
      return text;
    } catch (const CLI::ParseError&) {
      continue;
    }
  }
  ADD_FAILURE() << option.get_name() << " takes none of the values here";
  return {};
}

/// The option, and before it those that it needs.
void add_with_needs(CLI::Option& option, std::vector<CLI::Option*>& all) {
  if (std::ranges::find(all, &option) != all.end()) return;
  all.push_back(&option);
  for (CLI::Option* needed : option.get_needs()) add_with_needs(*needed, all);
}

struct BothForms {
  Words words;
  Json texts = Json::object();
  Json typed = Json::object();  ///< numbers as such
};

BothForms forms_of(CLI::App& command, CLI::Option& option) {
  std::vector<CLI::Option*> options;
  add_with_needs(option, options);
  for (CLI::Option* each : command.get_options()) {
    if (each->get_required() && each->nonpositional()) add_with_needs(*each, options);
  }
  BothForms forms;
  for (CLI::Option* each : options) {
    const std::string name = each->get_name();
    std::string key = name.substr(2);
    std::ranges::replace(key, '-', '_');
    forms.words.push_back(name);
    const std::string value = value_for(*each);
    if (value.empty()) {
      forms.texts[key] = forms.typed[key] = true;
      continue;
    }
    forms.words.push_back(value);
    forms.texts[key] = value;
    const Json number = Json::parse(value, nullptr, false);
    forms.typed[key] = number.is_number() ? number : Json(value);
  }
  return forms;
}

class SpecFiles : public Cli {
 protected:
  Outcome outcome_of_file(const SpecCommand& made, const Json& spec) {
    const Words words{"--spec", write("spec.json", spec.dump())};
    const OneCommand one(made);  // reading a file leaves values with the options
    const auto read = cli::read_spec_file(*one.command, words);
    if (!read) return {read.error().message, {}};
    Words all = read->arguments;
    all.insert(all.end(), words.begin(), words.end());
    return outcome_of(made, all);
  }
};

TEST_F(SpecFiles, EveryOptionMeansWhatItMeansOnTheCommandLine) {
  for (const SpecCommand& made : kSpecCommands) {
    OneCommand one(made);
    int tried = 0;
    for (CLI::Option* option : one.command->get_options()) {
      if (!is_in_specs(*one.command, *option)) continue;
      SCOPED_TRACE(fmt::format("{} {}", made.name, option->get_name()));
      ++tried;
      BothForms forms = forms_of(*one.command, *option);
      // Some go only with a model, some only without one.
      Words with_model = forms.words;
      with_model.emplace_back("tiny-vgg");
      Outcome expected = outcome_of(made, with_model);
      if (expected.error.empty()) {
        forms.texts["model"] = forms.typed["model"] = "tiny-vgg";
      } else {
        expected = outcome_of(made, forms.words);
      }
      EXPECT_EQ(expected.error, "");
      const Outcome of_texts = outcome_of_file(made, forms.texts);
      EXPECT_EQ(of_texts.error, expected.error);
      EXPECT_EQ(of_texts.given, expected.given);
      EXPECT_TRUE(outcome_of_file(made, forms.typed) == expected);
    }
    EXPECT_GT(tried, 20);
  }
}

TEST_F(SpecFiles, FlagsThatAreFalseAreNotGiven) {
  const Outcome outcome =
      outcome_of_file(kSpecCommands[0], {{"model", "tiny-vgg"}, {"verify", false}});
  EXPECT_EQ(outcome, outcome_of(kSpecCommands[0], {"tiny-vgg"}));
}

TEST_F(SpecFiles, SeveralValuesAreAnArray) {
  const Json spec = {
      {"model", "tiny-vgg"}, {"sweep", {"40%", 4096}}, {"planners", {"tide", "auto"}}};
  EXPECT_EQ(
      outcome_of_file(kSpecCommands[2], spec),
      outcome_of(kSpecCommands[2], {"tiny-vgg", "--sweep", "40%,4096", "--planners", "tide,auto"}));
}

TEST_F(SpecFiles, TheCommandLineSaysWhatTheFileSaysToo) {
  const std::string file = write("job.json", R"({
    "model": "vgg16", "batch": 8, "machine": "k40", "budget": "1MiB", "verify": true})");
  const Words line{"tiny-vgg", "--spec=" + file, "--batch", "16", "--budget=2MiB", "-o", "x"};
  OneCommand one(kSpecCommands[1]);
  const auto refused = cli::read_spec_file(*one.command, line);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, file +
                                         ":2: field 'verify': unknown option (see `tidepool "
                                         "plan --help-all`)");
  write("job.json", R"({"model": "vgg16", "batch": 8, "machine": "k40", "budget": "1MiB"})");
  OneCommand other(kSpecCommands[1]);
  const auto spec = cli::read_spec_file(*other.command, line);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->arguments, Words{"--machine=k40"});
}

/// An option's value that looks like the name of another is a value.
TEST_F(SpecFiles, ValuesOfTheCommandLineAreNoOptions) {
  const std::string file = write("job.json", R"({"model": "tiny-vgg", "batch": 8})");
  OneCommand one(kSpecCommands[1]);
  const auto spec = cli::read_spec_file(*one.command, Words{"-o", "--batch", "--spec", file});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->arguments, (Words{"tiny-vgg", "--batch=8"}));
}

TEST_F(SpecFiles, WhatIsWrongIsSaidWithItsPlace) {
  struct Wrong {
    const char* text;
    const char* message;
  };
  const Wrong all[] = {
      {"{\n \"model\": \"tiny-vgg\",\n \"bach\": 8}",
       ":3: field 'bach': unknown option; did you mean 'batch'? (see `tidepool train --help-all`)"},
      {R"({"sub-batch": 8})", ":1: field 'sub-batch': unknown option; did you mean 'sub_batch'?"},
      {R"({"spec": "x.json"})", ":1: field 'spec': unknown option"},
      {"{\"model\": \"tiny-vgg\",\n\"batch\": \"ten\"}",
       ":2: field 'batch': 'ten' is not a whole number from 1 to 1048576"},
      {R"({"batch": 1.5})", ":1: field 'batch': '1.5' is not a whole number from 1 to 1048576"},
      {R"({"batch": true})", ":1: field 'batch': expected a string or a number for N, found true"},
      {R"({"batch": null})", ":1: field 'batch': expected a string or a number for N, found null"},
      {R"({"batch": [1]})", ":1: field 'batch': expected a string or a number for N, found array"},
      {R"({"batch": ""})", ":1: field 'batch': its value is empty"},
      {R"({"verify": "yes"})", ":1: field 'verify': expected true or false, found \"yes\""},
      {R"({"budget": "sixty"})", ":1: field 'budget': 'sixty' is not a size"},
      {R"({"host_budget": 0})", ":1: field 'host_budget': "},
      {R"({"optimizer": "adam"})", ":1: field 'optimizer': 'adam' is not one of sgd, adamw"},
      {R"({"iterations": 0})", ":1: field 'iterations': '0' is not a whole number from 1 to"},
      {R"({"seed": -1})", ":1: field 'seed': '-1' is not a whole number from 0 to"},
      {R"({"model": "--verify"})", ":1: field 'model': '--verify' begins with a dash"},
      {"{\"model\": \"tiny-vgg\",\n \"batch\": 8,\n \"batch\": 9}",
       ":3: key 'batch' is there twice in one object; it is also on line 2"},
      {"{\"model\": \"tiny-vgg\",\n \"batch\": 8,\n}", ":3: not valid JSON: column 1"},
      {R"(["tiny-vgg"])", ":1: field '(whole document)': expected an object, found array"}};
  for (const Wrong& wrong : all) {
    const std::string file = write("job.json", wrong.text);
    expect_error({"train", "--spec", file}, 3, HasSubstr(file + wrong.message));
  }
  expect_error({"train", "--spec", folder_.file("none.json")}, 3, HasSubstr("none.json"));
  expect_error({"train", "tiny-vgg", "--spec", ""}, 2, HasSubstr("--spec"));
  EXPECT_EQ(tidepool({"train", "--spec", folder_.file("none.json"), "--help"}).exit_code, 0);
}

/// That options do not go together is said of both, with the place of the one that nobody typed.
TEST_F(SpecFiles, OptionsThatDoNotGoTogetherAreNamedWithTheirPlace) {
  const std::string file = write("job.json", "{\"model\": \"tiny-vgg\",\n\"iterations\": 3}");
  expect_error({"train", "--spec", file, "--epochs", "1"}, 2,
               AllOf(HasSubstr("--epochs"), HasSubstr("--iterations stands in " + file + ":2"),
                     Not(HasSubstr("--epochs stands"))));
}

TEST_F(SpecFiles, WhatARunWroteRunsAgain) {
  const std::string file = folder_.file("job.json");
  const Json first =
      success({"plan", "tiny-vgg", "--batch", "16", "--machine", "gtx1080ti", "--budget", "60%",
               "--evaluations", "50", "--time-limit", "1ns", "--no-cache", "--write-spec", file});
  const auto text = read_file(file);
  ASSERT_TRUE(text);
  const Json expected = {{"model", "tiny-vgg"}, {"batch", 16},     {"machine", "gtx1080ti"},
                         {"no_cache", true},    {"budget", "60%"}, {"evaluations", 50},
                         {"time_limit", "1ns"}, {"json", true}};
  EXPECT_EQ(nlohmann::json::parse(*text), nlohmann::json::parse(expected.dump()));
  const Finished again = testing::run_process({TIDEPOOL_BINARY, "plan", "--spec", file});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Json::parse(again.out)["predicted_ms"], first["predicted_ms"]);
  const std::string other = write("other.json", R"({"model": "tiny-vgg"})");
  expect_error({"plan", "--spec", other, "--write-spec", other}, 2, HasSubstr("other.json"));
}

TEST_F(SpecFiles, StdinIsAFileToo) {
  const std::string file =
      write("job.json", R"({"model": "tiny-vgg", "machine": "gtx1080ti", "evaluations": 50})");
  const auto run = [](const std::string& in) {
    return testing::run_process(
        {"/bin/sh", "-c", "exec \"$0\" plan --spec - < \"$1\"", TIDEPOOL_BINARY, in});
  };
  const Finished good = run(file);
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("tiny-vgg"));
  const Finished bad = run(write("bad.json", R"({"modl": 1})"));
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_THAT(bad.err, HasSubstr("stdin:1: field 'modl': unknown option; did you mean 'model'?"));
}

}  // namespace
}  // namespace tidepool
