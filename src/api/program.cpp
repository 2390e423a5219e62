#include "tidepool/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "api/data.h"
#include "api/thrown.h"
#include "base/at.h"
#include "base/json.h"
#include "ir/program_json.h"
#include "tidepool/machine.h"

namespace tidepool::api {

struct BuilderData {
  Program program;
};

namespace {

const std::string& nth_name(const auto& table, std::int32_t index, const char* what) {
  if (index < 0 || index >= std::ssize(table)) {
    throw_usage(fmt::format("there is no {} {}: the program has {}", what, index, table.size()));
  }
  return table[at(index)].name;
}

void add_accesses(const std::vector<tp::Tensor>& tensors, AccessMode mode, const Program& program,
                  Op& op) {
  for (const tp::Tensor tensor : tensors) {
    if (tensor.index < 0 || tensor.index >= std::ssize(program.tensors)) {
      throw_usage(fmt::format("op '{}': there is no tensor {}", op.name, tensor.index));
    }
    op.accesses.push_back({TensorId{tensor.index}, mode});
  }
}

/// The program of a builder that was not moved from.
Program& program_of(const std::unique_ptr<BuilderData>& data) {
  if (data == nullptr) throw_usage("this ProgramBuilder was moved from");
  return data->program;
}

Op op_of(const tp::OpSpec& spec, const Program& program) {
  Op op;
  op.name = spec.name;
  op.kind = spec.on_host ? "host" : "op";
  op.place = spec.on_host ? OpPlace::host : OpPlace::device;
  add_accesses(spec.reads, AccessMode::read, program, op);
  add_accesses(spec.writes, AccessMode::write, program, op);
  add_accesses(spec.updates, AccessMode::update, program, op);
  op.algorithms.push_back({"default", spec.time, spec.workspace, true});
  if (!(spec.flops >= 0) || !(spec.traffic >= 0)) {
    throw_usage(fmt::format("op '{}': flops and traffic must be numbers not below 0", op.name));
  }
  if (!spec.algorithms.empty()) op.algorithms.clear();
  for (const tp::Algorithm& a : spec.algorithms) {
    op.algorithms.push_back({a.name, a.time, a.workspace, a.deterministic});
  }
  const bool changes_state = std::ranges::any_of(op.accesses, [&](const Access& access) {
    return access.mode != AccessMode::read && program.tensors[at(access.tensor)].persistent;
  });
  op.recomputable = spec.recomputable && !spec.on_host && !changes_state;
  // What feeds data gives other values in each iteration.
  op.random = spec.random || spec.on_host;
  op.flops = spec.flops;
  op.traffic = spec.traffic;
  return op;
}

}  // namespace
}  // namespace tidepool::api

namespace tp {

namespace api = tidepool::api;

Program Program::read(std::string_view json, std::string_view name) {
  return api::bordered([&] {
    return Program(std::make_shared<const api::ProgramData>(
        api::ProgramData{api::value_of(api::read_program(json, name))}));
  });
}

std::string Program::json() const {
  return api::bordered([&] { return tidepool::to_json(data_->program).dump(1) + "\n"; });
}

const std::string& Program::name() const { return data_->program.name; }
std::int32_t Program::ops() const { return static_cast<std::int32_t>(data_->program.ops.size()); }
std::int32_t Program::tensors() const {
  return static_cast<std::int32_t>(data_->program.tensors.size());
}

const std::string& Program::name(Op op) const {
  return api::nth_name(data_->program.ops, op.index, "op");
}

const std::string& Program::name(Tensor tensor) const {
  return api::nth_name(data_->program.tensors, tensor.index, "tensor");
}

std::int64_t Program::bytes(Tensor tensor) const {
  static_cast<void>(name(tensor));
  return data_->program.tensors[tidepool::at(tensor.index)].bytes;
}

Needs Program::needs(const Machine& machine) const {
  return api::bordered([&] {
    const auto info = api::value_of(api::info_of(data_->program, machine.data().machine));
    return Needs{info.ops,
                 info.tensors,
                 info.gaps,
                 info.peak,
                 info.floor,
                 {info.floor_op},
                 std::chrono::nanoseconds{info.compute}};
  });
}

ProgramBuilder::ProgramBuilder(std::string name) : data_(std::make_unique<api::BuilderData>()) {
  data_->program.name = std::move(name);
}

ProgramBuilder::~ProgramBuilder() = default;
ProgramBuilder::ProgramBuilder(ProgramBuilder&&) noexcept = default;
ProgramBuilder& ProgramBuilder::operator=(ProgramBuilder&&) noexcept = default;

Tensor ProgramBuilder::tensor(std::string name, std::int64_t bytes, Kind kind) {
  if (kind < Kind::input || kind > Kind::workspace) {
    api::throw_usage(fmt::format("tensor '{}': there is no such kind", name));
  }
  tidepool::Program& program = api::program_of(data_);
  tidepool::Tensor made;
  made.name = std::move(name);
  made.bytes = bytes;
  made.kind = static_cast<tidepool::TensorKind>(kind);
  made.persistent = kind == Kind::weight || kind == Kind::optimizer_state;
  program.tensors.push_back(std::move(made));
  return {static_cast<std::int32_t>(program.tensors.size()) - 1};
}

Tensor ProgramBuilder::persistent(std::string name, std::int64_t bytes, Kind kind) {
  const Tensor made = tensor(std::move(name), bytes, kind);
  data_->program.tensors.back().persistent = true;
  return made;
}

namespace {

tidepool::Tensor& tensor_of(tidepool::Program& program, Tensor tensor) {
  static_cast<void>(api::nth_name(program.tensors, tensor.index, "tensor"));
  return program.tensors[tidepool::at(tensor.index)];
}

}  // namespace

void ProgramBuilder::pin(Tensor tensor) { tensor_of(api::program_of(data_), tensor).pinned = true; }

void ProgramBuilder::home_on_device(Tensor tensor) {
  tensor_of(api::program_of(data_), tensor).home = tidepool::Home::device;
}

void ProgramBuilder::release_at(Tensor tensor, Op op) {
  static_cast<void>(api::nth_name(api::program_of(data_).ops, op.index, "op"));
  tensor_of(api::program_of(data_), tensor).released_at = tidepool::OpId{op.index};
}

Op ProgramBuilder::op(const OpSpec& spec) {
  return api::bordered([&] {
    tidepool::Program& program = api::program_of(data_);
    program.ops.push_back(api::op_of(spec, program));
    return Op{static_cast<std::int32_t>(program.ops.size()) - 1};
  });
}

Program ProgramBuilder::build() const {
  return api::bordered([&] {
    const tidepool::Program& program = api::program_of(data_);
    api::value_of(tidepool::validate(program));
    api::check_text(program.name);
    for (const tidepool::Tensor& tensor : program.tensors) api::check_text(tensor.name);
    for (const tidepool::Op& op : program.ops) {
      api::check_text(op.name);
      for (const tidepool::Algorithm& algorithm : op.algorithms) api::check_text(algorithm.name);
    }
    return Program(std::make_shared<const api::ProgramData>(api::ProgramData{program}));
  });
}

}  // namespace tp
