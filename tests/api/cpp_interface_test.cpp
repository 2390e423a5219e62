// The C++ interface, through the shared library: what is built in code, and what is thrown.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <stop_token>

#include "tidepool/machine.h"
#include "tidepool/pack.h"
#include "tidepool/plan.h"
#include "tidepool/program.h"

namespace {

using namespace std::chrono_literals;

tp_status thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const tp::Error& error) {
    EXPECT_STRNE(error.what(), "");
    return error.status();
  }
  return TP_OK;
}

tp::ProgramBuilder two_layers() {
  tp::ProgramBuilder b("two layers");
  const auto x = b.tensor("x", 64 << 20, tp::Kind::input);
  const auto w = b.tensor("w", 16 << 20, tp::Kind::weight);
  const auto y = b.tensor("y", 64 << 20);
  const auto dw = b.tensor("dw", 16 << 20, tp::Kind::gradient);
  b.op({.name = "feed", .writes = {x}, .on_host = true});
  b.op({.name = "forward", .reads = {x, w}, .writes = {y}, .time = 40ms});
  b.op({.name = "backward", .reads = {x, y}, .writes = {dw}, .time = 50ms, .workspace = 1 << 20});
  b.op({.name = "update", .reads = {dw}, .updates = {w}, .time = 5ms});
  return b;
}

TEST(CppInterface, AProgramBuiltInCodeIsTheOneThatIsRead) {
  const tp::Program program = two_layers().build();
  const tp::Program read = tp::Program::read(program.json());
  EXPECT_EQ(read.json(), program.json());
  EXPECT_EQ(program.ops(), 4);
  EXPECT_EQ(program.name(tp::Op{2}), "backward");
  EXPECT_EQ(program.bytes(tp::Tensor{1}), 16 << 20);
  const auto machine = tp::Machine::preset("gtx1080ti");
  const tp::Needs needs = program.needs(machine);
  EXPECT_EQ(needs.floor, 145LL << 20);
  EXPECT_EQ(program.name(needs.floor_op), "backward");
  EXPECT_EQ(needs.peak, 161LL << 20);  // and w, which the update reads
}

TEST(CppInterface, AWeightAtHomeIsSoInTheFile) {
  auto b = two_layers();
  b.home_on_device(tp::Tensor{1});
  const std::string json = b.build().json();
  EXPECT_NE(json.find("\"home\""), std::string::npos) << json;
  EXPECT_EQ(tp::Program::read(json).json(), json);
  EXPECT_EQ(two_layers().build().json().find("\"home\""), std::string::npos);
  b.home_on_device(tp::Tensor{0});
  EXPECT_EQ(thrown([&] { static_cast<void>(b.build()); }), TP_BAD_INPUT);
}

TEST(CppInterface, BrokenProgramsAreRefusedByName) {
  EXPECT_EQ(thrown([] {
              auto b = two_layers();
              b.tensor("nobody uses it", 64);
              static_cast<void>(b.build());
            }),
            TP_BAD_INPUT);
  EXPECT_EQ(thrown([] { two_layers().op({.name = "op", .reads = {tp::Tensor{9}}}); }), TP_USAGE);
  EXPECT_EQ(thrown([] { two_layers().pin(tp::Tensor{-1}); }), TP_USAGE);
  EXPECT_EQ(thrown([] { two_layers().home_on_device(tp::Tensor{4}); }), TP_USAGE);
  EXPECT_EQ(thrown([] { two_layers().release_at(tp::Tensor{0}, tp::Op{99}); }), TP_USAGE);
  EXPECT_EQ(thrown([] { tp::Program::read("{"); }), TP_BAD_INPUT);
  EXPECT_EQ(thrown([] { static_cast<void>(two_layers().build().name(tp::Op{4})); }), TP_USAGE);
}

TEST(CppInterface, BuildersRefuseWhatNoFileCouldHold) {
  tp::ProgramBuilder b("a");
  EXPECT_EQ(thrown([&] { b.tensor("t", 4, static_cast<tp::Kind>(99)); }), TP_USAGE);
  const auto t = b.tensor("t", 4);
  EXPECT_EQ(thrown([&] { b.op({.name = "o", .writes = {t}, .flops = std::nan("")}); }), TP_USAGE);
  b.op({.name = "\xff", .writes = {t}});
  EXPECT_EQ(thrown([&] { static_cast<void>(b.build()); }), TP_BAD_INPUT);
  const tp::ProgramBuilder taken = std::move(b);
  EXPECT_EQ(thrown([&] { b.tensor("u", 4); }), TP_USAGE);  // NOLINT(*-use-after-move)
  EXPECT_EQ(thrown([&] { static_cast<void>(b.build()); }), TP_USAGE);
}

TEST(CppInterface, MachinesAreStatedInCode) {
  tp::MachineSpec spec{.name = "mine",
                       .device_bytes = 1LL << 30,
                       .to_host = {.bytes_per_second = 1e9},
                       .to_device = {.bytes_per_second = 1e9}};
  const tp::Machine mine(spec);
  EXPECT_EQ(tp::Machine::read(mine.json()).json(), mine.json());
  spec.file = tp::FileTier{{.bytes_per_second = 1e8}, {.bytes_per_second = 1e8}};
  EXPECT_NE(tp::Machine(spec).json().find("file"), std::string::npos);
  spec.alignment = 100;
  EXPECT_EQ(thrown([&] { tp::Machine{spec}; }), TP_USAGE);
  EXPECT_EQ(thrown([] { tp::Machine{tp::MachineSpec{}}; }), TP_USAGE);
  EXPECT_EQ(thrown([] { tp::Machine::preset("abacus"); }), TP_USAGE);
  EXPECT_FALSE(tp::Machine::presets().empty());
}

/// Ops without times and without flops were planned to take none.
TEST(CppInterface, WithoutTimesAMachineNeedsAComputeModel) {
  tp::ProgramBuilder b("untimed");
  const auto x = b.tensor("x", 1 << 20);
  b.op({.name = "write", .writes = {x}});
  b.op({.name = "read", .reads = {x}});
  const tp::Program program = b.build();
  tp::MachineSpec spec;
  spec.name = "mine";
  spec.to_host = spec.to_device = {.bytes_per_second = 1e9};
  const tp::Machine machine(spec);
  EXPECT_EQ(thrown([&] { static_cast<void>(program.needs(machine)); }), TP_BAD_INPUT);
  EXPECT_EQ(thrown([&] { tp::make_plan(program, machine, {}); }), TP_BAD_INPUT);
  spec.compute.peak_flops = 1e12;
  spec.compute.bandwidth = 1e11;
  EXPECT_EQ(tp::make_plan(program, tp::Machine(spec), {}).info().time.count(), 0);
}

TEST(CppInterface, ErrorsSayWhatIsEnough) {
  const tp::Program program = two_layers().build();
  const auto machine = tp::Machine::preset("gtx1080ti");
  try {
    tp::make_plan(program, machine, {.device = 1 << 20});
    FAIL();
  } catch (const tp::Error& error) {
    EXPECT_EQ(error.status(), TP_INFEASIBLE);
    EXPECT_EQ(error.smallest(), program.needs(machine).floor);
    EXPECT_EQ(program.name(tp::Op{error.op()}), "backward");
    const tp::Plan plan =
        tp::make_plan(program, machine, {.device = error.smallest()}, {.evaluation_limit = 50});
    EXPECT_LE(plan.info().device_bytes, error.smallest());
    EXPECT_GT(plan.info().swapped_out + plan.info().copied_in, 0);
  }
  EXPECT_EQ(thrown([&] { tp::make_plan(program, machine, {}, {.planner = "tied"}); }), TP_USAGE);
}

TEST(CppInterface, ABoundIsFoundByThePartThatIsLoadedForIt) {
  const auto machine = tp::Machine::preset("gtx1080ti");
  const tp::Plan plan = tp::make_plan(two_layers().build(), machine, {.device = 150 << 20},
                                      {.evaluation_limit = 50, .prove_gap = true});
  EXPECT_GE(plan.info().bound, plan.info().unlimited) << plan.info().notes;
  EXPECT_LE(plan.info().bound, plan.info().time);
}

TEST(CppInterface, WhatProgressThrowsIsThrownAgain) {
  struct Mine {};
  tp::PlanOptions options;
  options.prove_gap = true;  // it is told when that begins
  int told = 0;
  options.progress = [&](double, const std::string&) {
    ++told;
    throw Mine{};
  };
  EXPECT_THROW(tp::make_plan(two_layers().build(), tp::Machine::preset("gtx1080ti"),
                             {.device = 150 << 20}, options),
               Mine);
  EXPECT_EQ(told, 1) << "it is not called again";
}

TEST(CppInterface, DecisionsAndPicturesOfAPlan) {
  const tp::Plan plan = tp::make_plan(two_layers().build(), tp::Machine::preset("gtx1080ti"),
                                      {.device = 150 << 20}, {.evaluation_limit = 50});
  bool away = false;
  for (const tp::Decision& d : plan.decisions()) away |= d.choice != tp::Choice::keep;
  EXPECT_TRUE(away);
  for (const std::string& format : tp::formats()) EXPECT_FALSE(plan.picture(format).empty());
  EXPECT_EQ(thrown([&] { static_cast<void>(plan.picture("png")); }), TP_USAGE);
  EXPECT_EQ(thrown([&] { static_cast<void>(plan.table(static_cast<tp_table>(TP_DECISIONS + 1))); }),
            TP_USAGE);
  EXPECT_EQ(thrown([&] { static_cast<void>(plan.simulate(0)); }), TP_USAGE);
  EXPECT_EQ(tp::Plan::read(plan.json()).json(), plan.json());
  EXPECT_EQ(plan.table(TP_STREAMS).row(0).size(), 2U);
}

TEST(CppInterface, PacksBuffers) {
  const std::vector<tp::Buffer> buffers{{64, 0, 2}, {32, 1, 3}, {64, 2, 4}};
  const tp::Packing packing = tp::pack(buffers, {.rounds = 2});
  EXPECT_EQ(packing.footprint, 96);
  EXPECT_TRUE(packing.proven_optimal);
  EXPECT_EQ(packing.offsets.size(), 3U);
  EXPECT_EQ(tp::pack({}).footprint, 0);
  const std::vector<tp::Buffer> none{{0, 0, 2}};
  EXPECT_EQ(thrown([&] { tp::pack(none); }), TP_USAGE);
  const std::vector<tp::Buffer> backwards{{1, 2, 2}};
  EXPECT_EQ(thrown([&] { tp::pack(backwards); }), TP_USAGE);
}

}  // namespace
