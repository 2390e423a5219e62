#include "cost/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "cost/machine_json.h"
#include "support/program_builder.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Machine preset(std::string_view name) {
  const auto machine = find_machine(name);
  EXPECT_TRUE(machine) << name;
  return machine.value_or(Machine{});
}

TEST(LinkTime, IsLatencyPlusBytesOverSpeedRoundedUp) {
  const LinkSpeed link{3e9, Nanos{100}};
  EXPECT_EQ(link.time(0), Nanos{100});
  EXPECT_EQ(link.time(1), Nanos{101});
  EXPECT_EQ(link.time(3), Nanos{101});
  EXPECT_EQ(link.time(4), Nanos{102});
  EXPECT_EQ(link.time(3'000'000'000), Nanos{1'000'000'100});
}

TEST(LinkTime, AWholeNumberOfNanosecondsIsNotRoundedUpFurther) {
  const LinkSpeed link{1e9, Nanos{0}};
  int wrong = 0;
  Bytes first = 0;
  for (Bytes bytes = 0; bytes <= 200'000; ++bytes) {
    if (link.time(bytes) == Nanos{bytes}) continue;
    if (wrong++ == 0) first = bytes;
  }
  EXPECT_EQ(wrong, 0) << "of 200001 sizes at one byte a nanosecond; first at " << first
                      << " B: " << link.time(first).count() << " ns";
}

TEST(LinkTime, MoreBytesNeverTakeLess) {
  const LinkSpeed link{13.2e9, Nanos{47'200}};
  Nanos before{0};
  for (Bytes bytes = 0; bytes < 10'000; ++bytes) {
    ASSERT_GE(link.time(bytes), before);
    before = link.time(bytes);
  }
}

TEST(MachinePresets, AreThoseOfTheSpecificationInItsOrder) {
  std::vector<std::string> names;
  for (const Machine& m : machine_presets()) names.push_back(m.name);
  EXPECT_THAT(names, ElementsAre("gtx1080ti", "rtx2080ti", "k40", "h200"));
}

TEST(MachinePresets, Gtx1080TiHasTheMeasuredTransferCoefficients) {
  const Machine m = preset("gtx1080ti");
  // 0.0756 ns/B + 47.2 us out, 0.0823 ns/B + 9.7 us in.
  EXPECT_NEAR(static_cast<double>(m.to_host().time(100'000'000).count()), 7'560'000 + 47'200, 1);
  EXPECT_NEAR(static_cast<double>(m.to_device().time(100'000'000).count()), 8'230'000 + 9'700, 1);
  EXPECT_DOUBLE_EQ(m.compute.peak_flops, 11.34e12);
  EXPECT_DOUBLE_EQ(m.compute.bandwidth, 360e9);
  EXPECT_EQ(m.device_memory(), 11'000'000'000);
}

TEST(MachinePresets, Rtx2080TiHasTheFiguresOfTheSpecification) {
  const Machine m = preset("rtx2080ti");
  EXPECT_DOUBLE_EQ(m.to_host().bytes_per_second, 13e9);
  EXPECT_DOUBLE_EQ(m.to_device().bytes_per_second, 12.5e9);
  EXPECT_EQ(m.to_host().latency, Nanos{10'000});
  EXPECT_EQ(m.to_device().latency, Nanos{10'000});
  EXPECT_DOUBLE_EQ(m.compute.peak_flops, 13.45e12);
  EXPECT_DOUBLE_EQ(m.compute.bandwidth, 490e9);
  EXPECT_EQ(m.device_memory(), static_cast<Bytes>(10.3 * static_cast<double>(kGiB)));
}

TEST(MachinePresets, K40HasTheFiguresOfTheSpecification) {
  const Machine m = preset("k40");
  EXPECT_DOUBLE_EQ(m.to_host().bytes_per_second, 10.05e9);
  EXPECT_DOUBLE_EQ(m.to_device().bytes_per_second, 10.04e9);
  EXPECT_EQ(m.to_host().latency, Nanos{0});
  EXPECT_DOUBLE_EQ(m.compute.peak_flops, 4.29e12);
  EXPECT_DOUBLE_EQ(m.compute.bandwidth, 200e9);
  EXPECT_EQ(m.device_memory(), 11'200'000'000);
}

TEST(MachinePresets, H200HasTheFiguresOfTheSpecification) {
  const Machine m = preset("h200");
  EXPECT_DOUBLE_EQ(m.to_host().bytes_per_second, 55e9);
  EXPECT_DOUBLE_EQ(m.to_device().bytes_per_second, 55e9);
  EXPECT_EQ(m.to_host().latency, Nanos{10'000});
  EXPECT_DOUBLE_EQ(m.compute.peak_flops, 67e12);
  EXPECT_DOUBLE_EQ(m.compute.bandwidth, 4300e9);
  EXPECT_EQ(m.device_memory(), 139 * kGiB);
}

TEST(MachinePresets, AllLaunchInTenMicrosecondsAndRunBothDirectionsAtOnce) {
  for (const Machine& m : machine_presets()) {
    EXPECT_EQ(m.compute.launch, Nanos{10'000}) << m.name;
    EXPECT_TRUE(m.duplex()) << m.name;
    EXPECT_EQ(m.alignment() & (m.alignment() - 1), 0) << m.name;
  }
}

TEST(FindMachine, AnUnknownNameIsAUsageErrorThatListsTheKnownOnes) {
  const auto machine = find_machine("gtx1080");
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, ErrorCode::usage);
  EXPECT_THAT(machine.error().message, HasSubstr("'gtx1080'"));
  EXPECT_THAT(machine.error().message, HasSubstr("gtx1080ti, rtx2080ti, k40, h200"));
}

TEST(ComputeModel, TakesTheSlowerOfArithmeticAndMemoryPlusTheLaunch) {
  ComputeModel model{1e12, 1e11, Nanos{500}, 0.5, 0};
  EXPECT_EQ(model.time(0, 1000), Nanos{10 + 500});   // memory: 1000 B at 100 B/ns
  EXPECT_EQ(model.time(1e6, 0), Nanos{2000 + 500});  // 1e6 flop at half of 1e12/s
  EXPECT_EQ(model.time(1e6, 1'000'000), Nanos{10'000 + 500});
  EXPECT_EQ(model.time(0, 0), Nanos{500});
}

TEST(ComputeModel, EfficiencyIsHalfOfTheLargestAtHalfFlops) {
  ComputeModel model{1e12, 1e11, Nanos{0}, 0.8, 1e9};
  EXPECT_EQ(model.time(1e9, 0), from_seconds(1e9 / (0.4 * 1e12)));
}

TEST(ApplyCostModel, FillsEveryAlgorithmOfDeviceOpsAndLeavesHostOpsAlone) {
  Program p = testing::tiny_training();
  p.ops[0].algorithms[0].time = Nanos{77};
  p.ops[1].flops = 1e9;
  p.ops[1].traffic = 1000;
  p.ops[1].algorithms.push_back({"second", Nanos{1}, 5, true});
  const Machine m = preset("k40");
  apply_cost_model(m, p);
  EXPECT_EQ(p.ops[0].algorithms[0].time, Nanos{77});
  EXPECT_EQ(p.ops[1].algorithms[0].time, m.compute.time(1e9, 1000));
  EXPECT_EQ(p.ops[1].algorithms[1].time, m.compute.time(1e9, 1000));
  EXPECT_EQ(p.ops[2].algorithms[0].time, m.compute.launch);
}

TEST(ApplyCostModel, AnAlgorithmComputesAsManyTimesAsFastAsItsFactor) {
  ComputeModel model{1e12, 1e11, Nanos{500}, 0.5, 0};
  model.algorithms = {{"winograd", 2}};
  EXPECT_EQ(model.time(1e6, 0), Nanos{2000 + 500});
  EXPECT_EQ(model.time(1e6, 0, "implicit-gemm"), Nanos{2000 + 500});
  EXPECT_EQ(model.time(1e6, 0, "winograd"), Nanos{1000 + 500});
  EXPECT_EQ(model.time(1e6, 150'000, "winograd"), Nanos{1500 + 500}) << "memory is no faster";
}

TEST(MachinePresets, TheAlgorithmOfLeastWorkspaceIsAsFastAsAnOpThatHasNoOther) {
  for (const Machine& m : machine_presets()) {
    EXPECT_EQ(m.compute.time(1e9, 5, "implicit-gemm"), m.compute.time(1e9, 5)) << m.name;
    for (const char* faster : {"implicit-precomp-gemm", "gemm", "winograd", "fft"}) {
      EXPECT_LT(m.compute.time(1e9, 5, faster), m.compute.time(1e9, 5)) << m.name << faster;
    }
    EXPECT_LT(m.compute.time(1e9, 5, "winograd"), m.compute.time(1e9, 5, "fft")) << m.name;
  }
}

TEST(MachineJson, PresetsRoundTrip) {
  for (const Machine& m : machine_presets()) {
    const Json json = to_json(m);
    const auto back =
        read_json(json.dump(), "m.json", [](const JsonCursor& j) { return machine_from_json(j); });
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(to_json(*back), json);
    EXPECT_EQ(back->to_host().time(123'457), m.to_host().time(123'457));
    EXPECT_EQ(back->compute.time(1e9, 5), m.compute.time(1e9, 5));
    EXPECT_EQ(back->compute.time(1e9, 5, "winograd"), m.compute.time(1e9, 5, "winograd"));
  }
}

TEST(MachineJson, MalformedFieldsAreNamed) {
  const std::vector<std::pair<const char*, Json>> cases{
      {"/name", 1},
      {"/description", 1},
      {"/spaces/0/kind", "moon"},
      {"/spaces/0/bytes", -1},
      {"/spaces/0/alignment", 0},
      {"/spaces/1/alignment", 96},
      {"/spaces/0/alignment", 1 << 21},
      {"/spaces", 1},
      {"/links/0/from", -1},
      {"/links/0/bytes_per_second", 0},
      {"/links/0/latency_ns", -1},
      {"/links/1/bytes_per_second", "fast"},
      {"/links/1/latency_ns", 1.5},
      {"/links/1/channel", -1},
      {"/compute/peak_flops", -1},
      {"/compute/bandwidth", "x"},
      {"/compute/launch_ns", -1},
      {"/compute/max_efficiency", -0.5},
      {"/compute/half_flops", nullptr},
      {"/compute/algorithms/0/name", 1},
      {"/compute/algorithms/1/factor", 0},
  };
  for (const auto& [pointer, value] : cases) {
    Json json = to_json(preset("k40"));
    json[Json::json_pointer(pointer)] = value;
    const auto back =
        read_json(json.dump(1), "m.json", [](const JsonCursor& j) { return machine_from_json(j); });
    ASSERT_FALSE(back) << pointer;
    const std::string field = std::string(pointer).substr(std::string(pointer).rfind('/') + 1);
    EXPECT_THAT(back.error().message, HasSubstr(field));
  }
}

TEST(MachineJson, AnotherKindOfFileIsNamed) {
  const auto refusal = [](std::string_view text) {
    const auto read =
        read_json(text, "m.json", [](const JsonCursor& j) { return machine_from_json(j); });
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(refusal(R"({"name": "p", "batch": 1, "tensors": [], "ops": []})"),
              HasSubstr("this is a program, not a machine"));
  EXPECT_THAT(refusal(R"({"type": "tidepool plan", "machine": {}, "strategy": {}})"),
              HasSubstr("this is a plan"));
}

TEST(MachineJson, TheShortFormWithoutTablesIsRead) {
  Machine m = preset("k40");
  m.host_arithmetic = {};
  m.set_duplex(false);
  Json old = to_json(m);
  old.erase("spaces");
  old.erase("links");
  old["device_memory"] = m.device_memory();
  old["alignment"] = m.alignment();
  old["to_host"] = {{"bytes_per_second", m.to_host().bytes_per_second}, {"latency_ns", 0}};
  old["to_device"] = {{"bytes_per_second", m.to_device().bytes_per_second}, {"latency_ns", 0}};
  old["duplex"] = false;
  const auto back =
      read_json(old.dump(), "m.json", [](const JsonCursor& j) { return machine_from_json(j); });
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json(*back), to_json(m));
  for (const char* field : {"device_memory", "alignment", "to_host", "to_device", "duplex"}) {
    Json less = old;
    less.erase(field);
    EXPECT_FALSE(read_json(less.dump(), "m.json", [](const JsonCursor& j) {
      return machine_from_json(j);
    })) << field;
  }
}

/// Regression: such figures made times that no integer holds.
TEST(MachineJson, ComputeModelsWithoutMeaningAreNamed) {
  const auto refusal = [](const char* field, const Json& value) {
    Json json = to_json(preset("k40"));
    json["compute"][field] = value;
    const auto machine =
        read_json(json.dump(), "m.json", [](const JsonCursor& j) { return machine_from_json(j); });
    return machine ? "" : machine.error().message;
  };
  EXPECT_THAT(refusal("peak_flops", 1e-300), HasSubstr("compute.peak_flops"));
  EXPECT_THAT(refusal("peak_flops", 1e300), HasSubstr("compute.peak_flops"));
  EXPECT_THAT(refusal("bandwidth", 0), HasSubstr("compute.bandwidth"));
  EXPECT_THAT(refusal("bandwidth", 1e-9), HasSubstr("compute.bandwidth"));
  EXPECT_THAT(refusal("max_efficiency", 0), HasSubstr("compute.max_efficiency"));
  EXPECT_THAT(refusal("max_efficiency", 1.5), HasSubstr("compute.max_efficiency"));
  EXPECT_THAT(refusal("half_flops", 1e300), HasSubstr("compute.half_flops"));
  EXPECT_EQ(refusal("peak_flops", 0), "");
  Json fast = to_json(preset("k40"));
  fast["links"][0]["bytes_per_second"] = 1e300;
  EXPECT_FALSE(
      read_json(fast.dump(), "m.json", [](const JsonCursor& j) { return machine_from_json(j); }));
}

TEST(ComputeModel, TimesThatCannotBeCountedAreTheLongestThatCan) {
  EXPECT_EQ((ComputeModel{1e12, 0, Nanos{0}, 1, 0}).time(0, 0), kMostIterationTime);  // 0 / 0
  EXPECT_EQ((ComputeModel{1e12, 0, Nanos{5}, 1, 0}).time(1, 1), kMostIterationTime);
  EXPECT_EQ((ComputeModel{1e-300, 1, Nanos{5}, 1, 0}).time(1, 0), kMostIterationTime);
  EXPECT_EQ((ComputeModel{1e12, 1e9, Nanos{5}, 1, 1e24}).time(1e308, 0), kMostIterationTime);
}

TEST(ValidateTimes, WhatAComputeModelMakesOfAProgramIsLookedAtToo) {
  Program p = testing::tiny_training();
  Machine slow = preset("k40");
  EXPECT_TRUE(validate_times(p, slow));
  for (Op& op : p.ops) op.flops = 1e12;
  slow.compute.max_efficiency = 0.84;
  slow.compute.peak_flops = 1e8;  // 10,000 s an op
  apply_cost_model(slow, p);
  EXPECT_TRUE(validate_times(p, slow));
  slow.compute.peak_flops = 1e7;
  apply_cost_model(slow, p);
  const auto times = validate_times(p, slow);
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().code, ErrorCode::bad_input);
  EXPECT_THAT(times.error().message, HasSubstr("on machine 'k40'"));
  EXPECT_THAT(times.error().message, HasSubstr("`compute`"));
}

TEST(Machine, TablesThatMakeNoSenseAreNamed) {
  const Machine good = preset("k40");
  EXPECT_EQ(inconsistency(good), "");
  const auto with = [&](auto change) {
    Machine m = good;
    change(m);
    return inconsistency(m);
  };
  EXPECT_THAT(with([](Machine& m) { std::swap(m.spaces[0], m.spaces[1]); }), HasSubstr("spaces"));
  EXPECT_THAT(with([](Machine& m) { m.spaces[1].kind = SpaceKind::file; }), HasSubstr("one host"));
  EXPECT_THAT(with([](Machine& m) { m.spaces[0].alignment = 96; }), HasSubstr("powers of two"));
  EXPECT_THAT(with([](Machine& m) { m.links[0].to = 0; }), HasSubstr("different spaces"));
  EXPECT_THAT(with([](Machine& m) { m.links[0].to = 2; }), HasSubstr("different spaces"));
  EXPECT_THAT(with([](Machine& m) { m.links[1] = m.links[0]; }), HasSubstr("no other link"));
  EXPECT_THAT(with([](Machine& m) { m.links[0].channel = 1; }), HasSubstr("holes"));
  EXPECT_THAT(with([](Machine& m) { m.links.pop_back(); }), HasSubstr("none back"));
  Machine three = good;
  three.spaces.push_back({SpaceKind::file, 0, 4096});
  three.links.push_back({1, 2, {1e9, Nanos{0}}, 2});
  EXPECT_EQ(inconsistency(three), "");
  EXPECT_EQ(three.channels(), 3);
  EXPECT_EQ(three.find_link(0, 2), nullptr);
  EXPECT_EQ(three.find_link(1, 2)->channel, 2);
}

TEST(Link, TimesThatCannotBeCountedAreTheLongestThatCan) {
  EXPECT_EQ((LinkSpeed{1, Nanos{0}}).time(Bytes{1} << 60), kMostIterationTime);
  EXPECT_EQ((LinkSpeed{1e-300, Nanos{1'000'000'000}}).time(1), kMostIterationTime);
  EXPECT_EQ((LinkSpeed{1e9, Nanos{7}}).time(1000), Nanos{1007});
}

TEST(SeveralDevices, HaveLinksOfTheirOwnOnOneBusADirection) {
  const Machine m = with_devices(preset("k40"), 4);
  EXPECT_EQ(inconsistency(m), "");
  EXPECT_EQ(m.devices(), 4);
  EXPECT_EQ(m.channels(), 8);
  EXPECT_TRUE(m.shares_buses());
  EXPECT_FALSE(preset("k40").shares_buses());
  for (SpaceId d = 0; d < 4; ++d) {
    EXPECT_EQ(m.find_link(d, 4)->bus, 0);
    EXPECT_EQ(m.find_link(4, d)->bus, 1);
    EXPECT_EQ(m.find_link(d, 4)->speed.bytes_per_second, preset("k40").to_host().bytes_per_second);
  }
  EXPECT_THAT(m.buses, ElementsAre(preset("k40").to_host().bytes_per_second,
                                   preset("k40").to_device().bytes_per_second));
}

TEST(SeveralDevices, OneOfThemHasItsPartOfTheBus) {
  const Machine one = one_of_devices(with_devices(preset("k40"), 4));
  EXPECT_EQ(inconsistency(one), "");
  EXPECT_EQ(one.devices(), 1);
  EXPECT_DOUBLE_EQ(one.to_host().bytes_per_second, 10.05e9 / 4);
  EXPECT_DOUBLE_EQ(one.to_device().bytes_per_second, 10.04e9 / 4);
  EXPECT_FALSE(one.shares_buses());
  Machine wide = preset("k40");
  wide.buses = {1e12};
  for (Link& link : wide.links) link.bus = 0;
  EXPECT_DOUBLE_EQ(one_of_devices(with_devices(wide, 4)).to_host().bytes_per_second, 10.05e9);
}

TEST(SeveralDevices, AreInMachineFiles) {
  const Machine m = with_devices(preset("k40"), 2);
  const Json json = to_json(m);
  const auto read =
      read_json(json.dump(), "m.json", [](const JsonCursor& j) { return machine_from_json(j); });
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read), json);
  EXPECT_EQ(read->links[1].bus, 1);
  Json wrong = json;
  wrong["links"][0]["bus"] = 2;
  EXPECT_FALSE(
      read_json(wrong.dump(), "m.json", [](const JsonCursor& j) { return machine_from_json(j); }));
  EXPECT_FALSE(to_json(preset("gtx1080ti")).contains("buses"));
}

TEST(HostArithmetic, LiesBetweenOneCoreAndAll) {
  const HostArithmetic host{10e9, 100e9, 10};
  EXPECT_DOUBLE_EQ(host.bytes_per_second(1), 10e9);
  EXPECT_DOUBLE_EQ(host.bytes_per_second(4), 40e9);
  EXPECT_DOUBLE_EQ(host.bytes_per_second(10), 100e9);
  EXPECT_DOUBLE_EQ(host.bytes_per_second(100), 100e9);
}

}  // namespace
}  // namespace tidepool
