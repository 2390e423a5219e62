#include "bound/relaxation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/at.h"

namespace tidepool {

Relaxation::Relaxation(const FluidProblem& problem, const LoadProfile& load,
                       std::optional<Bytes> limit, Nanos stalls)
    : p_(problem),
      links_(device_links(problem.machine)),
      load_(load.at_op),
      absences_(absences_of(problem.program, problem.index)),
      ops_(static_cast<OpId>(problem.program.ops.size())) {
  if (p_.recompute) {
    recipes_ = recipes_of(problem.program, problem.index, problem.algorithms, absences_);
  }
  choose_units(load.peak);
  free_dead_bytes();
  add_absences();
  if (p_.host_limit > 0 && !links_.to_file) add_file();
  if (limit) {
    limit_bytes_ = *limit;
    limit_ = static_cast<double>(*limit) / byte_unit_;
  } else {
    limit_column_ = lp_.add_column(0, static_cast<double>(load.peak) / byte_unit_, 1);
  }
  add_ops(!limit && stalls == Nanos{0}, limit ? 1 : 0);
  if (p_.recompute) add_clone_times();
  add_latencies();
  if (host_limit_ && links_.behind_host) add_file_times();
  if (!limit && !stalls_.empty()) {
    std::vector<Term> row;
    for (const Column stall : stalls_) row.push_back({stall, 1});
    for (const Column slower : slower_) row.push_back({slower, 1});
    lp_.at_most(row, static_cast<double>(stalls.count()) / time_unit_);
  }
}

double Relaxation::nanos(double stalls) const {
  return std::min(stalls, longest_stall()) * time_unit_;
}

std::vector<double> Relaxation::shares(const LinearProgram::Solution& solution) const {
  std::vector<double> share(p_.index.gaps().size(), 0);
  if (solution.values.empty()) return share;
  for (std::size_t a = 0; a < absences_.size(); ++a) {
    if (absences_[a].gap == kNone) continue;
    double& part = share[at(absences_[a].gap)];
    if (absences_[a].dead) {
      part = 1;
    } else if (away_[a] != kNone) {
      part = std::clamp(solution.values[at(away_[a])], 0.0, 1.0);
    }
  }
  return share;
}

/// So that the program's figures are at most about 1, whatever its size. Larger ones would make
/// the solver's tolerance finer than it needs to be, and the solver several times slower.
void Relaxation::choose_units(Bytes peak) {
  byte_unit_ = std::max(1.0, static_cast<double>(peak));
  const Nanos compute = compute_time(p_.program, p_.algorithms);
  time_unit_ = std::max(1.0, static_cast<double>(compute.count()));
  compute_ = static_cast<double>(compute.count()) / time_unit_;
  out_rate_ = units(links_.out);
  in_rate_ = units(links_.in);
}

double Relaxation::time_of(OpId op) const {
  const Algorithm& algorithm = p_.program.ops[at(op)].algorithms[at(p_.algorithms[at(op)])];
  return static_cast<double>(algorithm.time.count()) / time_unit_;
}

double Relaxation::bytes_of(const Absence& a) const {
  return static_cast<double>(p_.program.tensors[at(a.tensor)].bytes) / byte_unit_;
}

Bytes Relaxation::aligned_bytes_of(const Absence& a) const {
  return align_up(p_.program.tensors[at(a.tensor)].bytes, p_.machine.alignment());
}

double Relaxation::padding_of(const Absence& a) const {
  return static_cast<double>(aligned_bytes_of(a)) / byte_unit_ - bytes_of(a);
}

void Relaxation::free_dead_bytes() {
  for (const Absence& a : absences_) {
    if (!a.dead) continue;
    for (OpId k = a.from + 1; k < (a.wraps ? ops_ : a.to); ++k) {
      load_[at(k)] -= aligned_bytes_of(a);
    }
    for (OpId k = 0; a.wraps && k < a.to; ++k) load_[at(k)] -= aligned_bytes_of(a);
  }
}

void Relaxation::add_absences() {
  away_.assign(absences_.size(), kNone);
  copied_.assign(absences_.size(), kNone);
  remade_.assign(absences_.size(), kNone);
  for (std::size_t a = 0; a < absences_.size(); ++a) {
    if (absences_[a].dead || !sees_an_op(p_.program, absences_[a])) continue;
    all_bytes_ += bytes_of(absences_[a]);
    all_padding_ += padding_of(absences_[a]);
    away_[a] = lp_.add_column(0, 1);
    if (p_.recompute && !recipes_[a].ops.empty()) {
      remade_[a] = lp_.add_column(0, 1);
      lp_.at_most({{remade_[a], 1}, {away_[a], -1}}, 0);
    }
    if (absences_[a].host_has_it) continue;
    copied_[a] = lp_.add_column(0, 1);
    lp_.at_most({{copied_[a], 1}, {away_[a], -1}}, 0);
  }
  for (std::size_t a = 0; a < absences_.size(); ++a) {
    if (copied_[a] == kNone) continue;
    std::vector<Term> row{{away_[a], 1}};
    if (remade_[a] != kNone) row.push_back({remade_[a], -1});
    for (auto b = static_cast<std::int32_t>(a); b != kNone; b = absences_[at(b)].before) {
      if (copied_[at(b)] != kNone) row.push_back({copied_[at(b)], -1});
    }
    lp_.at_most(row, 0);
  }
}

OpId Relaxation::born(std::size_t a) const {
  return remade_[a] != kNone ? recipes_[a].born : absences_[a].born;
}

/// A variable that is the sum of terms, between 0 and `most`.
Relaxation::Column Relaxation::sum(std::vector<Term> terms, double most) {
  const Column column = lp_.add_free_column(0, most);
  terms.push_back({column, -1});
  lp_.equal(terms, 0);
  return column;
}

void Relaxation::begin(Sums& sums, std::size_t a) const {
  const double bytes = bytes_of(absences_[a]);
  sums.begun.push_back({away_[a], bytes});
  sums.on_host.push_back({away_[a], bytes});
  if (copied_[a] != kNone) sums.on_host.push_back({copied_[a], -bytes});
  open(sums, a, 1);
}

void Relaxation::end(Sums& sums, std::size_t a) const {
  const double bytes = bytes_of(absences_[a]);
  sums.due.push_back({away_[a], bytes});
  if (remade_[a] != kNone) {
    sums.due.push_back({remade_[a], -bytes});
    sums.remade.push_back({remade_[a], bytes});
  }
  open(sums, a, -1);
}

/// What counts while an absence lasts.
void Relaxation::open(Sums& sums, std::size_t a, double sign) const {
  const double bytes = sign * bytes_of(absences_[a]);
  const double padding = sign * padding_of(absences_[a]);
  sums.padding.push_back({away_[a], padding});
  if (!host_limit_) return;
  const bool held = copied_[a] != kNone;
  sums.not_held.push_back({away_[a], held ? padding : padding + bytes});
  if (held && remade_[a] != kNone) sums.not_held.push_back({remade_[a], bytes});
  if (on_file_[a] != kNone) sums.not_held.push_back({on_file_[a], bytes});
}

void Relaxation::make(Sums& sums, std::size_t a) const {
  if (copied_[a] != kNone) sums.copyable.push_back({copied_[a], bytes_of(absences_[a])});
}

void Relaxation::grow(Column& total, std::vector<Term>& terms, double most) {
  if (terms.empty()) return;
  terms.push_back({total, 1});
  total = sum(std::exchange(terms, {}), most);
}

void Relaxation::grow(Totals& totals, Sums& sums) {
  // Every sum is of at most the absences of two iterations.
  const double most = 2 * all_bytes_;
  grow(totals.copyable, sums.copyable, most);
  grow(totals.on_host, sums.on_host, most);
  grow(totals.begun, sums.begun, most);
  grow(totals.due, sums.due, most);
  grow(totals.remade, sums.remade, most);
  grow(totals.padding, sums.padding, all_padding_);
  grow(totals.not_held, sums.not_held, most + all_padding_);
}

void Relaxation::add_ops(bool no_stalls, double stall_cost) {
  std::vector<std::vector<std::size_t>> from(at(ops_)), to(at(ops_)), born_at(at(ops_));
  Sums sums;
  for (std::size_t a = 0; a < absences_.size(); ++a) {
    const Absence& absence = absences_[a];
    if (away_[a] == kNone) continue;
    from[at(absence.from)].push_back(a);
    to[at(absence.to)].push_back(a);
    if (copied_[a] != kNone) born_at[at(born(a))].push_back(a);
    if (absence.wraps) begin(sums, a);
    if (absence.carried) make(sums, a);
  }
  const double most = 2 * all_bytes_;
  Totals totals{sum(std::move(sums.copyable), most),
                sum(std::move(sums.on_host), most),
                sum(std::move(sums.begun), most),
                sum({}, most),
                sum({}, most),
                sum(std::move(sums.padding), all_padding_),
                sum(std::move(sums.not_held), most + all_padding_)};
  sums = {};
  const Column out_before = lp_.add_free_column(-most, most);
  const Column in_before = lp_.add_free_column(0, most);
  Column out = out_before;
  Column in = in_before;
  for (OpId k = 0; k < ops_; ++k) {
    for (const std::size_t a : to[at(k)]) end(sums, a);
    grow(totals, sums);
    if (p_.program.ops[at(k)].place == OpPlace::device)
      add_op(k, totals, no_stalls, stall_cost, out, in);
    for (const std::size_t a : from[at(k)]) begin(sums, a);
    for (const std::size_t a : born_at[at(k)]) make(sums, a);
  }
  // An iteration copies what it needs.
  std::vector<Term> all_out{{out_before, 1}, {out, -1}};
  std::vector<Term> all_in{{in_before, 1}, {in, -1}};
  for (std::size_t a = 0; a < absences_.size(); ++a) {
    const double bytes = bytes_of(absences_[a]);
    if (copied_[a] != kNone) all_out.push_back({copied_[a], bytes});
    if (away_[a] != kNone) all_in.push_back({away_[a], bytes});
    if (remade_[a] != kNone) all_in.push_back({remade_[a], -bytes});
  }
  lp_.equal(all_out, 0);
  lp_.equal(all_in, 0);
}

/// The start and the end of an op: before it there is as long as it stalls, then as long as it
/// runs.
void Relaxation::add_op(OpId k, const Totals& totals, bool no_stalls, double stall_cost,
                        Column& out, Column& in) {
  const double room = limit_ - static_cast<double>(load_[at(k)]) / byte_unit_;
  if (!no_stalls) {
    stalls_.push_back(lp_.add_column(0, longest_stall(), stall_cost));
    advance(0, stalls_.back(), out, in);
  }
  std::vector<Term> workspace;
  const Column slower = choose_algorithm(k, no_stalls, stall_cost, workspace);
  // All of these only grow while the op runs: what holds at its start need not be said again of
  // its end, nor the other way round.
  lp_.at_most({{totals.due, 1}, {in, -1}}, 0);
  keep_within(room, {{in, 1}, {out, -1}, {totals.on_host, -1}}, totals, workspace);
  advance(time_of(k), slower, out, in);
  lp_.at_most({{out, 1}, {totals.copyable, -1}}, 0);
  keep_within(room, {{in, 1}, {out, -1}, {totals.on_host, -1}}, totals, workspace);
  keep_within(room, {{in, 1}, {totals.begun, -1}}, totals, workspace);
  if (!host_limit_) return;
  std::vector<Term> off{{totals.not_held, -1}};
  off.insert(off.end(), workspace.begin(), workspace.end());
  if (limit_column_ != kNone) off.push_back({limit_column_, -1});
  lp_.at_most(off, room + *host_limit_);
}

/// The part of each of its algorithms. Returns by how much the op takes longer than the fastest;
/// kNone where there is no choice.
Relaxation::Column Relaxation::choose_algorithm(OpId k, bool fastest, double cost,
                                                std::vector<Term>& workspace) {
  if (p_.choices.empty() || p_.choices[at(k)].empty()) return kNone;
  if (unmovable_.empty()) unmovable_ = unmovable_load(p_.program, p_.machine.alignment());
  std::vector<Term> parts;
  std::vector<Term> time;
  for (const MoreThanBest& more : p_.choices[at(k)]) {
    if (!fits(k, more.workspace)) continue;
    parts.push_back({lp_.add_column(0, 1), 1});
    time.push_back({parts.back().column, static_cast<double>(more.time.count()) / time_unit_});
    workspace.push_back({parts.back().column, static_cast<double>(more.workspace) / byte_unit_});
  }
  lp_.equal(parts, 1);
  const double most = fastest ? 0 : time.front().factor;
  slower_.push_back(lp_.add_column(0, most, cost));
  time.push_back({slower_.back(), -1});
  lp_.equal(time, 0);
  return slower_.back();
}

/// With so much more workspace than the least, when all that may be away is.
bool Relaxation::fits(OpId k, Bytes more) const {
  return limit_bytes_ == 0 || working_set(p_.program, k, p_.machine.alignment(),
                                          p_.algorithms[at(k)], unmovable_[at(k)]) +
                                      more <=
                                  limit_bytes_;
}

/// What the links may have copied after a time: a known one, one that is a variable, or both.
void Relaxation::advance(double time, Column longer, Column& out, Column& in) {
  const double most = 2 * all_bytes_;
  const Column next_out = lp_.add_free_column(-most, most);
  const Column next_in = lp_.add_free_column(0, most);
  lp_.at_most({{out, 1}, {next_out, -1}}, 0);
  lp_.at_most({{in, 1}, {next_in, -1}}, 0);
  const auto carry = [&](std::vector<Term> terms) {
    if (longer != kNone) terms.push_back({longer, -1});
    lp_.at_most(terms, time);
  };
  const Term outs[] = {{next_out, 1 / out_rate_}, {out, -1 / out_rate_}};
  const Term ins[] = {{next_in, 1 / in_rate_}, {in, -1 / in_rate_}};
  if (links_.duplex) {
    carry({outs[0], outs[1]});
    carry({ins[0], ins[1]});
  } else {
    carry({outs[0], outs[1], ins[0], ins[1]});
  }
  out = next_out;
  in = next_in;
}

/// `kept`: what came in minus what was freed; no more comes in, and what is live has room beside
/// the workspace.
void Relaxation::keep_within(double room, std::vector<Term> kept, const Totals& totals,
                             std::span<const Term> workspace) {
  if (p_.recompute) kept.push_back({totals.remade, 1});
  lp_.at_most(kept, 0);
  kept.push_back({totals.padding, -1});
  kept.insert(kept.end(), workspace.begin(), workspace.end());
  if (limit_column_ != kNone) kept.push_back({limit_column_, -1});
  lp_.at_most(kept, room);
}

/// Clones take the time of the ops they repeat, and that is no time of the program's own ops.
void Relaxation::add_clone_times() {
  std::map<std::pair<OpId, std::int32_t>, std::vector<Term>> again;  // by op and value
  for (std::size_t a = 0; a < absences_.size(); ++a) {
    if (remade_[a] == kNone) continue;
    for (const OpId op : recipes_[a].ops) again[{op, recipes_[a].value}].push_back({remade_[a], 1});
  }
  std::vector<Term> row;
  for (const Column stall : stalls_) row.push_back({stall, -1});
  OpId last = kNone;
  Column clones = kNone;
  for (auto& [of, terms] : again) {
    if (of.first != last) {
      last = of.first;
      // As often as any of its values asks for.
      clones = lp_.add_column(0, static_cast<double>(absences_.size()));
      row.push_back({clones, time_of(last)});
    }
    terms.push_back({clones, -1});
    lp_.at_most(terms, 0);
  }
  lp_.at_most(row, 0);
}

/// No bound above this is returned: a schedule with a longer stall is no faster than that.
double Relaxation::longest_stall() const {
  double slowness = 1 / out_rate_ + 1 / in_rate_;
  if (links_.behind_host) {
    slowness += 1 / units(links_.behind_host->write) + 1 / units(links_.behind_host->read);
  }
  return 1 + compute_ + 2 * all_bytes_ * slowness + 2 * all_latencies();
}

double Relaxation::all_latencies() const {
  double latency = links_.out.latency + links_.in.latency;
  if (const auto& file = links_.behind_host) latency += file->write.latency + file->read.latency;
  return static_cast<double>(absences_.size()) * latency / time_unit_;
}

double Relaxation::units(const DeviceLinks::Direction& link) const {
  return link.bytes_per_second * 1e-9 * time_unit_ / byte_unit_;
}

/// The links carry each copy and its latency within the iteration.
void Relaxation::add_latencies() {
  const double out_latency = links_.out.latency / time_unit_;
  const double in_latency = links_.in.latency / time_unit_;
  std::vector<Term> row;
  const auto close = [&] { keep_within_iteration(row); };
  for (std::size_t a = 0; a < absences_.size(); ++a) {
    if (copied_[a] == kNone) continue;
    row.push_back({copied_[a], out_latency + bytes_of(absences_[a]) / out_rate_});
  }
  if (links_.duplex) close();
  for (std::size_t a = 0; a < absences_.size(); ++a) {
    if (away_[a] == kNone) continue;
    const double time = in_latency + bytes_of(absences_[a]) / in_rate_;
    row.push_back({away_[a], time});
    if (remade_[a] != kNone) row.push_back({remade_[a], -time});
  }
  close();
}

/// Time that one channel takes up.
void Relaxation::keep_within_iteration(std::vector<Term>& row) {
  for (const Column stall : stalls_) row.push_back({stall, -1});
  for (const Column slower : slower_) row.push_back({slower, -1});
  lp_.at_most(row, compute_);
  row.clear();
}

}  // namespace tidepool
