#include "bound/recipes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/at.h"
#include "bound/constants.h"

namespace tidepool {
namespace {

using Value = std::pair<TensorId, std::int32_t>;  ///< and its version

class RecipeWriter {
 public:
  RecipeWriter(const Program& program, const AccessIndex& index,
               std::span<const std::int32_t> algorithms, std::span<const Absence> absences)
      : program_(program), index_(index), algorithms_(algorithms), constants_(program, index) {
    for (const Absence& a : absences) {
      if (!a.dead && sees_an_op(program, a)) absent_.insert({a.tensor, version_at(a)});
    }
  }

  Recipe write(const Absence& a) {
    if (a.dead || a.wraps || program_.single_placements) return {};
    const Value v{a.tensor, version_at(a)};
    const auto [known, is_new] = recipes_.try_emplace(v);
    Recipe& recipe = known->second;
    if (is_new) {
      recipe.value = static_cast<std::int32_t>(recipes_.size()) - 1;
      from_ = a.from;  // absences of a value come in the order of time
      least_ = bytes(a.tensor);
      if (const OpId op = repeatable(v); op != kNone) {
        recipe.born = op;
        add(op, recipe);
      }
    }
    return recipe;
  }

 private:
  [[nodiscard]] Bytes bytes(TensorId t) const { return program_.tensors[at(t)].bytes; }

  [[nodiscard]] const TensorAccess& access_at(TensorId t, OpId op) const {
    const auto accesses = index_.accesses(t);
    return *std::find_if(accesses.begin(), accesses.end(),
                         [op](const TensorAccess& a) { return a.op == op; });
  }
  [[nodiscard]] std::int32_t version_at(const Absence& a) const {
    return access_at(a.tensor, a.to).version_read;
  }

  /// The op that made the value in this iteration, where it may run again.
  [[nodiscard]] OpId repeatable(const Value& v) const {
    if (v.second <= 0) return kNone;
    for (const TensorAccess& a : index_.accesses(v.first)) {
      if (a.version_written != v.second) continue;
      const Op& op = program_.ops[at(a.op)];
      const bool repeats = op.algorithms[at(algorithms_[at(a.op)])].deterministic;
      return op.recomputable && repeats && op.place == OpPlace::device ? a.op : OpId{kNone};
    }
    return kNone;
  }

  void add(OpId op, Recipe& recipe) {
    if (std::find(recipe.ops.begin(), recipe.ops.end(), op) != recipe.ops.end()) return;
    recipe.ops.push_back(op);
    recipe.born = std::min(recipe.born, op);
    for (const Access& access : program_.ops[at(op)].accesses) {
      if (access.mode == AccessMode::write) continue;
      const Value w{access.tensor, access_at(access.tensor, op).version_read};
      if (!joins(w)) continue;
      claimed_.insert(w);
      add(repeatable(w), recipe);
    }
  }

  /// See Note [Recipes].
  [[nodiscard]] bool joins(const Value& w) const {
    const Tensor& tensor = program_.tensors[at(w.first)];
    if (tensor.persistent || tensor.pinned || tensor.released_at != kNone) return false;
    if (tensor.bytes < least_ || repeatable(w) == kNone) return false;
    if (absent_.contains(w) || claimed_.contains(w)) return false;
    if (constants_.is_constant(w.first, w.second)) return false;
    return std::all_of(index_.accesses(w.first).begin(), index_.accesses(w.first).end(),
                       [&](const TensorAccess& a) {
                         if (a.version_read != w.second && a.version_written != w.second) {
                           return true;
                         }
                         return a.op <= from_ && program_.ops[at(a.op)].place == OpPlace::device;
                       });
  }

  const Program& program_;
  const AccessIndex& index_;
  std::span<const std::int32_t> algorithms_;
  Constants constants_;
  std::set<Value> absent_;   ///< values that may be away for themselves
  std::set<Value> claimed_;  ///< values of a group
  std::map<Value, Recipe> recipes_;
  OpId from_ = kNone;  ///< of the value that is looked at: where its first absence begins
  Bytes least_ = 0;    ///< and its bytes
};

}  // namespace

std::vector<Recipe> recipes_of(const Program& program, const AccessIndex& index,
                               std::span<const std::int32_t> algorithms,
                               std::span<const Absence> absences) {
  // A value that several groups could have is of most use to the largest.
  std::vector<std::size_t> order(absences.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return program.tensors[at(absences[a].tensor)].bytes >
           program.tensors[at(absences[b].tensor)].bytes;
  });
  RecipeWriter writer(program, index, algorithms, absences);
  std::vector<Recipe> recipes(absences.size());
  for (const std::size_t a : order) recipes[a] = writer.write(absences[a]);
  return recipes;
}

}  // namespace tidepool
