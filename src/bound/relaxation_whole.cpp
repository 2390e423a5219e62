// What a relaxation asks of tensors that are whole. See Note [Whole tensors] in fluid.h.
#include <algorithm>
#include <cmath>

#include "base/at.h"
#include "bound/relaxation.h"

namespace tidepool {
namespace {

/// Where this many large tensors may stay beside an op, which of them says little.
constexpr std::size_t kMostStay = 4;
/// More of these variables would make the linear program slower than they are worth.
constexpr std::size_t kMostGone = 1'000;

}  // namespace

void Relaxation::add_whole_tensors() {
  for (std::size_t most_stay = kMostStay; most_stay > 0; --most_stay) {
    std::vector<Beside> all;
    std::size_t gone = 0;
    for (OpId k = 0; k < ops_ && gone <= kMostGone; ++k) {
      if (!is_asked(k)) continue;
      all.push_back(large_beside(k, most_stay));
      gone += all.back().large.size();
    }
    if (gone > kMostGone) continue;
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].before = copied_by_[2 * i + 1];
      all[i].behind = copied_by_[2 * i + 2];
      at_op_.resize(at(all[i].op) + 1, i);
    }
    at_op_.resize(at(ops_), all.size());
    for (const Beside& beside : all) ask_whole(all, beside);
    return;
  }
}

/// What is open beside an op and large enough that not all of it may stay.
Relaxation::Beside Relaxation::large_beside(OpId k, std::size_t most_stay) const {
  Beside beside;
  beside.op = k;
  const auto aligned = [this](std::size_t a) { return std::llround(parts_.aligned[a]); };
  Bytes room = limit_bytes_ - load_[at(k)];
  for (std::size_t a = 0; a < parts_.size(); ++a) {
    const Absence& absence = parts_.absences[a];
    const bool open =
        absence.wraps ? k > absence.from || k < absence.to : k > absence.from && k < absence.to;
    if (!open || away_[a] == kNone) continue;
    room += aligned(a);
    beside.large.push_back(a);
  }
  std::ranges::stable_sort(beside.large,
                           [&](std::size_t a, std::size_t b) { return aligned(a) > aligned(b); });
  std::size_t most = 0;
  std::size_t least_gone = 0;
  for (std::size_t stay = 0; stay < most_stay; ++stay) {
    // Any `stay` + 1 of the first `count` exceed the room: so many of them are gone.
    std::size_t count = 0;
    Bytes sum = 0;
    for (; count < beside.large.size(); ++count) {
      sum += aligned(beside.large[count]);
      if (count > stay) sum -= aligned(beside.large[count - stay - 1]);
      if (count >= stay && sum <= room) break;
    }
    if (count <= stay || count - stay <= least_gone) continue;
    least_gone = count - stay;
    most = count;
    beside.fewest_gone.push_back({count, least_gone});
  }
  beside.others.assign(beside.large.begin() + static_cast<std::ptrdiff_t>(most),
                       beside.large.end());
  beside.large.resize(most);
  return beside;
}

/// What is too large to stay is gone from in front of the op to behind it. Of several of which some
/// may stay others may be gone at its start than at its end.
void Relaxation::ask_whole(const std::vector<Beside>& all, const Beside& beside) {
  if (beside.large.empty()) return;
  Beside part = beside;
  const auto [count, fewest] = beside.fewest_gone.front();
  if (count == fewest) {
    part.others.insert(part.others.begin(), part.large.begin() + static_cast<std::ptrdiff_t>(count),
                       part.large.end());
    part.large.resize(count);
    part.fewest_gone = {{count, fewest}};
    ask_gone(all, part);
    if (beside.fewest_gone.size() == 1) return;
    part = beside;
  }
  part.behind = beside.before;
  ask_gone(all, part);
  part.before = part.behind = beside.behind;
  ask_gone(all, part);
}

/// The columns: z, the part of the iterations in which an absence is gone from `before` to
/// `behind`; w, of those in which it is copied in behind.
void Relaxation::ask_gone(const std::vector<Beside>& all, const Beside& beside) {
  const std::size_t n = beside.large.size();
  std::vector<Column> gone;
  std::vector<Window> out;
  std::vector<Window> in;
  for (const std::size_t a : beside.large) {
    gone.push_back(lp_.add_column(0, 1));
    lp_.at_most({{gone.back(), 1}, {away_[a], -1}}, 0);
    Column copied = gone.back();
    if (remade_[a] != kNone) {
      copied = lp_.add_column(0, 1);
      lp_.at_most({{gone.back(), 1}, {remade_[a], -1}, {copied, -1}}, 0);
    }
    const Term bytes{copied, bytes_of(a)};
    in.push_back({columns_before(all, parts_.absences[a].to), parts_.absences[a].to <= beside.op,
                  length(beside.op, parts_.absences[a].to), bytes});
    if (copied_[a] == kNone) continue;
    const OpId born = parts_.born(a);
    out.push_back({columns_behind(all, born), born >= beside.op, length(born, beside.op), bytes});
  }
  for (const auto& [count, fewest] : beside.fewest_gone) {
    std::vector<Term> row;
    for (std::size_t i = 0; i < std::min(count, n); ++i) row.push_back({gone[i], -1});
    lp_.at_most(row, -static_cast<double>(fewest));
  }
  // What is live has room when it is whole, too.
  std::vector<Term> room;
  for (std::size_t i = 0; i < n; ++i) {
    room.push_back({gone[i], -parts_.aligned[beside.large[i]] / byte_unit_});
  }
  for (const std::size_t a : beside.others) {
    room.push_back({away_[a], -parts_.aligned[a] / byte_unit_});
  }
  lp_.at_most(room, limit_ - static_cast<double>(load_[at(beside.op)]) / byte_unit_);
  const auto shorter = [](const Window& x, const Window& y) { return x.length < y.length; };
  std::ranges::stable_sort(out, shorter);
  std::ranges::stable_sort(in, shorter);
  const Copied& first = copied_by_.front();
  const Copied& last = copied_by_.back();
  std::vector<Term> bytes;
  for (const Window& window : out) {
    bytes.push_back(window.bytes);
    std::vector<Term> row = bytes;
    row.push_back({beside.before.out, -1});
    row.push_back({window.end.out, 1});
    if (window.wraps) row.insert(row.end(), {{last.out, -1}, {first.out, 1}});
    add_row(row);
  }
  bytes.clear();
  for (const Window& window : in) {
    bytes.push_back(window.bytes);
    std::vector<Term> row = bytes;
    row.push_back({window.end.in, -1});
    row.push_back({beside.behind.in, 1});
    if (window.wraps) row.insert(row.end(), {{last.in, -1}, {first.in, 1}});
    add_row(row);
  }
}

void Relaxation::add_row(std::vector<Term>& row) {
  add_up(row);
  lp_.at_most(row, 0);
}

/// From one op to another, as time goes round.
OpId Relaxation::length(OpId from, OpId to) const {
  return to > from ? to - from : to - from + ops_;
}

/// What is copied in front of an op, or of a later one that is asked.
Relaxation::Copied Relaxation::columns_before(const std::vector<Beside>& all, OpId op) const {
  const std::size_t i = at_op_[at(op)];
  return i < all.size() ? all[i].before : copied_by_.back();
}

/// What is copied behind an op, or behind an earlier one that is asked.
Relaxation::Copied Relaxation::columns_behind(const std::vector<Beside>& all, OpId op) const {
  const std::size_t i = at_op_[at(op)];
  if (i < all.size() && all[i].op == op) return all[i].behind;
  return i == 0 ? copied_by_.front() : all[i - 1].behind;
}

}  // namespace tidepool
