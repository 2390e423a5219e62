// The commands that take traces: info, allocators, plan --trace.
#include <fmt/format.h>

#include <filesystem>

#include "base/bytes.h"
#include "base/file.h"
#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TraceCommands : public testing::Cli {
 protected:
  /// Three iterations of 1 ms an event: a weight of 8 MiB, one activation of 32 MiB that waits
  /// while another of 16 MiB comes and goes. Peak 56 MiB.
  std::string trace_file() {
    std::string text = "index,op,address,bytes,time_ns\n";
    int index = 0;
    const auto event = [&](const char* op, const char* address, Bytes mib) {
      text += fmt::format("{},{},{},{},{}\n", index, op, address, mib * kMiB, index * 1'000'000);
      ++index;
    };
    for (int i = 0; i < 3; ++i) {
      event("malloc", "0xa", 32);
      event("mutable", "0xa", 32);
      for (int k = 0; k < 10; ++k) event(k % 2 == 0 ? "read" : "mutable", "0x1", 8);
      event("malloc", "0xb", 16);
      event("mutable", "0xb", 16);
      event("free", "0xb", 16);
      for (int k = 0; k < 10; ++k) event(k % 2 == 0 ? "read" : "mutable", "0x1", 8);
      event("read", "0xa", 32);
      event("free", "0xa", 32);
    }
    return write("small.csv", text);
  }
};

TEST_F(TraceCommands, InfoSaysWhatATraceHasAndLacks) {
  const std::string file = trace_file();
  const Json info = success({"info", file});
  EXPECT_EQ(info["contains"], "trace");
  EXPECT_EQ(info["events"], 81);
  EXPECT_EQ(info["blocks"], 7);
  EXPECT_EQ(info["events_by_kind"]["write"], 36);
  EXPECT_EQ(info["peak_bytes"], 56 * kMiB);
  EXPECT_EQ(info["has_times"], true);
  EXPECT_EQ(info["has_op_names"], false);
  EXPECT_EQ(info["has_writes"], true);
  EXPECT_EQ(info["iteration"]["period"], 27);
  EXPECT_EQ(info["iteration"]["repeats"], 3);
  EXPECT_EQ(info["iteration"]["peak_bytes"], 56 * kMiB);
  EXPECT_THAT(info["lacks"].get<std::vector<std::string>>(), Contains("resident bytes"));
  const testing::Finished text = tidepool({"info", file});
  EXPECT_THAT(text.out, AllOf(HasSubstr("trace 'small', 81 events of 7 blocks"),
                              HasSubstr("27 events, 3 times in full, after 0 of warm-up"),
                              HasSubstr("lacks      op names")));
}

TEST_F(TraceCommands, InfoConvertsAndKeepsResidentBytes) {
  const std::string json = folder_.file("small.trace.json");
  (void)success({"info", trace_file(), "--resident", "4MiB", "-o", json});
  const Json info = success({"info", json});
  EXPECT_EQ(info["resident_bytes"], 4 * kMiB);
  EXPECT_EQ(info["peak_bytes"], 60 * kMiB);
  const std::string csv = folder_.file("back.csv");
  expect_error({"info", json, "-o", csv}, 2, HasSubstr("--resident 0"));
  (void)success({"info", json, "--resident", "0", "-o", csv});
  EXPECT_EQ(success({"info", csv})["peak_bytes"], 56 * kMiB);
}

/// They were dropped without a word.
TEST_F(TraceCommands, InfoWritesNoCsvWithoutTheResidentBytesItWasGiven) {
  const std::string csv = folder_.file("b.csv");
  expect_error({"info", trace_file(), "--resident", "4MiB", "-o", csv}, 2, HasSubstr("resident"));
  EXPECT_FALSE(std::filesystem::exists(csv));
  (void)success({"info", trace_file(), "-o", csv});
  EXPECT_TRUE(std::filesystem::exists(csv));
}

TEST_F(TraceCommands, InfoDescribesPlansProfilesAndPrograms) {
  const Json plan = success({"info", saved_plan()});
  EXPECT_EQ(plan["contains"], "plan");
  EXPECT_EQ(plan["planner"], "autoswap");
  EXPECT_LE(plan["footprint_bytes"], plan["budget_bytes"]);
  const auto text = read_file(saved_plan());
  ASSERT_TRUE(text);
  const Json file = Json::parse(*text);
  const Json program = success({"info", write("program.json", file["program"].dump())});
  EXPECT_EQ(program["contains"], "program");
  EXPECT_EQ(program["ops"], plan["ops"]);
  const Json profile = {{"schema", 1},
                        {"type", "tidepool profile"},
                        {"fingerprint", "here"},
                        {"machine", file["machine"]},
                        {"program", file["program"]}};
  EXPECT_EQ(success({"info", write("profile.json", profile.dump())})["fingerprint"], "here");
  expect_error({"info", saved_plan(), "--resident", "1MiB"}, 2, HasSubstr("is no trace"));
}

/// No limit was a number that the memory of a machine file did not know, and was refused.
TEST_F(TraceCommands, WithoutABudgetAMachineFilesMemoryIsTheLimit) {
  const auto text = read_file(saved_plan());
  ASSERT_TRUE(text);
  Json file = Json::parse(*text);
  const std::string program = write("program.json", file["program"].dump());
  Json machine = file["machine"];
  machine["name"] = "mine";
  const auto memory = Bytes{1} << 30;
  machine["spaces"][0]["bytes"] = memory;
  const std::string own = write("mine.json", machine.dump());
  const std::string saved = folder_.file("unlimited.json");
  (void)success({"plan", "--program", program, "--machine", own, "-o", saved});
  (void)success({"check", saved});
  expect_error({"plan", "--program", program, "--machine", own, "--budget", "2GiB"}, 2,
               HasSubstr("mine"));
}

/// The program and the machine of a plan, each from a file of its own, give the same plan again.
TEST_F(TraceCommands, AProgramFileIsPlannedForOnAMachineGivenApart) {
  const auto text = read_file(saved_plan());
  ASSERT_TRUE(text);
  const Json file = Json::parse(*text);
  const std::string program = write("program.json", file["program"].dump());
  const std::string machine = write("machine.json", file["machine"].dump());
  const std::string again = folder_.file("again.json");
  const std::string budget = std::to_string(file["device_budget"].get<std::int64_t>());
  (void)success({"plan", "--program", program, "--machine", machine, "--budget", budget,
                 "--planner", "autoswap", "-o", again});
  const auto same = read_file(again);
  ASSERT_TRUE(same);
  EXPECT_EQ(Json::parse(*same)["plan"], file["plan"]);
  expect_error({"plan", "--program", program, "--budget", budget}, 2, HasSubstr("--machine"));
  expect_error({"plan", "vgg16", "--program", program, "--machine", "k40", "--budget", budget}, 2,
               HasSubstr("--program"));
  const std::string bad = write("bad.json", "{\"name\": 1}");
  expect_error({"plan", "--program", bad, "--machine", "k40", "--budget", budget}, 3,
               HasSubstr("bad.json:1: field 'name'"));
  expect_error({"plan", "vgg16", "--machine", machine, "--budget", "60%"}, 2,
               HasSubstr("a machine file goes with --program"));
  // What is misspelt is not ignored.
  Json misspelt = file["program"];
  misspelt["tensors"][0]["pined"] = true;
  expect_error({"plan", "--program", write("pined.json", misspelt.dump()), "--machine", "k40"}, 3,
               AllOf(HasSubstr("field 'tensors[0].pined'"), HasSubstr("did you mean 'pinned'?")));
  misspelt = file["machine"];
  misspelt["compute"]["band_width"] = 1;
  expect_error({"plan", "--program", program, "--machine", write("m.json", misspelt.dump())}, 3,
               HasSubstr("unknown field; did you mean 'bandwidth'?"));
  // Without times the machine's compute model says them.
  Json untimed = file["program"];
  for (Json& op : untimed["ops"]) {
    for (Json& algorithm : op["algorithms"]) algorithm["time_ns"] = 0;
  }
  const std::string bare = write("untimed.json", untimed.dump());
  EXPECT_GT(
      success({"plan", "--program", bare, "--machine", "k40", "--budget", budget})["compute_ms"]
          .get<double>(),
      0);
}

/// What proves saved plans knew one device and its host, with one alignment.
TEST_F(TraceCommands, PlansForOtherSpacesAndAlignmentsAreProved) {
  const Json file = Json::parse(testing::content_of(saved_plan("50%")));
  const std::string program = write("program.json", file["program"].dump());
  Json machine = file["machine"];
  machine["spaces"][1]["alignment"] = 4096;
  machine["spaces"].push_back({{"kind", "file"}, {"bytes", 0}, {"alignment", 8192}});
  for (const int from : {1, 2}) {
    Json link = machine["links"][0];
    link["from"] = from;
    link["to"] = 3 - from;
    link["channel"] = from + 1;
    machine["links"].push_back(link);
  }
  const std::string path = folder_.file("three.plan.json");
  (void)success({"plan", "--program", program, "--machine", write("three.json", machine.dump()),
                 "--budget", "50%", "-o", path});
  EXPECT_EQ(success({"check", path})["proved"], true);
  (void)success({"simulate", path});
  (void)success({"export", path, "-o", folder_.file("three.html")});
  Json coarser = Json::parse(testing::content_of(path));
  coarser["machine"]["spaces"][1]["alignment"] = 1 << 20;
  expect_error({"check", write("coarser.json", coarser.dump())}, 5, HasSubstr("(1)"));
}

TEST_F(TraceCommands, BadFilesAreNamedWithLineAndField) {
  const std::string bad = write("bad.csv", "index,op,address,bytes,time_ns\n0,malloc,0x1,zero,1\n");
  for (const char* command : {"info", "allocators"}) {
    expect_error({command, bad}, 3, HasSubstr("bad.csv:2: field 'bytes'"));
  }
  expect_error({"plan", "--trace", bad}, 3, HasSubstr("bad.csv:2: field 'bytes'"));
  expect_error({"info", write("other.json", "{\"type\": \"other\"}")}, 3,
               HasSubstr("other.json:1: field 'type'"));
  expect_error({"info", folder_.file("absent.csv")}, 3, HasSubstr("cannot open"));
}

TEST_F(TraceCommands, AllocatorsAreComparedWithThePeakLoad) {
  const Json all = success({"allocators", trace_file()});
  EXPECT_EQ(all["peak_load_bytes"], 56 * kMiB);
  std::vector<std::string> names;
  for (const Json& row : all["allocators"]) {
    names.push_back(row["allocator"]);
    EXPECT_GE(row["ratio"], 1.0) << row;
  }
  EXPECT_THAT(
      names, ElementsAre("native", "cnmem", "cnmem-256MiB", "pytorch-caching", "pytorch-expandable",
                         "smartpool-first-fit", "smartpool-best-fit", "smartpool-no-moves"));
  EXPECT_EQ(all["allocators"][6]["reserved_bytes"], 56 * kMiB);
}

TEST_F(TraceCommands, SmartPoolOnTheMeasuredTraceIsThePublishedRatio) {
  const std::string file = TIDEPOOL_SHARED_DATA "/vgg16-trace/vgg16_batch100_3iterations.csv";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
  const Json all = success({"allocators", file, "--resident", "13762836"});
  EXPECT_EQ(all["peak_load_bytes"], 679'197'000);
  int found = 0;
  for (const Json& row : all["allocators"]) {
    if (row["allocator"] != "smartpool-first-fit" && row["allocator"] != "smartpool-best-fit") {
      continue;
    }
    EXPECT_NEAR(row["ratio"].get<double>(), 1.0118, 0.0005) << row;
    ++found;
  }
  EXPECT_EQ(found, 2);
}

TEST_F(TraceCommands, PlanTakesATrace) {
  const std::string file = trace_file();
  const Json all = success({"plan", "--trace", file});
  EXPECT_EQ(all["unlimited_peak_bytes"], 56 * kMiB);
  EXPECT_EQ(all["machine"], "gtx1080ti");
  EXPECT_DOUBLE_EQ(all["compute_ms"], 27.0);

  const std::string saved = folder_.file("trace.plan.json");
  const Json less = success({"plan", "--trace", file, "--budget", "48MiB", "--resident", "4MiB",
                             "--no-cache", "-o", saved});
  EXPECT_EQ(less["resident_bytes"], 4 * kMiB);
  EXPECT_EQ(less["unlimited_peak_bytes"], 60 * kMiB);
  EXPECT_EQ(less["budget_bytes"], 48 * kMiB);
  EXPECT_LE(less["footprint_bytes"], 48 * kMiB);
  EXPECT_GT(less["footprint_bytes"], 4 * kMiB);
  EXPECT_EQ(success({"check", saved})["budget_bytes"], 44 * kMiB);
  EXPECT_DOUBLE_EQ(success({"simulate", saved})["iteration_ms"], less["predicted_ms"]);
}

/// Gradients of two generations. They moved in no time, and nobody said so.
TEST_F(TraceCommands, PlanSaysWhatATraceMovesAndHowLongThatTakes) {
  std::string text = "index,op,address,bytes,time_ns\n";
  int index = 0;
  const auto event = [&](const char* op, int address) {
    text += fmt::format("{},{},{},{},{}\n", index, op, address, 36 * kMiB, index * 1'000'000);
    ++index;
  };
  for (int i = 0; i < 4; ++i) {
    event("malloc", 2 + i % 2);
    event("mutable", 2 + i % 2);
    event("read", 1);
    event("mutable", 3 - i % 2);
    event("free", 3 - i % 2);
    event("read", 2 + i % 2);
    event("mutable", 1);
  }
  const std::string file = write("generations.csv", text);
  const Json info = success({"info", file});
  EXPECT_EQ(info["iteration"]["moved_bytes"], 36 * kMiB);
  EXPECT_DOUBLE_EQ(info["iteration"]["ms"], 7.0);
  // 72 MiB at 360 GB/s, and 10 us to begin.
  const double move_ms = 2e3 * static_cast<double>(36 * kMiB) / 360e9 + 0.01;
  EXPECT_NEAR(success({"plan", "--trace", file})["compute_ms"].get<double>(), 7 + move_ms, 1e-5);
  EXPECT_THAT(tidepool({"plan", "--trace", file}).err,
              AllOf(HasSubstr("36.0 MiB outlive their iteration"), HasSubstr("of its 7.2")));
}

TEST_F(TraceCommands, TheSmallestBudgetCountsResidentBytes) {
  const Json error =
      expect_error({"plan", "--trace", trace_file(), "--budget", "20MiB", "--resident", "4MiB"}, 4,
                   HasSubstr("resident bytes of the trace, 4194304 B (4.0 MiB), come on top"));
  EXPECT_EQ(error["smallest_feasible_bytes"], (32 + 8 + 4) * kMiB);
}

TEST_F(TraceCommands, PlanWantsTimesAndOneSubject) {
  const std::string untimed =
      write("untimed.csv",
            "index,op,address,bytes,time_ns\n0,malloc,1,5,\n1,mutable,1,5,\n2,free,1,5,\n"
            "3,malloc,1,5,\n4,mutable,1,5,\n5,free,1,5,\n");
  EXPECT_EQ(success({"info", untimed})["iteration"]["period"], 3);
  expect_error({"plan", "--trace", untimed}, 3, HasSubstr("untimed.csv: the trace has no times"));
  expect_error({"plan", "vgg16", "--trace", untimed}, 2, HasSubstr("--trace excludes"));
  const std::string once = write("once.csv", "index,op,address,bytes,time_ns\n0,malloc,1,5,1\n");
  expect_error({"plan", "--trace", once}, 3, HasSubstr("no iteration that repeats in full twice"));
}

}  // namespace
}  // namespace tidepool
