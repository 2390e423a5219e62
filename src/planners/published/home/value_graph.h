// Value graph: the values of a program's tensors (their versions), what makes each, and how long it
// is on the device when nothing is away. What can be made again follows from it.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "base/id.h"
#include "ir/access_index.h"

namespace tidepool {

using ValueId = Id<struct ValueTag>;

/// One version of one tensor.
struct Value {
  TensorId tensor = kNone;
  Bytes bytes = 0;         ///< aligned
  OpId producer = kNone;   ///< kNone: the tensor's value when the iteration starts
  OpId on_device = kNone;  ///< from this op on (-1: from the start), as long as nothing is away ...
  OpId until = kNone;      ///< ... until this one; one past the last op: to the end
  bool ever = false;       ///< is on the device at all
  bool host_has_it = false;  ///< whatever is decided, from when it is made on
};

/// A value that an op reads or makes.
struct ValueUse {
  ValueId value = kNone;
  bool update = false;  ///< the op changes the tensor in place: read, the old value is lost
};

class ValueGraph {
 public:
  /// One algorithm per op. The program must outlive this.
  ValueGraph(const Program& program, const AccessIndex& index, Bytes alignment,
             std::span<const std::int32_t> algorithms);

  [[nodiscard]] const std::vector<Value>& values() const { return values_; }
  [[nodiscard]] const Value& value(ValueId v) const { return values_[static_cast<std::size_t>(v)]; }
  [[nodiscard]] ValueId find(TensorId tensor, std::int32_t version) const {
    return ValueId{first_[static_cast<std::size_t>(tensor)] + version};
  }
  [[nodiscard]] std::span<const ValueUse> reads(OpId op) const {
    return slice(reads_, read_start_, op);
  }
  [[nodiscard]] std::span<const ValueUse> writes(OpId op) const {
    return slice(writes_, write_start_, op);
  }
  /// Nothing forbids that the op runs twice in an iteration, wherever its operands come from.
  [[nodiscard]] bool may_run_again(OpId op) const { return again_[static_cast<std::size_t>(op)]; }
  /// A value that was made before this device op can be made again right before it, whatever of
  /// the values still in use has left the device, be it to the host or to be made again as well.
  [[nodiscard]] bool can_be_made_again(ValueId value, OpId before) const;

 private:
  static std::span<const ValueUse> slice(const std::vector<ValueUse>& all,
                                         const std::vector<std::int32_t>& start, OpId op) {
    const auto i = static_cast<std::size_t>(op);
    return std::span(all).subspan(static_cast<std::size_t>(start[i]),
                                  static_cast<std::size_t>(start[i + 1] - start[i]));
  }
  void add_values(const Program& program, const AccessIndex& index, Bytes alignment);
  void add_uses(const Program& program, const AccessIndex& index);
  void find_what_runs_again(const Program& program, std::span<const std::int32_t> algorithms);
  using Known = std::map<std::int32_t, bool>;  ///< answers by value
  [[nodiscard]] bool search(ValueId value, OpId before, int depth, Known& known) const;
  [[nodiscard]] bool make(ValueId value, OpId before, int depth, Known& known) const;

  std::vector<Value> values_;
  std::vector<std::int32_t> first_;  ///< per tensor: its value 0
  std::vector<ValueUse> reads_;
  std::vector<ValueUse> writes_;
  std::vector<std::int32_t> read_start_;
  std::vector<std::int32_t> write_start_;
  std::vector<char> again_;
};

}  // namespace tidepool
