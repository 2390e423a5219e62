#include "planners/published/home/policy_evaluator.h"

#include <algorithm>
#include <utility>

#include "base/at.h"

namespace tidepool {
namespace {

constexpr std::size_t kAskEvery = 64;  ///< stretches

}  // namespace

PolicyEvaluator::PolicyEvaluator(const PolicyModel& model, RegeneratedMaps regenerated, Stop stop)
    : model_(model),
      regenerated_(regenerated),
      stop_(std::move(stop)),
      where_(model.maps.size()),
      arrival_(model.maps.size()),
      out_of_(model.maps.size()),
      host_value_(at(model.host_places)),
      host_out_(at(model.host_places)),
      planned_(model.values.size(), 0),
      held_(model.values.size(), 0),
      last_reader_(model.values.size(), kNone) {
  outs_.reserve(model.maps.size());
  asked_.reserve(model.maps.size());
}

void PolicyEvaluator::begin(std::span<const std::uint8_t> policy, Bytes limit,
                            std::int64_t give_up_above) {
  policy_ = policy;
  limit_ = limit;
  give_up_above_ = give_up_above;
  now_ = out_ = in_ = recomputing_ = Nanos{0};
  gone_ = overshoot_ = 0;
  std::fill(where_.begin(), where_.end(), Where::device);
  std::fill(host_value_.begin(), host_value_.end(), ValueId{kNone});
  outs_.clear();
  next_out_ = 0;
  asked_.clear();
  next_asked_ = 0;
}

/// The policy is known to cost more than is of use.
bool PolicyEvaluator::too_much(std::size_t stretch) const {
  if (overshoot_ > 0) return kDoesNotFit + overshoot_ > give_up_above_;
  return (now_ + model_.rest[stretch]).count() > give_up_above_;
}

PolicyCost PolicyEvaluator::evaluate(std::span<const std::uint8_t> policy, Bytes limit,
                                     std::int64_t give_up_above) {
  begin(policy, limit, give_up_above);
  const std::size_t count = model_.stretches.size() - 1;
  for (std::size_t s = 0; s < count; ++s) {
    if (too_much(s) || (s % kAskEvery == 0 && stop_.requested())) return {.gave_up = true};
    const Stretch& stretch = model_.stretches[s];
    const Stretch& next = model_.stretches[s + 1];
    for (std::int32_t i = stretch.fetches; i < next.fetches; ++i) {
      const MapId m = model_.fetches[at(i)];
      if (where_[at(m)] == Where::away) asked_.push_back(m);
    }
    if (next_asked_ < asked_.size()) fetch_what_fits(stretch.first);
    if (stretch.needs < next.needs) meet_needs(stretch.first, stretch.needs, next.needs);
    run_stretch(stretch);
    for (std::int32_t i = stretch.leaves; i < next.leaves; ++i) leave(model_.leaves[at(i)]);
  }
  if (too_much(count)) return {.gave_up = true};
  return {now_, overshoot_, recomputing_, false};
}

void PolicyEvaluator::run_stretch(const Stretch& stretch) {
  if (next_asked_ == asked_.size() && stretch.peak - gone_ <= limit_) {
    now_ += stretch.time;
    return;
  }
  for (OpId op = stretch.first; op < stretch.end; ++op) {
    if (op > stretch.first && next_asked_ < asked_.size()) fetch_what_fits(op);
    const ModelOp& runs = model_.ops[at(op)];
    await_memory(runs.load);
    now_ += runs.time;
  }
}

void PolicyEvaluator::fetch_what_fits(OpId op) {
  retire_ended();
  for (; next_asked_ < asked_.size(); ++next_asked_) {
    const MapId m = asked_[next_asked_];
    if (where_[at(m)] != Where::away) continue;
    const ModelMap& map = model_.maps[at(m)];
    if (model_.peak(op, map.to) - gone_ + map.bytes > limit_) return;
    start_copy_in(m);
  }
  asked_.clear();
  next_asked_ = 0;
}

void PolicyEvaluator::start_copy_in(MapId m) {
  const ModelMap& map = model_.maps[at(m)];
  gone_ -= map.bytes;
  const std::int32_t out = out_of_[at(m)];
  const Nanos whole = out == kNone ? Nanos{0} : outs_[at(out)].end;
  arrival_[at(m)] = copy_in(model_.values[at(map.value)].in_time, whole);
  where_[at(m)] = Where::arriving;
}

/// `load`: what is there with nothing away, and what recomputation holds.
void PolicyEvaluator::force_copy_in(MapId m, Bytes load) {
  await_out(out_of_[at(m)]);
  await_memory(load + model_.maps[at(m)].bytes);
  start_copy_in(m);
}

void PolicyEvaluator::meet_needs(OpId op, std::int32_t first, std::int32_t end) {
  for (std::int32_t i = first; i < end; ++i) {
    const MapId m = model_.needs[at(i)];
    if (where_[at(m)] == Where::away) force_copy_in(m, model_.ops[at(op)].between);
  }
  for (std::int32_t i = first; i < end; ++i) {
    const MapId m = model_.needs[at(i)];
    if (where_[at(m)] == Where::gone) recompute(m);
  }
  for (std::int32_t i = first; i < end; ++i) {
    const MapId m = model_.needs[at(i)];
    if (where_[at(m)] == Where::arriving) now_ = std::max(now_, arrival_[at(m)]);
    where_[at(m)] = Where::device;
  }
}

void PolicyEvaluator::leave(MapId m) {
  const auto action = static_cast<Action>(policy_[at(m)]);
  if (action == Action::keep) return;
  const ModelMap& map = model_.maps[at(m)];
  if (action == Action::recompute) {
    where_[at(m)] = Where::gone;
    gone_ += map.bytes;
    return;
  }
  where_[at(m)] = Where::away;
  const ModelValue& value = model_.values[at(map.value)];
  if (on_host(value, map.value)) {
    out_of_[at(m)] = value.host_has_it ? std::int32_t{kNone} : host_out_[at(map.host_place)];
    gone_ += map.bytes;
    return;
  }
  out_ = std::max(now_, out_) + value.out_time;
  out_of_[at(m)] = static_cast<std::int32_t>(outs_.size());
  outs_.push_back({out_, map.bytes});
  host_value_[at(map.host_place)] = map.value;
  host_out_[at(map.host_place)] = out_of_[at(m)];
}

/// The map whose gap the value is in before this op, or kNone.
MapId PolicyEvaluator::covering(ValueId v, OpId op) const {
  const ModelValue& value = model_.values[at(v)];
  for (std::int32_t i = 0; i < value.maps; ++i) {
    const MapId m = model_.maps_of_values[at(value.first_map + i)];
    if (model_.maps[at(m)].from < op && op <= model_.maps[at(m)].to) return m;
  }
  return kNone;
}

void PolicyEvaluator::recompute(MapId m) {
  const ModelMap& map = model_.maps[at(m)];
  way_.clear();
  ++mark_;
  temporary_ = 0;
  find_way(map.value, map.to);
  for (std::size_t i = 0; i < way_.size(); ++i) remake(i, m);
}

/// Adds to the way what it takes to have the value on the device before the op.
void PolicyEvaluator::find_way(ValueId v, OpId op) {
  const ModelValue& value = model_.values[at(v)];
  if (planned_[at(v)] == mark_) return;
  if (const MapId m = covering(v, op); m != kNone) {
    const Where where = where_[at(m)];
    if (where == Where::device) return;
    if (where == Where::gone) return run_again_for(v, op, kNone);
    planned_[at(v)] = mark_;
    way_.push_back({where == Where::away ? Remake::swap_in : Remake::await_arrival, m.value()});
    return;
  }
  if (value.ever && value.on_device < op && op <= value.until) return;
  if (!on_host(value, v)) return run_again_for(v, op, kNone);
  planned_[at(v)] = mark_;
  last_reader_[at(v)] = kNone;
  way_.push_back({Remake::copy_for_it, v.value()});
}

/// The same for a reader that will change the value in place: it gets bytes of its own.
void PolicyEvaluator::find_alone(ValueId v, OpId op) {
  if (on_host(model_.values[at(v)], v)) {
    way_.push_back({Remake::copy_for_it, v.value(), v});
  } else {
    run_again_for(v, op, v);
  }
}

void PolicyEvaluator::run_again_for(ValueId v, OpId op, ValueId alone) {
  const OpId producer = model_.values[at(v)].producer;
  for (const ValueUse& read : model_.reads(producer)) {
    read.update ? find_alone(read.value, op) : find_way(read.value, op);
  }
  const auto place = static_cast<std::int32_t>(way_.size());
  for (const ValueUse& read : model_.reads(producer)) {
    if (!read.update) last_reader_[at(read.value)] = place;
  }
  for (const ValueUse& written : model_.writes(producer)) {
    if (written.value == alone || planned_[at(written.value)] == mark_) continue;
    planned_[at(written.value)] = mark_;
    last_reader_[at(written.value)] = kNone;
  }
  way_.push_back({Remake::run, producer.value(), alone});
}

void PolicyEvaluator::remake(std::size_t i, MapId target) {
  const Remake step = way_[i];
  const OpId reader = model_.maps[at(target)].to;
  if (step.kind == Remake::run) return run_again(i, target);
  if (step.kind == Remake::copy_for_it) {
    return copy_for_remake(ValueId{step.id}, reader, step.alone);
  }
  const MapId m{step.id};
  if (where_[at(m)] == Where::away) {
    force_copy_in(m, model_.ops[at(reader)].between + temporary_);
  }
  now_ = std::max(now_, arrival_[at(m)]);
}

void PolicyEvaluator::copy_for_remake(ValueId v, OpId op, ValueId alone) {
  const ModelValue& value = model_.values[at(v)];
  if (!value.host_has_it) await_out(host_out_[at(value.host_place)]);
  await_memory(model_.ops[at(op)].between + temporary_ + value.bytes);
  temporary_ += value.bytes;
  if (alone == kNone) held_[at(v)] = mark_;
  now_ = copy_in(value.in_time, Nanos{0});
}

void PolicyEvaluator::run_again(std::size_t i, MapId target) {
  const OpId producer{way_[i].id};
  const OpId reader = model_.maps[at(target)].to;
  const ModelOp& op = model_.ops[at(producer)];
  await_memory(model_.ops[at(reader)].between + temporary_ + op.writes + op.workspace);
  now_ += op.time;
  recomputing_ += op.time;
  for (const ValueUse& read : model_.reads(producer)) {
    if (read.update) temporary_ -= model_.values[at(read.value)].bytes;
  }
  for (const ValueUse& output : model_.writes(producer)) keep_output(output, i, target);
  for (const ValueUse& read : model_.reads(producer)) {
    const std::size_t v = at(read.value);
    if (held_[v] != mark_ || last_reader_[v] != static_cast<std::int32_t>(i)) continue;
    temporary_ -= model_.values[v].bytes;
    held_[v] = 0;
  }
}

/// Whether what a producer has made again stays, and for how long.
void PolicyEvaluator::keep_output(const ValueUse& output, std::size_t i, MapId target) {
  const ValueId v = output.value;
  const Bytes bytes = model_.values[at(v)].bytes;
  if (v == way_[i].alone) {
    temporary_ += bytes;
    return;
  }
  const OpId reader = model_.maps[at(target)].to;
  const MapId m = covering(v, reader);
  if (m != kNone && where_[at(m)] == Where::gone) {
    retire_ended();
    // Beside the op that all this is for, with the target.
    Bytes load = model_.ops[at(reader)].load - gone_ + temporary_ + bytes;
    if (where_[at(target)] == Where::gone) load += model_.maps[at(target)].bytes;
    const bool stays = m == target || regenerated_ == RegeneratedMaps::stay;
    if (stays || load <= limit_) {
      where_[at(m)] = Where::device;
      gone_ -= bytes;
      return;
    }
  }
  const bool read_later =
      planned_[at(v)] == mark_ && last_reader_[at(v)] > static_cast<std::int32_t>(i);
  if (!read_later || held_[at(v)] == mark_) return;
  temporary_ += bytes;
  held_[at(v)] = mark_;
}

}  // namespace tidepool
