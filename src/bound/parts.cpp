#include "bound/parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/at.h"

namespace tidepool {
namespace {

/// Per part: the time of its ops, each shared by bytes among the values that ask for it.
std::vector<double> shared_times(const FluidProblem& problem, const Parts& whole) {
  std::map<std::int32_t, std::size_t> values;  // and one of their parts each
  for (std::size_t a = 0; a < whole.size(); ++a) {
    if (whole.repeats(a)) values.try_emplace(whole.recipes[a].value, a);
  }
  std::vector<double> asking(problem.program.ops.size(), 0);  // bytes of all values, per op
  for (const auto& [value, a] : values) {
    for (const OpId op : whole.recipes[a].ops) asking[at(op)] += whole.bytes[a];
  }
  std::vector<double> times(whole.size(), 0);
  for (std::size_t a = 0; a < whole.size(); ++a) {
    if (!whole.repeats(a)) continue;
    for (const OpId op : whole.recipes[a].ops) {
      const auto algorithm = at(problem.algorithms[at(op)]);
      const auto time =
          static_cast<double>(problem.program.ops[at(op)].algorithms[algorithm].time.count());
      times[a] += time * whole.bytes[a] / asking[at(op)];
    }
  }
  return times;
}

class Merger {
 public:
  Merger(const FluidProblem& problem, const Parts& whole, std::span<const char> asked, double ratio)
      : whole_(whole), times_(shared_times(problem, whole)), ratio_(ratio) {
    merged_.of.assign(whole.size(), kNone);
    before_.reserve(asked.size() + 1);
    before_.push_back(0);
    for (const char one : asked) before_.push_back(before_.back() + (one != 0 ? 1 : 0));
    find_lives(problem);
  }

  Parts merge() {
    std::map<std::vector<std::int32_t>, std::vector<std::int32_t>> classes;  // and their parts
    for (const std::vector<std::size_t>& life : lives_) {
      std::vector<std::int32_t> kind;
      for (const std::size_t a : life) describe(a, kind);
      std::vector<std::int32_t>& parts = classes[std::move(kind)];
      if (parts.empty()) {
        for (const std::size_t a : life) parts.push_back(add(a));
        link(life, parts);
      } else {
        for (std::size_t i = 0; i < life.size(); ++i) join(life[i], at(parts[i]));
      }
    }
    finish();
    return std::move(merged_);
  }

 private:
  /// What is copied out for one absence serves later ones of the value: they stay together.
  void find_lives(const FluidProblem& problem) {
    std::vector<std::size_t> life_of(whole_.size(), whole_.size());
    const auto alone = [&](std::size_t a) {
      return whole_.absences[a].before == kNone || whole_.absences[a].host_has_it;
    };
    for (std::size_t a = 0; a < whole_.size(); ++a) {
      std::vector<std::size_t> chain;
      std::size_t b = a;
      for (; life_of[b] == whole_.size() && !alone(b); b = at(whole_.absences[b].before)) {
        chain.push_back(b);
      }
      if (life_of[b] == whole_.size()) {
        life_of[b] = lives_.size();
        lives_.push_back({b});
      }
      for (std::size_t i = chain.size(); i-- > 0;) {
        life_of[chain[i]] = life_of[b];
        lives_[life_of[b]].push_back(chain[i]);
      }
    }
    for (auto& life : lives_) {
      std::erase_if(life, [&](std::size_t a) {
        return !whole_.absences[a].dead && !sees_an_op(problem.program, whole_.absences[a]);
      });
    }
    std::erase_if(lives_, [](const auto& life) { return life.empty(); });
  }

  [[nodiscard]] std::int32_t step(double value, double ratio) const {
    return value > 0 ? static_cast<std::int32_t>(std::floor(std::log(value) / std::log(ratio)))
                     : std::numeric_limits<std::int32_t>::min();
  }

  /// Absences of one class agree in all of this.
  void describe(std::size_t a, std::vector<std::int32_t>& kind) const {
    const Absence& absence = whole_.absences[a];
    const OpId born = whole_.born(a);
    kind.push_back(absence.dead ? static_cast<std::int32_t>(a) + 1 : 0);  // of a class of its own
    kind.push_back(before_[at(absence.from) + 1]);
    kind.push_back(before_[at(absence.to)]);
    kind.push_back((absence.wraps ? 1 : 0) + (absence.host_has_it ? 2 : 0) +
                   (absence.carried ? 4 : 0) + (whole_.repeats(a) ? 8 : 0) +
                   (absence.upload ? 16 : 0));
    kind.push_back(born == kNone ? -1 : before_[at(born) + 1]);
    constexpr double kSizes = 4;
    constexpr double kPadding = 1.5;
    kind.push_back(step(whole_.bytes[a], kSizes));
    kind.push_back(step(whole_.padding(a) / whole_.bytes[a], kPadding));
    kind.push_back(whole_.repeats(a) ? step(times_[a] / whole_.bytes[a], ratio_) : 0);
  }

  std::int32_t add(std::size_t a) {
    const auto part = static_cast<std::int32_t>(merged_.size());
    merged_.absences.push_back(whole_.absences[a]);
    merged_.absences.back().before = kNone;
    merged_.bytes.push_back(0);
    merged_.aligned.push_back(whole_.aligned[a] / whole_.bytes[a]);
    merged_.copies.push_back(whole_.bytes[a]);
    if (!whole_.recipes.empty()) merged_.recipes.push_back(whole_.recipes[a]);
    merged_.again.push_back(times_[a] / whole_.bytes[a]);
    join(a, at(part));
    return part;
  }

  void link(const std::vector<std::size_t>& life, const std::vector<std::int32_t>& parts) {
    for (std::size_t i = 1; i < life.size(); ++i) {
      merged_.absences[at(parts[i])].before = parts[i - 1];
    }
  }

  /// Until `finish` all but `bytes` are those of the member that counts: its bytes, or per byte.
  void join(std::size_t a, std::size_t part) {
    const double bytes = whole_.bytes[a];
    merged_.bytes[part] += bytes;
    merged_.copies[part] = std::max(merged_.copies[part], bytes);
    merged_.aligned[part] = std::max(merged_.aligned[part], whole_.aligned[a] / bytes);
    merged_.again[part] = std::min(merged_.again[part], times_[a] / bytes);
    merged_.of[a] = static_cast<std::int32_t>(part);
  }

  void finish() {
    for (std::size_t part = 0; part < merged_.size(); ++part) {
      const double bytes = merged_.bytes[part];
      merged_.copies[part] = bytes / merged_.copies[part];
      merged_.aligned[part] *= bytes;
      merged_.again[part] *= bytes;
    }
  }

  const Parts& whole_;
  std::vector<double> times_;
  double ratio_;
  std::vector<std::int32_t> before_;  ///< per op, one more: asked ones in front of it
  std::vector<std::vector<std::size_t>> lives_;
  Parts merged_;
};

}  // namespace

Parts parts_of(const FluidProblem& problem) {
  Parts parts;
  parts.absences = absences_of(problem.program, problem.index);
  if (problem.recompute) {
    parts.recipes = recipes_of(problem.program, problem.index, problem.algorithms, parts.absences);
  }
  for (const Absence& a : parts.absences) {
    const Bytes bytes = problem.program.tensors[at(a.tensor)].bytes;
    parts.bytes.push_back(static_cast<double>(bytes));
    parts.aligned.push_back(static_cast<double>(align_up(bytes, problem.machine.alignment())));
  }
  parts.copies.assign(parts.size(), 1);
  parts.of.resize(parts.size());
  std::iota(parts.of.begin(), parts.of.end(), 0);
  return parts;
}

Parts merged_parts(const FluidProblem& problem, const Parts& whole, std::span<const char> asked,
                   double ratio) {
  return Merger(problem, whole, asked, ratio).merge();
}

}  // namespace tidepool
