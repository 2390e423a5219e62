// tp::Program: one training iteration as tensors and ops, built in code or read from its JSON.
//
//   tp::ProgramBuilder b("two layers");
//   const auto x = b.tensor("x", 64 << 20, tp::Kind::input);
//   const auto w = b.tensor("w", 16 << 20, tp::Kind::weight);
//   const auto y = b.tensor("y", 64 << 20), z = b.tensor("z", 64 << 20), dw = b.tensor("dw", 16 <<
//   20); b.op({.name = "feed", .writes = {x}, .on_host = true}); b.op({.name = "layer 1", .reads =
//   {x, w}, .writes = {y}, .time = 40ms}); b.op({.name = "layer 2", .reads = {y}, .writes = {z},
//   .time = 30ms}); b.op({.name = "gradient", .reads = {x, z}, .writes = {dw}, .time = 50ms});
//   b.op({.name = "update", .reads = {dw}, .updates = {w}, .time = 5ms});
//   const tp::Program program = b.build();
//
// Errors are thrown as tp::Error. A Program never changes: copies share it, and any number of
// threads may use it. A builder is one thread's.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tidepool/error.h"

namespace tidepool::api {
struct ProgramData;
struct BuilderData;
}  // namespace tidepool::api

namespace tp {

class Machine;

/// A tensor of the builder that made it, by number: the order in which they were made.
struct Tensor {
  std::int32_t index = -1;
};

/// An op, likewise. Ops run in the order in which they were added.
struct Op {
  std::int32_t index = -1;
};

enum class Kind : std::uint8_t { input, weight, optimizer_state, activation, gradient, workspace };

/// One way to run an op.
struct Algorithm {
  std::string name;
  std::chrono::nanoseconds time{};
  std::int64_t workspace = 0;  ///< device bytes that are taken only while the op runs
  bool deterministic = true;   ///< repeats its bits; planners choose no other
};

/// One op. A tensor appears in one of the three lists, once.
struct OpSpec {
  std::string name{};  ///< unique among ops
  std::vector<Tensor> reads{};
  std::vector<Tensor> writes{};   ///< overwrites every byte
  std::vector<Tensor> updates{};  ///< reads the old value and makes a new one
  /// Of its only algorithm. A program without any times has those of the machine's compute model.
  std::chrono::nanoseconds time{};
  std::int64_t workspace = 0;           ///< likewise: device bytes
  std::vector<Algorithm> algorithms{};  ///< instead of the two above
  bool on_host = false;                 ///< runs on the host: feeds data, reads results
  bool recomputable = true;  ///< may run again; what updates or overwrites state never does
  bool random = false;       ///< the result also depends on seed and iteration: dropout
  double flops = 0;          ///< floating-point operations, for compute models
  std::int64_t traffic = 0;  ///< bytes read and written in device memory, for compute models
};

/// What a program needs on a machine.
struct Needs {
  std::int64_t ops = 0, tensors = 0;
  std::int64_t gaps = 0;   ///< idle intervals of tensors in which something can be decided
  std::int64_t peak = 0;   ///< bytes without a budget, addresses not counted
  std::int64_t floor = 0;  ///< the smallest budget that any plan meets, addresses counted
  Op floor_op;             ///< the op that sets it
  std::chrono::nanoseconds unlimited{};  ///< an iteration without a budget; -1: of several devices
};

class TP_API Program {
 public:
  /// The JSON of a program file; `name` stands for the file in messages. TP_BAD_INPUT.
  static Program read(std::string_view json, std::string_view name = "program");
  [[nodiscard]] std::string json() const;

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::int32_t ops() const;
  [[nodiscard]] std::int32_t tensors() const;
  /// TP_USAGE: there is none of that number.
  [[nodiscard]] const std::string& name(Op op) const;
  [[nodiscard]] const std::string& name(Tensor tensor) const;
  [[nodiscard]] std::int64_t bytes(Tensor tensor) const;
  /// TP_BAD_INPUT: no times, and the machine has no compute model.
  [[nodiscard]] Needs needs(const Machine& machine) const;

  using Data = std::shared_ptr<const tidepool::api::ProgramData>;
  explicit Program(Data data) : data_(std::move(data)) {}
  [[nodiscard]] const tidepool::api::ProgramData& data() const { return *data_; }

 private:
  Data data_;
};

class TP_API ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name);
  ~ProgramBuilder();
  ProgramBuilder(ProgramBuilder&&) noexcept;
  ProgramBuilder& operator=(ProgramBuilder&&) noexcept;

  /// Weights and optimizer state are persistent: their value at the end of an iteration is the one
  /// at the start of the next.
  Tensor tensor(std::string name, std::int64_t bytes, Kind kind = Kind::activation);
  /// The same of any kind.
  Tensor persistent(std::string name, std::int64_t bytes, Kind kind = Kind::weight);
  /// It has one address for as long as it lives, and never leaves the device.
  void pin(Tensor tensor);
  /// Persistent: it lies on the device from its last access in an iteration to its first one in the
  /// next, at one address. Whoever looks at it between iterations finds it there.
  void home_on_device(Tensor tensor);
  /// Its bytes stay taken until this op has run: somebody else still holds them.
  void release_at(Tensor tensor, Op op);
  /// Behind all ops so far.
  Op op(const OpSpec& spec);
  /// TP_BAD_INPUT names the op or tensor that breaks a rule: names are unique, every tensor is used
  /// and is written before it is read (unless it is persistent), sizes and times are possible.
  [[nodiscard]] Program build() const;

 private:
  std::unique_ptr<tidepool::api::BuilderData> data_;
};

}  // namespace tp
