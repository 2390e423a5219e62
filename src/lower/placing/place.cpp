#include "lower/placing/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "pack/cycle_sweep.h"
#include "pack/holds.h"
#include "pack/search.h"
#include "pack/validate.h"

namespace tidepool {
namespace {

/// Orders by size take time that grows with the pairs in conflict. With more instances than this a
/// sweep does it, and orders only what it cannot fit by the last rule: small budgets, under which
/// few instances are there at the same time.
constexpr std::size_t kMostForOrders = 4'000;
constexpr std::int64_t kMostPairsForOrders = 1 << 24;

}  // namespace

void Placer::find_members(const Timeline& timeline, SpaceId space) {
  members_.clear();
  const auto& all = timeline.instances.all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].space == space) members_.push_back(static_cast<InstanceId>(i));
  }
}

void Placer::make_problem(const Subject& subject, Bytes alignment, const SharingRule& rule) {
  Timeline& timeline = subject.timeline;
  if (rule.prepare != nullptr) {
    rule.prepare(timeline, subject.program, subject.strategy, subject.expansion);
  }
  make_pack_problem(timeline, members_, alignment, rule, problem_);
}

/// The first packer that fits, or else the smallest footprint of them; ties to the earlier packer.
/// Where only what fits is of use the packers stop at the budget.
void Placer::pack(Bytes budget, bool only_what_fits, bool last_resort,
                  const PackingSearch& packing) {
  const bool best_fit_alone = packing.best_fit_alone;
  problem_.stop = packing.give_up;
  const bool has_fixed = std::any_of(problem_.fixed.begin(), problem_.fixed.end(),
                                     [](Bytes offset) { return offset >= 0; });
  problem_.give_up_above = only_what_fits ? budget : std::numeric_limits<Bytes>::max();
  bool any = false;
  if (members_.size() > kMostForOrders && !has_fixed && !best_fit_alone) {
    packing_ = pack_by_cycle_sweep(problem_);
    packer_ = "sweep";
    if (packing_.footprint <= budget || !last_resort) return;
    if (most_conflicts(problem_.holds) > kMostPairsForOrders) return;
    any = true;
  }
  for (const Packer& packer : smartpool_packers().first(best_fit_alone ? 1 : 2)) {
    Packing made = packer.pack(problem_);
    if (!any || made.footprint < packing_.footprint) {
      packing_ = std::move(made);
      packer_ = packer.name;
      any = true;
    }
    if (packing_.footprint <= budget) break;
    problem_.give_up_above = packing_.footprint - 1;
  }
  problem_.give_up_above = std::numeric_limits<Bytes>::max();
}

void Placer::search(Bytes budget, const PackingSearch& packing) {
  SearchOptions search;
  search.time_limit = packing.rounds > 0 ? Nanos::max() : packing.time;
  if (packing.rounds > 0) search.rounds = packing.rounds;
  search.seed = packing.seed;
  search.stop = [&packing] { return packing.stop.requested() || packing.give_up.requested(); };
  search.target = budget;
  search.may_have_none = true;
  Packing found = search_packing(problem_, search).packing;
  if (found.footprint == std::numeric_limits<Bytes>::max()) return;
  packing_ = std::move(found);
  packer_ = "search";
}

namespace {

/// The rule by which the footprint is judged where no wait may cost time.
const SharingRule& last_without_stalls() {
  const SharingRule* last = nullptr;
  for (const SharingRule& rule : sharing_rules()) {
    if (!rule.may_stall) last = &rule;
  }
  return *last;
}

}  // namespace

bool Placer::place_device(const Subject& subject, SpaceId space, Bytes budget, Bytes alignment,
                          const PackingSearch& packing) {
  find_members(subject.timeline, space);
  refused_.clear();
  added_waits_ = 0;
  free_footprint_ = 0;
  const SharingRule* used = nullptr;
  for (const SharingRule& rule : sharing_rules()) {
    if (rule.may_stall) break;
    make_problem(subject, alignment, rule);
    if (used == nullptr && has_fixed_outside(subject, budget, alignment)) return false;
    const bool last = &rule == &last_without_stalls();
    pack(budget, !last, false, packing);
    used = &rule;
    if (packing_.footprint <= budget) break;
  }
  if (packing_.footprint > budget && packing.wanted()) search(budget, packing);
  if (packing.give_up.requested()) return false;
  free_footprint_ = packing_.footprint;
  if (packing_.footprint > budget || fixed_clash(problem_)) {
    used = &freest_rule();
    make_problem(subject, alignment, *used);
    if (has_fixed_clash(subject)) return false;
    pack(budget, true, true, packing);
    if (packing_.footprint > budget || packing.give_up.requested()) return false;
  }
  finish(subject, used->adds_waits);
  return true;
}

bool Placer::place_away(const Subject& subject, SpaceId space, Bytes budget, Bytes alignment,
                        const PackingSearch& search) {
  find_members(subject.timeline, space);
  refused_.clear();
  added_waits_ = 0;
  for (const SharingRule* rule : {&strictest_rule(), &freest_rule()}) {
    make_problem(subject, alignment, *rule);
    pack(budget, false, rule == &freest_rule(), search);
    if (search.give_up.requested()) return false;
    if (packing_.footprint > budget) continue;
    finish(subject, rule->adds_waits);
    return true;
  }
  return false;
}

void Placer::finish(const Subject& subject, bool adds_waits) {
  if (adds_waits) added_waits_ = order_sharing(subject.timeline, members_, packing_, problem_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    offsets_[static_cast<std::size_t>(members_[i])] = packing_.offsets[i];
  }
}

namespace {

const std::string& tensor_name(const Placer::Subject& subject, InstanceId id) {
  const Instance& instance = subject.timeline.instances.all[static_cast<std::size_t>(id)];
  return subject.program.tensors[static_cast<std::size_t>(instance.tensor)].name;
}

}  // namespace

bool Placer::has_fixed_outside(const Subject& subject, Bytes budget, Bytes alignment) {
  for (std::size_t i = 0; i < problem_.fixed.size(); ++i) {
    const Bytes offset = problem_.fixed[i];
    if (offset < 0) continue;
    const std::string& name = tensor_name(subject, members_[i]);
    if (offset % alignment != 0) {
      refused_ = fmt::format("tensor '{}' is fixed at {}, which is not aligned to {} B", name,
                             offset, alignment);
    } else if (offset + problem_.sizes[i] > budget) {
      refused_ = fmt::format("tensor '{}' is fixed at {}, outside the budget of {} B", name, offset,
                             budget);
    }
    if (!refused_.empty()) return true;
  }
  return false;
}

bool Placer::has_fixed_clash(const Subject& subject) {
  const auto found = fixed_clash(problem_);
  if (!found) return false;
  const auto a = static_cast<std::size_t>(found->first);
  const auto b = static_cast<std::size_t>(found->second);
  refused_ = fmt::format(
      "tensors '{}' and '{}' are fixed at overlapping addresses ({} and {}) and live at the same "
      "time",
      tensor_name(subject, members_[a]), tensor_name(subject, members_[b]), problem_.fixed[a],
      problem_.fixed[b]);
  return true;
}

Result<void> Placer::verify() const { return validate(problem_, packing_); }

}  // namespace tidepool
