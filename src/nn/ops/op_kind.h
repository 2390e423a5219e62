// What every kind of op declares, once: a struct whose fields are the attributes of one op and
// whose static members are what holds for all of them. A family of kinds is one header of this
// folder; AnyOp in op_desc.h is the list. A kind that declares less does not compile.
//
//   struct ReluForward {
//     static constexpr const char* name = "relu_forward";
//     static constexpr auto operands = std::array{reads("x", When::apart), ...};
//     static constexpr auto role = OpRole::compute;
//     static constexpr auto random = Randomness::never;
//     [[nodiscard]] double flops(Operands o) const;  // floating-point operations, for cost models
//   };
//
// What follows from this is worked out elsewhere: ops that only compute can be recomputed; an op
// moves the bytes of its operands once, of those it updates twice.
#pragma once

#include <array>
#include <concepts>
#include <span>

#include "ir/program.h"
#include "nn/ops/tensor_desc.h"

namespace tidepool::nn {

/// When an operand is there.
enum class When : std::uint8_t {
  always,
  each_input,     ///< as many times as the op's attribute `inputs` says
  apart,          ///< unless the op works in place
  in_place,       ///< when it does
  reads_forward,  ///< when the backward op also takes what its forward op read and wrote, as
                  ///< cuDNN's do. Comes last; its bytes change no result
};

struct OperandRule {
  const char* name;
  AccessMode mode;
  When when;
  bool gradient = false;  ///< of a parameter
};

constexpr OperandRule reads(const char* name, When when = When::always) {
  return {name, AccessMode::read, when};
}
constexpr OperandRule writes(const char* name, When when = When::always) {
  return {name, AccessMode::write, when};
}
constexpr OperandRule updates(const char* name, When when = When::always) {
  return {name, AccessMode::update, when};
}
/// A parameter's gradient, which the op writes, or adds to: see OpDesc::added.
constexpr OperandRule gradient(const char* name) {
  return {name, AccessMode::write, When::always, true};
}

enum class OpRole : std::uint8_t {
  compute,        ///< a function of what it reads: can be recomputed
  state_update,   ///< updates persistent state, once a round
  weight_update,  ///< updates weights and optimizer state, once an iteration
  feed,           ///< on the host: writes data
  collect,        ///< on the host: reads a result
  host_update,    ///< on the host: updates state that all devices share, once a round or iteration
};

constexpr bool on_host(OpRole role) {
  return role == OpRole::feed || role == OpRole::collect || role == OpRole::host_update;
}

/// Whether the result also depends on (seed, iteration).
enum class Randomness : std::uint8_t { never, in_place, always };

using Operands = std::span<const TensorDesc>;

/// Elements of an operand, as flops are counted.
inline double count(const TensorDesc& operand) { return static_cast<double>(operand.elements()); }

template <class Op>
concept OpKind = std::is_aggregate_v<Op> && requires(const Op& op, Operands operands) {
  { Op::name } -> std::convertible_to<const char*>;
  std::span<const OperandRule>(Op::operands);
  { Op::role } -> std::convertible_to<OpRole>;
  { Op::random } -> std::convertible_to<Randomness>;
  { op.flops(operands) } -> std::same_as<double>;
};

}  // namespace tidepool::nn
