#include "planners/toolkit/algorithm_space.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "ir/load_profile.h"

namespace tidepool {
namespace {

double number(Nanos time) { return static_cast<double>(time.count()); }

/// Of one op; a single one where there is no choice, none where nothing fits.
std::vector<AlgorithmSpace::Candidate> candidates_of(const Op& op, Bytes alignment, Bytes room) {
  std::vector<AlgorithmSpace::Candidate> all;
  for (std::size_t i = 0; i < op.algorithms.size(); ++i) {
    const Algorithm& a = op.algorithms[i];
    if (!a.deterministic || !is_measured(a, op)) continue;
    const Bytes workspace = align_up(a.workspace, alignment);
    if (workspace <= room) all.push_back({static_cast<std::int32_t>(i), a.time, workspace});
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.workspace != b.workspace ? a.workspace < b.workspace : a.time < b.time;
  });
  std::vector<AlgorithmSpace::Candidate> best;
  for (const auto& candidate : all) {
    if (best.empty() || candidate.time < best.back().time) best.push_back(candidate);
  }
  return best;
}

std::vector<std::size_t> positions_of(const Op& op, Bytes alignment,
                                      std::span<const AlgorithmSpace::Candidate> candidates) {
  std::vector<std::size_t> positions(op.algorithms.size(), 0);
  for (std::size_t a = 0; a < positions.size(); ++a) {
    const Bytes workspace = align_up(op.algorithms[a].workspace, alignment);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].workspace <= workspace) positions[a] = i;
    }
  }
  return positions;
}

}  // namespace

AlgorithmSpace::AlgorithmSpace(const Program& program, Bytes alignment, Bytes limit,
                               std::vector<std::int32_t> otherwise)
    : otherwise_(std::move(otherwise)), fastest_(otherwise_) {
  const std::vector<Bytes> unmovable = unmovable_load(program, alignment);
  for (OpId id = 0; id < static_cast<OpId>(program.ops.size()); ++id) {
    const Op& op = program.ops[at(id)];
    if (op.place != OpPlace::device || op.algorithms.size() < 2) continue;
    const int chosen = otherwise_[at(id)];
    const Bytes operands = working_set(program, id, alignment, chosen, unmovable[at(id)]) -
                           align_up(op.algorithms[at(chosen)].workspace, alignment);
    Choice choice{id, candidates_of(op, alignment, align_up(limit, alignment) - operands), {}};
    if (choice.candidates.empty()) continue;
    choice.positions = positions_of(op, alignment, choice.candidates);
    fastest_[at(id)] = choice.candidates.back().algorithm;
    // What is the one candidate of an op is chosen where the policy says something else, too.
    if (choice.candidates.size() > 1) {
      choices_.push_back(std::move(choice));
    } else {
      otherwise_[at(id)] = fastest_[at(id)];
    }
  }
  find_groups(program);
}

void AlgorithmSpace::find_groups(const Program& program) {
  using Key = std::pair<std::string, std::vector<std::int64_t>>;
  std::map<Key, std::size_t> known;
  for (std::size_t c = 0; c < choices_.size(); ++c) {
    const Op& op = program.ops[at(choices_[c].op)];
    Key key{op.kind, {}};
    for (const Access& a : op.accesses) key.second.push_back(program.tensors[at(a.tensor)].bytes);
    for (const Candidate& x : choices_[c].candidates) {
      key.second.push_back(x.algorithm);
      key.second.push_back(x.workspace);
    }
    const auto [entry, is_new] = known.emplace(std::move(key), groups_.size());
    if (is_new) groups_.emplace_back();
    groups_[entry->second].push_back(c);
  }
  const auto saving = [this](const std::vector<std::size_t>& group) {
    Nanos sum{0};
    for (const std::size_t c : group) sum += choices_[c].saving();
    return sum;
  };
  std::stable_sort(groups_.begin(), groups_.end(),
                   [&](const auto& a, const auto& b) { return saving(a) > saving(b); });
  group_of_.resize(choices_.size());
  double sum = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    savings_.push_back(sum += number(saving(groups_[g])));
    for (const std::size_t c : groups_[g]) group_of_[c] = g;
  }
}

std::size_t AlgorithmSpace::random_choice(Random& random) const {
  std::size_t group = random.below(groups_.size());
  if (random.below(2) == 0) {
    const double part = random.uniform() * savings_.back();
    group = static_cast<std::size_t>(std::lower_bound(savings_.begin(), savings_.end() - 1, part) -
                                     savings_.begin());
  }
  return groups_[group][random.below(groups_[group].size())];
}

std::vector<std::int32_t> AlgorithmSpace::by_value(std::span<const Bytes> load, Bytes limit,
                                                   double price) const {
  std::vector<std::int32_t> chosen = otherwise_;
  for (const Choice& choice : choices_) {
    double least = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : choice.candidates) {
      const Bytes excess = load[at(choice.op)] + candidate.workspace - limit;
      const double value =
          number(candidate.time) + (excess > 0 ? price * static_cast<double>(excess) : 0);
      if (value >= least) continue;
      least = value;
      chosen[at(choice.op)] = candidate.algorithm;
    }
  }
  return chosen;
}

std::vector<std::int32_t> AlgorithmSpace::fitting(std::span<const Bytes> load, Bytes limit) const {
  std::vector<std::int32_t> chosen = otherwise_;
  for (const Choice& choice : choices_) {
    chosen[at(choice.op)] = choice.candidates.front().algorithm;
    for (const Candidate& candidate : choice.candidates) {
      if (load[at(choice.op)] + candidate.workspace > limit) break;
      chosen[at(choice.op)] = candidate.algorithm;
    }
  }
  return chosen;
}

}  // namespace tidepool
