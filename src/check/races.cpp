#include "check/races.h"

#include <algorithm>
#include <map>
#include <memory_resource>

#include "check/happens_before.h"

namespace tidepool::checking {
namespace {

class Races {
 public:
  explicit Races(const Subject& subject) : subject_(subject) {}

  /// The part of the plan, issued `iterations` times.
  void check(std::string_view part, const Schedule& schedule, int iterations) const {
    const HappensBefore before(schedule, subject_.plan.streams.size(), iterations);
    std::pmr::unsynchronized_pool_resource pool;
    std::map<SpaceId, Cells> memory;
    HostOps host_ops(subject_.program);
    for (std::size_t e = 0; e < before.events(); ++e) {
      const Instruction& x = schedule.instructions[e % schedule.instructions.size()];
      const Event event{static_cast<std::int64_t>(e), x.stream};
      if (x.kind == InstructionKind::op && subject_.program.ops[at(x.op)].place == OpPlace::host) {
        check_host_order(part, schedule, host_ops, x.op, event, before);
      }
      for (const Touch& t : subject_.touches(x)) {
        check_touch(part, schedule, memory.try_emplace(t.space, &pool).first->second, t, event,
                    before);
      }
    }
  }

 private:
  struct Event {
    std::int64_t index = -1;  // position in the unrolled list
    StreamId stream = 0;
  };

  /// Also where there is no earlier event, and of an event and itself.
  static bool ordered(const HappensBefore& before, const Event& earlier, const Event& later) {
    return earlier.index < 0 || earlier.index == later.index ||
           before.ordered(static_cast<std::size_t>(earlier.index),
                          static_cast<std::size_t>(later.index));
  }

  struct Cell {
    Bytes end = 0;
    Event writer;
    std::vector<Event> readers;  // since the last write; the latest per stream
  };

  using Cells = std::pmr::map<Bytes, Cell>;

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
                        const Event& event, const HappensBefore& before) const {
    const OpId expected = host_ops.order[host_ops.next];
    const std::size_t n = schedule.instructions.size();
    const auto who = [&](const Event& e) {
      return subject_.describe(part, schedule, static_cast<std::size_t>(e.index) % n);
    };
    if (op != expected) {
      refute(5, "{} runs where host op '{}' is next in the program's order", who(event),
             subject_.program.ops[at(expected)].name);
    }
    if (!ordered(before, host_ops.last, event)) {
      refute(5, "{} does not wait for {}, the host op before it", who(event), who(host_ops.last));
    }
    host_ops.last = event;
    host_ops.next = (host_ops.next + 1) % host_ops.order.size();
  }

  void check_touch(std::string_view part, const Schedule& schedule, Cells& cells,
                   const Touch& touch, const Event& event, const HappensBefore& before) const {
    cut(cells, touch.begin, touch.end);
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
      if (!ordered(before, cell.writer, event)) race(cell.writer, it->first);
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
          if (!ordered(before, reader, event)) race(reader, it->first);
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
    Cell& cell = first->second;
    cell.end = touch.end;
    cell.writer = event;
    cell.readers.clear();
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
