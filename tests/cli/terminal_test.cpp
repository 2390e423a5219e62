// What is written where: progress, messages and results; terminals, pipes, full disks.
#include "terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/cli_fixture.h"
#include "support/terminal.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::run_in_terminal;
using testing::run_process;
using testing::screen_of;
using ::testing::StartsWith;

using Arguments = std::vector<std::string>;

// ---- pace and form

TEST(Pace, QuickWorkHasNoLineAndLongWorkOneNowAndThen) {
  const cli::Pace::Clock::time_point start{};
  const Nanos five = std::chrono::seconds(5);
  cli::Pace pace(start, five);
  int lines = 0;
  for (int ms = 0; ms < 4990; ms += 10) lines += pace.due(start + std::chrono::milliseconds(ms));
  EXPECT_EQ(lines, 0);
  for (int ms = 4990; ms < 61'000; ms += 10) {
    lines += pace.due(start + std::chrono::milliseconds(ms));
  }
  EXPECT_EQ(lines, 12) << "a minute of work";
}

TEST(ProgressLine, FitsItsTerminal) {
  const std::string line = cli::progress_line(0.5, "profiling a model with a long name", 40);
  EXPECT_EQ(screen_of(line)[0].size(), 40U);
  EXPECT_THAT(line, HasSubstr(" 50 %  "));
  EXPECT_THAT(cli::progress_line(0.999, "x", 80), HasSubstr(" 99 %")) << "not over yet";
  EXPECT_THAT(cli::progress_line(7, "x", 80), HasSubstr("100 %"));
}

TEST(Harmless, ControlCharactersAreShownAndTextStays) {
  EXPECT_EQ(cli::harmless("a\tb\n"), "a\tb\n");
  EXPECT_EQ(cli::harmless("\x1b[2J\r\x7f"), "\\x1b[2J\\x0d\\x7f");
  EXPECT_EQ(cli::harmless("\xc2\x9b"
                          "2J"),
            "\\x9b2J");
  EXPECT_EQ(cli::harmless("\xc2\xb5s \xe2\x96\x88 \xc3\xa9"), "\xc2\xb5s \xe2\x96\x88 \xc3\xa9");
}

// ---- the real program

class Terminal : public testing::Cli {
 protected:
  static Arguments training(const Arguments& more, const char* batch = "16") {
    Arguments a{TIDEPOOL_BINARY, "train",         "tiny-vgg", "--batch",   batch, "--data",
                "synthetic",     "--link",        "500MB",    "--threads", "1",   "--budget",
                "60%",           "--evaluations", "200"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
};

TEST_F(Terminal, TheProgressLineIsGoneWhereResultsAre) {
  const std::pair<Arguments, const char*> cases[] = {
      {training({"--iterations", "20"}), "tiny-vgg, batch 16"},
      {training({"--epochs", "2"}, "500"), "epoch 1/2: "},
      {{TIDEPOOL_BINARY, "compare", "tiny-vgg", "--batch", "16", "--machine", "gtx1080ti",
        "--sweep", "50%,60%", "--planners", "autoswap,none"},
       "autoswap"},
  };
  for (const auto& [arguments, result] : cases) {
    Arguments a = arguments;
    const Finished f = run_in_terminal(a);
    EXPECT_EQ(f.exit_code, 0) << f.out;
    EXPECT_THAT(f.out, HasSubstr("█")) << a[1] << ": progress is drawn";
    const auto screen = screen_of(f.out);
    EXPECT_THAT(screen, Contains(HasSubstr(result))) << f.out;
    EXPECT_THAT(screen, Each(Not(HasSubstr("#")))) << "and nothing of it stays";
  }
}

/// For up to a minute there was nothing, or the name of a planner that had not begun.
TEST_F(Terminal, LinearProgramsAreNamedWhileTheyAreSolved) {
  const Arguments tiny{"tiny-vgg", "--batch", "16", "--machine", "gtx1080ti", "--budget", "50%"};
  Arguments bound{TIDEPOOL_BINARY, "bound"};
  bound.insert(bound.end(), tiny.begin(), tiny.end());
  EXPECT_THAT(run_in_terminal(bound).out,
              AllOf(HasSubstr("linear program 1 of 3: "), HasSubstr("linear program 2 of 3: "),
                    HasSubstr("linear program 3 of 3: ")));
  Arguments compare{TIDEPOOL_BINARY, "compare"};
  compare.insert(compare.end(), tiny.begin(), tiny.end());
  compare.insert(compare.end(), {"--planners", "autoswap"});
  const std::string out = run_in_terminal(compare).out;
  const std::size_t bound_of = out.find("  bound of ");
  EXPECT_LT(bound_of, out.find("  autoswap in ")) << out;
  EXPECT_EQ(out.find("  bound of ", bound_of + 1), std::string::npos) << "drawn once: " << out;
  EXPECT_THAT(out, HasSubstr("  autoswap in "));
}

TEST_F(Terminal, ADumbTerminalGetsNoControlCharacters) {
  Arguments a = training({"--iterations", "20"});
  a.insert(a.begin(), {"/usr/bin/env", "TERM=dumb"});
  const Finished f = run_in_terminal(a);
  EXPECT_EQ(f.exit_code, 0) << f.out;
  EXPECT_THAT(f.out, Not(HasSubstr("\x1b")));
}

TEST_F(Terminal, AnErrorErasesTheProgressLineToo) {
  const Finished f = run_in_terminal(training({"--host-budget", "64"}));
  EXPECT_EQ(f.exit_code, 4) << f.out;
  EXPECT_THAT(screen_of(f.out), Contains(StartsWith("tidepool: --host-budget")));
}

TEST_F(Terminal, InAPipeThereAreNoControlCharacters) {
  Arguments a = training({"--iterations", "20"});
  const Finished f = run_process(a);
  EXPECT_EQ(f.exit_code, 0);
  EXPECT_THAT(f.out + f.err, AllOf(Not(HasSubstr("\r")), Not(HasSubstr("\x1b"))));
}

/// Runs with stdout redirected by the shell.
Finished redirected(const Arguments& arguments, const char* redirection) {
  Arguments shell{"/bin/sh", "-c", std::string("exec \"$@\" ") + redirection, "sh",
                  TIDEPOOL_BINARY};
  shell.insert(shell.end(), arguments.begin(), arguments.end());
  return run_process(std::move(shell));
}

TEST_F(Terminal, AResultThatCannotBeWrittenIsAnError) {
  const std::string plan = saved_plan();
  const Arguments commands[] = {{"models"},
                                {"models", "--json"},
                                {"--help"},
                                {"check", plan},
                                {"export", plan, "--to", "svg"},
                                {"plan", "tiny-vgg", "--machine", "k40", "--json"},
                                {"bound", "--plan", plan},
                                {"nonsense", "--json"}};
  for (const Arguments& command : commands) {
    const Finished full = redirected(command, "> /dev/full");
    EXPECT_EQ(full.exit_code, 1) << command[0] << full.err;
    EXPECT_THAT(full.err, HasSubstr("tidepool: cannot write to stdout: No space left"));
    const Finished closed = redirected(command, ">&-");
    EXPECT_EQ(closed.exit_code, 1) << command[0] << closed.err;
    EXPECT_THAT(closed.err, HasSubstr("tidepool: stdout is closed"));
  }
}

TEST_F(Terminal, APipeThatNobodyReadsEndsItSilently) {
  const std::string code = folder_.file("code");
  // Its only reader is gone before it begins.
  const Finished f = run_process({"/bin/sh", "-c",
                                  "mkfifo \"$2\"; exec 3<> \"$2\" 4> \"$2\" 3>&-; "
                                  "\"$0\" models >&4 4>&-; echo $? > \"$1\"",
                                  TIDEPOOL_BINARY, code, folder_.file("pipe")});
  EXPECT_EQ(testing::content_of(code), "141\n") << f.err;
  EXPECT_THAT(f.err, IsEmpty());
}

// ---- files

TEST_F(Terminal, OutputsAreFoundWritableBeforeTheWorkBegins) {
  // Each of these would take minutes.
  const Arguments training{"--batch", "500", "--data", "synthetic", "--link", "1GB"};
  const auto with = [&](Arguments a) {
    a.insert(a.end(), training.begin(), training.end());
    return a;
  };
  const std::string nowhere = folder_.file("missing/file");
  const Arguments commands[] = {
      with({"profile", "vgg16", "--iterations", "1000", "-o", nowhere}),
      with({"train", "vgg16", "--epochs", "100", "--checkpoint", nowhere}),
      {"plan", "resnet101-cifar", "--machine", "gtx1080ti", "--budget", "40%", "--planner", "tide",
       "--time-limit", "10min", "-o", nowhere}};
  for (const Arguments& command : commands) {
    expect_error(command, 1, HasSubstr(nowhere + ": cannot create: No such file"));
  }
  expect_error({"plan", "tiny-vgg", "--machine", "k40", "-o", folder_.path().string()}, 1,
               HasSubstr("Is a directory"));
}

TEST_F(Terminal, AnOutputThatFailsLeavesTheOldFile) {
  const std::string path = write("plan.json", "the old one");
  expect_error({"plan", "tiny-vgg", "--machine", "k40", "--budget", "1", "-o", path}, 4,
               HasSubstr("smallest"));
  EXPECT_EQ(testing::content_of(path), "the old one");
}

/// `export plan.json -o plan.json` wrote the page over the plan.
TEST_F(Terminal, AnOutputThatIsAnInputIsRefusedByWhateverName) {
  const std::string plan = saved_plan();
  const std::string content = testing::content_of(plan);
  const std::string link = folder_.file("link.json");
  const std::string twin = folder_.file("twin.json");
  std::filesystem::create_symlink(plan, link);
  std::filesystem::create_hard_link(plan, twin);
  for (const std::string& output : {plan, link, twin, folder_.file("./plan.json")}) {
    expect_error({"export", plan, "-o", output}, 2, HasSubstr(output + ": is what is read"));
  }
  const std::string csv = write("b.csv", "id,lower,upper,size\n1,0,2,8\n");
  expect_error({"pack", csv, "-o", csv}, 2, HasSubstr("is what is read"));
  expect_error({"info", csv, "-o", csv}, 2, HasSubstr("is what is read"));
  expect_error({"plan", "--profile", plan, "-o", link}, 2, HasSubstr("is what is read"));
  expect_error({"plan", "--program", csv, "--machine", plan, "-o", plan}, 2,
               HasSubstr("is what is read"));
  expect_error({"train", "tiny-vgg", "--data", "synthetic", "--plan", plan, "--epochs", "1",
                "--checkpoint", plan},
               2, HasSubstr("is what is read"));
  EXPECT_EQ(testing::content_of(plan), content);
}

TEST_F(Terminal, ACheckpointReplacesNothingElse) {
  const std::string path = write("thesis.txt", "years of work");
  expect_error({"train", "tiny-vgg", "--data", "synthetic", "--link", "1GB", "--epochs", "1",
                "--checkpoint", path},
               2, HasSubstr("--checkpoint " + path + ": exists and is no checkpoint"));
  EXPECT_EQ(testing::content_of(path), "years of work");
}

/// Regression: the command given once more without --resume replaced 1500 iterations by 4.
TEST_F(Terminal, ACheckpointIsReplacedOnlyWhereThatIsAskedFor) {
  const std::string path = folder_.file("c.ckpt");
  const auto of = [&](const char* model, Arguments more) {
    Arguments a{"train", model,     "--data", "synthetic", "--link", "1GB",          "--threads",
                "1",     "--batch", "500",    "--epochs",  "1",      "--no-evaluate"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  };
  success(of("tiny-vgg", {"--checkpoint", path}));
  const std::string saved = testing::content_of(path);
  for (const char* model : {"tiny-vgg", "mlp"}) {
    expect_error(of(model, {"--checkpoint", path}), 2,
                 AllOf(HasSubstr("--checkpoint " + path + ": is a checkpoint already"),
                       HasSubstr("--resume " + path), HasSubstr("--overwrite")));
  }
  expect_error(of("tiny-vgg", {"--overwrite"}), 2, HasSubstr("--checkpoint"));
  EXPECT_EQ(testing::content_of(path), saved);
  success(of("mlp", {"--checkpoint", path, "--overwrite"}));
  EXPECT_NE(testing::content_of(path), saved);
  EXPECT_FALSE(std::filesystem::exists(path + ".lock"));
}

/// Regression: --write-spec replaced the checkpoint that was resumed, and -o any.
TEST_F(Terminal, NoOtherOutputReplacesACheckpointOrWhatIsRead) {
  const std::string path = folder_.file("c.ckpt");
  const std::string link = folder_.file("link.ckpt");
  const Arguments training{"train",    "tiny-vgg", "--data",       "synthetic", "--link",
                           "1GB",      "--batch",  "500",          "--threads", "1",
                           "--epochs", "2",        "--no-evaluate"};
  const auto with_more = [&](Arguments more) {
    Arguments a = training;
    a.insert(a.end(), more.begin(), more.end());
    return a;
  };
  success(with_more({"--checkpoint", path}));
  std::filesystem::create_symlink(path, link);
  const std::string saved = testing::content_of(path);
  for (const std::string& spec : {path, link}) {
    expect_error(with_more({"--resume", path, "--write-spec", spec}), 2,
                 HasSubstr("is what is read"));
    expect_error({"plan", "tiny-vgg", "--machine", "k40", "--write-spec", spec}, 2,
                 HasSubstr("is a checkpoint; it is not replaced"));
    expect_error({"plan", "tiny-vgg", "--machine", "k40", "-o", spec}, 2,
                 HasSubstr("is a checkpoint; it is not replaced"));
  }
  const std::string spec = write("s.json", R"({"machine": "k40"})");
  expect_error({"plan", "tiny-vgg", "--spec", spec, "-o", spec}, 2, HasSubstr("is what is read"));
  const std::string both = folder_.file("both.json");
  expect_error({"plan", "tiny-vgg", "--machine", "k40", "-o", both, "--write-spec", both}, 2,
               HasSubstr("cannot be one file"));
  EXPECT_EQ(testing::content_of(path), saved);
  // A training goes on behind a link, which stays one.
  Arguments more = with_more({"--resume", link});
  more[11] = "3";
  success(more);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_NE(testing::content_of(path), saved);
}

TEST_F(Terminal, ACacheThatCannotBeWrittenIsSaidBeforeTheWork) {
  write("cache", "a file where the folder would be");
  const Finished f = tidepool({"plan", "tiny-vgg", "--machine", "k40"});
  EXPECT_EQ(f.exit_code, 0) << "a command without its cache is only slower";
  EXPECT_THAT(f.err, HasSubstr("nothing will be kept in the cache"));
}

TEST_F(Terminal, AnEpochIsReportedEvenWhereItCannotBeSaved) {
  Arguments a = training({"--epochs", "2", "--checkpoint", "/dev/full"}, "500");
  const Finished f = run_process(a);
  EXPECT_EQ(f.exit_code, 1);
  EXPECT_THAT(f.out, StartsWith("epoch 1/2: loss "));
  EXPECT_THAT(f.err, HasSubstr("/dev/full: cannot write: No space left"));
}

TEST_F(Terminal, AResumedTrainingGoesOnSavingToItsCheckpoint) {
  const auto fit = [](const char* epochs, Arguments more) {
    Arguments a{"train", "tiny-vgg",  "--batch", "500",      "--data", "synthetic",    "--link",
                "1GB",   "--threads", "1",       "--epochs", epochs,   "--no-evaluate"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  };
  const std::string checkpoint = folder_.file("c.ckpt");
  const std::string other = folder_.file("d.ckpt");
  success(fit("1", {"--checkpoint", checkpoint}));
  const std::string first = testing::content_of(checkpoint);
  success(fit("2", {"--resume", checkpoint, "--checkpoint", other}));
  EXPECT_EQ(testing::content_of(checkpoint), first) << "another file was named";
  success(fit("2", {"--resume", checkpoint}));
  EXPECT_EQ(testing::content_of(checkpoint), testing::content_of(other));
  EXPECT_EQ(success(fit("3", {"--resume", checkpoint}))["next_iteration"], 60);
}

}  // namespace
}  // namespace tidepool
