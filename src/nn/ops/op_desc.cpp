#include "nn/ops/op_desc.h"

#include <cassert>
#include <string_view>

namespace tidepool::nn {
namespace {

template <class... Op>
consteval bool are_declared(const std::variant<Op...>* /*list*/) {
  static_assert((OpKind<Op> && ...), "every kind declares what op_kind.h asks for");
  const std::string_view names[] = {Op::name...};
  for (std::size_t i = 0; i < sizeof...(Op); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (names[i] == names[k]) return false;
    }
  }
  return true;
}
static_assert(are_declared(static_cast<const AnyOp*>(nullptr)), "two kinds have one name");

template <class Visitor>
auto of_kind(const OpDesc& desc, Visitor visitor) {
  return std::visit(visitor, desc.op);
}

}  // namespace

AnyOp::AnyOp() noexcept = default;
AnyOp::AnyOp(const AnyOp& other) = default;
AnyOp::AnyOp(AnyOp&& other) noexcept = default;
AnyOp& AnyOp::operator=(const AnyOp& other) = default;
AnyOp& AnyOp::operator=(AnyOp&& other) noexcept = default;
AnyOp::~AnyOp() = default;

const char* OpDesc::name() const {
  return of_kind(*this, [](const auto& held) { return held.name; });
}

std::string OpDesc::kind_name() const {
  return of_kind(*this, [](const auto& held) -> std::string {
    if constexpr (requires { held.kind_name(); }) return held.kind_name();
    return held.name;
  });
}

OpRole OpDesc::role() const {
  return of_kind(*this, [](const auto& held) { return held.role; });
}

bool OpDesc::random() const {
  return of_kind(*this, [this](const auto& held) {
    return held.random == Randomness::always || (held.random == Randomness::in_place && in_place);
  });
}

std::vector<OperandRule> OpDesc::rules() const {
  return of_kind(*this, [this](const auto& held) {
    std::vector<OperandRule> there;
    bool has_variant = !in_place, has_forward = !reads_forward;
    for (const OperandRule& rule : held.operands) {
      has_variant = has_variant || rule.when == When::in_place;
      has_forward = has_forward || rule.when == When::reads_forward;
      if (rule.when == (in_place ? When::apart : When::in_place)) continue;
      if (rule.when == When::reads_forward && !reads_forward) continue;
      std::size_t times = 1;
      if constexpr (requires { held.inputs; }) {
        if (rule.when == When::each_input) times = static_cast<std::size_t>(held.inputs);
      }
      there.insert(there.end(), times, rule);
      if (adds(there.size() - 1)) there.back().mode = AccessMode::update;
    }
    assert(has_variant && has_forward && "the kind has no such variant");
    return there;
  });
}

double OpDesc::flops() const {
  return of_kind(*this, [this](const auto& held) { return held.flops(operands); });
}

Bytes OpDesc::traffic() const {
  const std::vector<OperandRule> there = rules();
  assert(there.size() == operands.size());
  Bytes total = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    total += operands[i].bytes() * (there[i].mode == AccessMode::update ? 2 : 1);
  }
  return total;
}

}  // namespace tidepool::nn
