#include "check/races.h"

#include <algorithm>
#include <map>

namespace tidepool::checking {
namespace {

class Races {
 public:
  explicit Races(const Subject& subject) : subject_(subject) {}

  /// The part of the plan, issued `iterations` times.
  void check(std::string_view part, const Schedule& schedule, int iterations) const {
    const std::size_t n = schedule.instructions.size();
    const std::size_t streams = subject_.plan.streams.size();
    const std::size_t events = n * static_cast<std::size_t>(iterations);
    std::vector<std::int64_t> clocks(events * streams, 0);
    std::vector<std::int64_t> sequence(events);
    std::vector<std::int64_t> issued(streams, 0);
    std::vector<std::int64_t> last(streams, -1);
    std::map<SpaceId, Cells> memory;
    HostOps host_ops(subject_.program);
    for (std::size_t e = 0; e < events; ++e) {
      const std::size_t i = e % n;
      const Instruction& x = schedule.instructions[i];
      const Clock clock = std::span(clocks).subspan(e * streams, streams);
      const auto learn = [&](std::size_t earlier) {
        for (std::size_t s = 0; s < streams; ++s) {
          clock[s] = std::max(clock[s], clocks[earlier * streams + s]);
        }
        auto& own = clock[at(schedule.instructions[earlier % n].stream)];
        own = std::max(own, sequence[earlier]);
      };
      if (last[at(x.stream)] >= 0) learn(static_cast<std::size_t>(last[at(x.stream)]));
      for (const Wait& w : x.waits) {
        if (w.iteration == 0) {
          learn(e - i + at(w.index));
        } else if (e >= n) {
          learn(e - i - n + at(w.index));
        }
      }
      last[at(x.stream)] = static_cast<std::int64_t>(e);
      sequence[e] = ++issued[at(x.stream)];
      const Event event{static_cast<std::int64_t>(e), x.stream, sequence[e]};
      if (x.kind == InstructionKind::op && subject_.program.ops[at(x.op)].place == OpPlace::host) {
        check_host_order(part, schedule, host_ops, x.op, event, clock);
      }
      for (const Touch& t : subject_.touches(x)) {
        check_touch(part, schedule, memory[t.space], t, event, clock);
      }
    }
  }

 private:
  using Clock = std::span<std::int64_t>;  // per stream: events known to be over

  struct Event {
    std::int64_t index = -1;  // position in the unrolled list
    StreamId stream = 0;
    std::int64_t sequence = 0;  // position on its stream, from 1
  };

  struct Cell {
    Bytes end = 0;
    Event writer;
    std::vector<Event> readers;  // since the last write; the latest per stream
  };

  using Cells = std::map<Bytes, Cell>;

  /// Makes cell borders at `begin` and `end`, and cells for bytes never touched.
  static void cut(Cells& cells, Bytes begin, Bytes end) {
    const auto split = [&](Bytes position) {
      auto it = cells.upper_bound(position);
      if (it == cells.begin()) return;
      --it;
      if (it->first == position || it->second.end <= position) return;
      Cell upper = it->second;
      it->second.end = position;
      cells.emplace(position, std::move(upper));
    };
    split(begin);
    split(end);
    Bytes position = begin;
    for (auto it = cells.lower_bound(begin); position < end;) {
      if (it == cells.end() || it->first >= end) {
        cells.emplace(position, Cell{end, {}, {}});
        break;
      }
      if (it->first > position) cells.emplace(position, Cell{it->first, {}, {}});
      position = it->second.end;
      ++it;
    }
  }

  /// The host ops in the order of the program, over and over, and the last one that was issued.
  struct HostOps {
    explicit HostOps(const Program& program) {
      for (std::size_t i = 0; i < program.ops.size(); ++i) {
        if (program.ops[i].place == OpPlace::host) order.push_back(static_cast<OpId>(i));
      }
    }
    std::vector<OpId> order;
    std::size_t next = 0;
    Event last;
  };

  /// Happens-before only points backwards in the list, so the list has them in order too.
  void check_host_order(std::string_view part, const Schedule& schedule, HostOps& host_ops, OpId op,
                        const Event& event, Clock clock) const {
    const OpId expected = host_ops.order[host_ops.next];
    const std::size_t n = schedule.instructions.size();
    const auto who = [&](const Event& e) {
      return subject_.describe(part, schedule, static_cast<std::size_t>(e.index) % n);
    };
    if (op != expected) {
      refute(5, "{} runs where host op '{}' is next in the program's order", who(event),
             subject_.program.ops[at(expected)].name);
    }
    if (host_ops.last.index >= 0 && clock[at(host_ops.last.stream)] < host_ops.last.sequence) {
      refute(5, "{} does not wait for {}, the host op before it", who(event), who(host_ops.last));
    }
    host_ops.last = event;
    host_ops.next = (host_ops.next + 1) % host_ops.order.size();
  }

  void check_touch(std::string_view part, const Schedule& schedule, Cells& cells,
                   const Touch& touch, const Event& event, Clock clock) const {
    cut(cells, touch.begin, touch.end);
    const auto ordered = [&](const Event& earlier) {
      return earlier.index < 0 || earlier.index == event.index ||
             clock[at(earlier.stream)] >= earlier.sequence;
    };
    const std::size_t n = schedule.instructions.size();
    const auto race = [&](const Event& earlier, Bytes byte) {
      refute(
          2, "{} and {}{} both use {} byte {}, one of them writes, and nothing orders them",
          subject_.describe(part, schedule, static_cast<std::size_t>(earlier.index) % n),
          subject_.describe(part, schedule, static_cast<std::size_t>(event.index) % n),
          static_cast<std::size_t>(earlier.index) / n == static_cast<std::size_t>(event.index) / n
              ? ""
              : " of the next iteration",
          subject_.space_name(touch.space), byte);
    };
    for (auto it = cells.find(touch.begin); it != cells.end() && it->first < touch.end; ++it) {
      Cell& cell = it->second;
      if (!ordered(cell.writer)) race(cell.writer, it->first);
      if (cell.writer.index == event.index && event.index >= 0) {
        refute(2, "{} uses byte {} twice and writes it",
               subject_.describe(part, schedule, static_cast<std::size_t>(event.index) % n),
               it->first);
      }
      if (touch.writes) {
        for (const Event& reader : cell.readers) {
          if (reader.index == event.index) {
            refute(2, "{} uses byte {} twice and writes it",
                   subject_.describe(part, schedule, static_cast<std::size_t>(event.index) % n),
                   it->first);
          }
          if (!ordered(reader)) race(reader, it->first);
        }
      } else {
        const auto same = std::find_if(cell.readers.begin(), cell.readers.end(),
                                       [&](const Event& r) { return r.stream == event.stream; });
        if (same != cell.readers.end()) {
          *same = event;
        } else {
          cell.readers.push_back(event);
        }
      }
    }
    if (touch.writes && touch.begin < touch.end) become_one(cells, touch, event);
  }

  /// What is written as a whole is one cell again: cells do not get smaller for ever.
  static void become_one(Cells& cells, const Touch& touch, const Event& event) {
    const auto first = cells.find(touch.begin);
    cells.erase(std::next(first), cells.lower_bound(touch.end));
    first->second = {touch.end, event, {}};
  }

  const Subject& subject_;
};

}  // namespace

void check_races(const Subject& subject) {
  const Races races(subject);
  races.check("entry", subject.plan.entry, 1);
  races.check("steady", subject.plan.steady, 2);
  races.check("exit", subject.plan.exit, 1);
}

}  // namespace tidepool::checking
