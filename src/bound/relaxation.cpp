#include "bound/relaxation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/at.h"

namespace tidepool {
Relaxation::Relaxation(const FluidProblem& problem, const LoadProfile& load,
                       std::optional<Bytes> limit, Nanos stalls)
    : p_(problem),
      links_(device_links(problem.machine)),
      load_(load.at_op),
      parts_(parts_of(problem)),
      ops_(static_cast<OpId>(problem.program.ops.size())) {
  write(load, limit, stalls);
}

Relaxation::Relaxation(const FluidProblem& problem, const LoadProfile& load, Bytes limit,
                       Parts parts, std::vector<char> asked)
    : p_(problem),
      links_(device_links(problem.machine)),
      load_(load.at_op),
      parts_(std::move(parts)),
      asked_(std::move(asked)),
      ops_(static_cast<OpId>(problem.program.ops.size())) {
  write(load, limit, Nanos{0});
}

void Relaxation::write(const LoadProfile& load, std::optional<Bytes> limit, Nanos stalls) {
  choose_units(load.peak);
  count_absent_bytes();
  add_absences(limit.has_value());
  if (p_.host_limit > 0 && !links_.to_file) add_file();
  if (limit) {
    limit_bytes_ = *limit;
    limit_ = static_cast<double>(*limit) / byte_unit_;
  } else {
    Bytes most = load.peak;
    for (const Bytes bytes : load_) most = std::max(most, bytes);
    limit_column_ = lp_.add_column(0, static_cast<double>(most) / byte_unit_, 1);
  }
  add_ops(!limit && stalls == Nanos{0}, limit ? 1 : 0);
  if (limit && asked_.empty()) add_whole_tensors();
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
  for (std::size_t a = 0; a < parts_.size(); ++a) {  // each an absence
    if (parts_.absences[a].gap == kNone) continue;
    double& part = share[at(parts_.absences[a].gap)];
    if (parts_.absences[a].dead) {
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

/// Dead bytes take no room, and what is uploaded does before the load of the program knows of it.
void Relaxation::count_absent_bytes() {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Absence& a = parts_.absences[i];
    if (!a.dead && !a.upload) continue;
    const Bytes bytes = (a.upload ? -1 : 1) * std::llround(parts_.aligned[i]);
    for (OpId k = a.from + 1; k < (a.wraps ? ops_ : a.to); ++k) load_[at(k)] -= bytes;
    for (OpId k = 0; a.wraps && k < a.to; ++k) load_[at(k)] -= bytes;
  }
}

void Relaxation::add_absences(bool limited) {
  away_.assign(parts_.size(), kNone);
  copied_.assign(parts_.size(), kNone);
  remade_.assign(parts_.size(), kNone);
  copied_so_far_.assign(parts_.size(), kNone);
  for (std::size_t a = 0; a < parts_.size(); ++a) {
    if (parts_.absences[a].dead || !sees_an_op(p_.program, parts_.absences[a])) continue;
    all_bytes_ += bytes_of(a);
    all_padding_ += padding_of(a);
    // Without a limit it may take room instead: links that are slower than all else leave no
    // schedule without stalls.
    const bool comes_in = parts_.absences[a].upload && limited;
    away_[a] = lp_.add_column(comes_in ? 1 : 0, 1);
    if (parts_.repeats(a)) {
      remade_[a] = lp_.add_column(0, 1);
      lp_.at_most({{remade_[a], 1}, {away_[a], -1}}, 0);
    }
    if (parts_.absences[a].host_has_it) continue;
    copied_[a] = lp_.add_column(0, 1);
    lp_.at_most({{copied_[a], 1}, {away_[a], -1}}, 0);
  }
  for (std::size_t a = 0; a < parts_.size(); ++a) {
    if (copied_[a] == kNone) continue;
    std::vector<Term> row{{away_[a], 1}};
    if (remade_[a] != kNone) row.push_back({remade_[a], -1});
    for (const Term& copied : copied_up_to(a)) row.push_back({copied.column, -1});
    lp_.at_most(row, 0);
  }
}

/// The sum of y of an absence and those in front of it in the life of the value. Where these are
/// many it is of sums, or values that are used at every step would fill the program.
std::vector<Relaxation::Term> Relaxation::copied_up_to(std::size_t a) {
  constexpr std::size_t kMany = 8;
  std::vector<Term> terms;
  for (auto b = static_cast<std::int32_t>(a); b != kNone; b = parts_.absences[at(b)].before) {
    if (copied_so_far_[at(b)] != kNone) {
      terms.push_back({copied_so_far_[at(b)], 1});
      break;
    }
    if (copied_[at(b)] != kNone) terms.push_back({copied_[at(b)], 1});
  }
  if (terms.size() <= kMany) return terms;
  copied_so_far_[a] = sum(std::move(terms), static_cast<double>(parts_.size()));
  return {{copied_so_far_[a], 1}};
}

void Relaxation::add_up(std::vector<Term>& terms) {
  std::ranges::sort(terms, {}, &Term::column);
  std::size_t end = 0;
  for (const Term& term : terms) {
    if (end > 0 && terms[end - 1].column == term.column) {
      terms[end - 1].factor += term.factor;
    } else {
      terms[end++] = term;
    }
  }
  terms.resize(end);
  std::erase_if(terms, [](const Term& term) { return term.factor == 0; });
}

/// A variable that is the sum of terms, between 0 and `most`.
Relaxation::Column Relaxation::sum(std::vector<Term> terms, double most) {
  if (!asked_.empty()) add_up(terms);  // of what begins and ends where nothing is asked
  const Column column = lp_.add_free_column(0, most);
  terms.push_back({column, -1});
  lp_.equal(terms, 0);
  return column;
}

void Relaxation::begin(Sums& sums, std::size_t a) const {
  const double bytes = bytes_of(a);
  sums.begun.push_back({away_[a], bytes});
  sums.on_host.push_back({away_[a], bytes});
  if (copied_[a] != kNone) sums.on_host.push_back({copied_[a], -bytes});
  open(sums, a, 1);
}

void Relaxation::end(Sums& sums, std::size_t a) const {
  const double bytes = bytes_of(a);
  sums.due.push_back({away_[a], bytes});
  if (remade_[a] != kNone) {
    sums.due.push_back({remade_[a], -bytes});
    sums.remade.push_back({remade_[a], bytes});
  }
  open(sums, a, -1);
}

/// What counts while an absence lasts.
void Relaxation::open(Sums& sums, std::size_t a, double sign) const {
  const double bytes = sign * bytes_of(a);
  const double padding = sign * padding_of(a);
  if (padding != 0) sums.padding.push_back({away_[a], padding});
  if (!host_limit_) return;
  const bool held = copied_[a] != kNone;
  sums.not_held.push_back({away_[a], held ? padding : padding + bytes});
  if (held && remade_[a] != kNone) sums.not_held.push_back({remade_[a], bytes});
  if (on_file_[a] != kNone) sums.not_held.push_back({on_file_[a], bytes});
}

void Relaxation::make(Sums& sums, std::size_t a) const {
  if (copied_[a] != kNone) sums.copyable.push_back({copied_[a], bytes_of(a)});
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
  for (std::size_t a = 0; a < parts_.size(); ++a) {
    const Absence& absence = parts_.absences[a];
    if (away_[a] == kNone) continue;
    from[at(absence.from)].push_back(a);
    to[at(absence.to)].push_back(a);
    if (copied_[a] != kNone) born_at[at(parts_.born(a))].push_back(a);
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
  copied_by_.push_back({out, in});
  for (OpId k = 0; k < ops_; ++k) {
    for (const std::size_t a : to[at(k)]) end(sums, a);
    if (is_asked(k)) {
      grow(totals, sums);
      add_op(k, totals, no_stalls, stall_cost, out, in);
    } else if (p_.program.ops[at(k)].place == OpPlace::device) {
      since_ += time_of(k);
    }
    for (const std::size_t a : from[at(k)]) begin(sums, a);
    for (const std::size_t a : born_at[at(k)]) make(sums, a);
  }
  if (!asked_.empty()) add_time(no_stalls, stall_cost, out, in);
  copied_by_.push_back({out, in});
  // An iteration copies what it needs.
  std::vector<Term> all_out{{out_before, 1}, {out, -1}};
  std::vector<Term> all_in{{in_before, 1}, {in, -1}};
  for (std::size_t a = 0; a < parts_.size(); ++a) {
    const double bytes = bytes_of(a);
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
  if (!no_stalls || !asked_.empty()) add_time(no_stalls, stall_cost, out, in);
  copied_by_.push_back({out, in});
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
  copied_by_.push_back({out, in});
  if (!host_limit_) return;
  std::vector<Term> off{{totals.not_held, -1}};
  off.insert(off.end(), workspace.begin(), workspace.end());
  if (limit_column_ != kNone) off.push_back({limit_column_, -1});
  lp_.at_most(off, room + *host_limit_);
}

bool Relaxation::is_asked(OpId k) const {
  return p_.program.ops[at(k)].place == OpPlace::device && (asked_.empty() || asked_[at(k)] != 0);
}

/// Between two ops that are asked: a stall, and the time of others.
void Relaxation::add_time(bool no_stalls, double stall_cost, Column& out, Column& in) {
  if (!no_stalls) stalls_.push_back(lp_.add_column(0, longest_stall(), stall_cost));
  advance(std::exchange(since_, 0), no_stalls ? Column{kNone} : stalls_.back(), out, in);
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

FluidFlow Relaxation::flow(const LinearProgram::Solution& solution) const {
  FluidFlow flow;
  const auto value = [&](Column c) { return c == kNone ? 0 : solution.values[at(c)]; };
  for (const std::int32_t part : parts_.of) {
    flow.away.push_back(part == kNone ? 0 : value(away_[at(part)]));
    flow.copied.push_back(part == kNone ? 0 : value(copied_[at(part)]));
    flow.remade.push_back(part == kNone ? 0 : value(remade_[at(part)]));
  }
  for (std::size_t i = 0; i + 1 < copied_by_.size(); i += 2) {
    flow.stretches.push_back(
        {value(copied_by_[i].out) * byte_unit_, value(copied_by_[i].in) * byte_unit_,
         value(copied_by_[i + 1].out) * byte_unit_, value(copied_by_[i + 1].in) * byte_unit_,
         value(stalls_[i / 2]) * time_unit_});
  }
  flow.load = load_;
  return flow;
}

}  // namespace tidepool
