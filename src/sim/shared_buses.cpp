#include "sim/shared_buses.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>

#include "base/at.h"

namespace tidepool {
namespace {

constexpr Nanos kNotYet = Nanos::max();
/// Of a nanosecond: what sums of doubles may be off by.
constexpr double kRounding = 1e-3;

/// A copy on its bus.
struct Transfer {
  StreamId stream = 0;
  double link = 0;  ///< bytes per second
  double left = 0;  ///< bytes, at `since`
  double rate = 0;  ///< bytes per second since then
  Nanos since{};
  Nanos end{};  ///< at that rate
};

class Bus {
 public:
  explicit Bus(double bytes_per_second) : speed_(bytes_per_second) {}

  void join(StreamId stream, double link, Bytes bytes, Nanos now) {
    transfers_.push_back({stream, link, static_cast<double>(bytes), 0, now, now});
    share(now);
  }
  [[nodiscard]] Nanos next_end() const {
    Nanos next = kNotYet;
    for (const Transfer& t : transfers_) next = std::min(next, t.end);
    return next;
  }
  /// Takes off those that end now, and returns their streams.
  std::vector<StreamId> leave(Nanos now) {
    std::vector<StreamId> done;
    std::erase_if(transfers_, [&](const Transfer& t) {
      if (t.end == now) done.push_back(t.stream);
      return t.end == now;
    });
    if (!done.empty()) share(now);
    return done;
  }

 private:
  /// What goes on at the rate it had keeps its end: no rounding adds up.
  void share(Nanos now) {
    for (Transfer& t : transfers_) {
      const double rate = std::min(t.link, speed_ / static_cast<double>(transfers_.size()));
      if (rate == t.rate) continue;
      t.left = std::max(0.0, t.left - t.rate * to_seconds(now - t.since));
      t.rate = rate;
      t.since = now;
      const double nanos = t.left * 1e9 / rate;
      t.end = now + Nanos{static_cast<Nanos::rep>(std::ceil(nanos - kRounding))};
    }
  }

  double speed_;
  std::vector<Transfer> transfers_;
};

/// The streams of a plan, each at its next instruction.
class Streams {
 public:
  Streams(const Program& program, const Plan& plan, const Machine& machine, int iterations,
          const Guards& guards)
      : plan_(plan), machine_(machine), timed_(program, plan, machine), iterations_(iterations) {
    for (const double speed : machine.buses) buses_.emplace_back(speed);
    lists_.resize(plan.streams.size());
    next_.assign(plan.streams.size(), {});
    for (std::size_t i = 0; i < timed_.entries.size(); ++i) {
      lists_[at(timed_.entries[i].stream)].push_back(static_cast<std::int32_t>(i));
    }
    const Span never{kNotYet, kNotYet};
    spans_.assign(at(iterations), std::vector<Span>(timed_.entries.size(), never));
    for (int i = 0; i < iterations; ++i) guards_.push_back(guards ? guards(i) : ~0U);
  }

  std::vector<std::vector<Span>> run() {
    start_what_can();
    for (Nanos next = next_event(); next != kNotYet; next = next_event()) {
      now_ = next;
      for (Bus& bus : buses_) {
        for (const StreamId s : bus.leave(now_)) end(s);
      }
      while (!events_.empty() && events_.top().time == now_) {
        const Event event = events_.top();
        events_.pop();
        event.joins_bus ? join_bus(event.stream) : end(event.stream);
      }
      start_what_can();
    }
    return std::move(spans_);
  }

 private:
  struct Position {
    int iteration = 0;
    std::size_t place = 0;  ///< in the stream's list
    bool running = false;
  };
  struct Event {
    Nanos time{};
    StreamId stream = 0;
    bool joins_bus = false;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : stream > other.stream;
    }
  };

  [[nodiscard]] Nanos next_event() const {
    Nanos next = events_.empty() ? kNotYet : events_.top().time;
    for (const Bus& bus : buses_) next = std::min(next, bus.next_end());
    return next;
  }

  [[nodiscard]] std::int32_t index_of(StreamId s) const {
    return lists_[at(s)][next_[at(s)].place];
  }
  [[nodiscard]] Span& span_of(StreamId s) {
    return spans_[at(next_[at(s)].iteration)][at(index_of(s))];
  }

  [[nodiscard]] bool may_start(StreamId s) const {
    const Position& p = next_[at(s)];
    if (p.running || lists_[at(s)].empty() || p.iteration >= iterations_) return false;
    const std::int32_t i = index_of(s);
    const std::int32_t begin = i == 0 ? 0 : timed_.entries[at(i) - 1].waits_end;
    for (std::int32_t w = begin; w < timed_.entries[at(i)].waits_end; ++w) {
      const Wait& wait = timed_.waits[at(w)];
      const int iteration = p.iteration + wait.iteration;
      if (iteration >= 0 && spans_[at(iteration)][at(wait.index)].end == kNotYet) return false;
    }
    return true;
  }

  /// What takes no time may let others start.
  void start_what_can() {
    for (bool changed = true; changed;) {
      changed = false;
      for (StreamId s = 0; s < std::ssize(plan_.streams); ++s) {
        while (may_start(s)) {
          start(s);
          changed = true;
        }
      }
    }
  }

  void start(StreamId s) {
    const std::int32_t i = index_of(s);
    const TimedSchedule::Entry& x = timed_.entries[at(i)];
    Position& p = next_[at(s)];
    p.running = true;
    span_of(s).start = now_;
    const bool skipped = x.guard != kNone && (guards_[at(p.iteration)] >> x.guard & 1U) == 0;
    if (skipped) return end(s);
    if (const Link* link = link_of(i); link != nullptr && link->bus != kNone) {
      if (link->speed.latency == Nanos{0}) return join_bus(s);
      events_.push({now_ + link->speed.latency, s, true});
    } else if (x.duration == Nanos{0}) {
      end(s);
    } else {
      events_.push({now_ + x.duration, s, false});
    }
  }

  [[nodiscard]] const Link* link_of(std::int32_t i) const {
    const Instruction& x = plan_.steady.instructions[at(i)];
    if (x.kind != InstructionKind::copy) return nullptr;
    return machine_.find_link(plan_.placements[at(x.from)].space, plan_.placements[at(x.to)].space);
  }

  void join_bus(StreamId s) {
    const std::int32_t i = index_of(s);
    const Link& link = *link_of(i);
    buses_[at(link.bus)].join(s, link.speed.bytes_per_second,
                              plan_.steady.instructions[at(i)].bytes, now_);
  }

  void end(StreamId s) {
    span_of(s).end = now_;
    Position& p = next_[at(s)];
    p.running = false;
    if (++p.place < lists_[at(s)].size()) return;
    p.place = 0;
    ++p.iteration;
  }

  const Plan& plan_;
  const Machine& machine_;
  TimedSchedule timed_;
  int iterations_;
  std::vector<std::uint32_t> guards_;
  std::vector<Bus> buses_;
  std::vector<std::vector<std::int32_t>> lists_;  ///< per stream: its instructions
  std::vector<Position> next_;                    ///< per stream
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::vector<Span>> spans_;
  Nanos now_{};
};

}  // namespace

Simulation simulate_on_buses(const Program& program, const Plan& plan, const Machine& machine,
                             int iterations, const Guards& guards) {
  Simulation result;
  result.iterations = Streams(program, plan, machine, iterations, guards).run();
  for (const std::vector<Span>& spans : result.iterations) {
    Nanos end{0};
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const StreamId stream = plan.steady.instructions[i].stream;
      if (plan.streams[at(stream)].kind == StreamKind::compute) end = std::max(end, spans[i].end);
    }
    result.iteration_end.push_back(end);
  }
  const std::size_t n = result.iteration_end.size();
  if (n >= 1) result.iteration_time = result.iteration_end[n - 1];
  if (n >= 2) result.iteration_time -= result.iteration_end[n - 2];
  return result;
}

LongRun long_run_on_buses(const Program& program, const Plan& plan, const Machine& machine) {
  constexpr int kIterations = 12;
  constexpr int kLast = 4;
  const Simulation run = simulate_on_buses(program, plan, machine, kIterations);
  const auto& ends = run.iteration_end;
  LongRun result;
  result.iterations = kIterations;
  result.iteration_time = (ends[kIterations - 1] - ends[kIterations - 1 - kLast]) / kLast;
  result.steady = true;
  for (std::size_t i = kIterations - kLast; i < kIterations; ++i) {
    const Nanos off = ends[i] - ends[i - 1] - result.iteration_time;
    result.steady = result.steady && std::abs(off.count()) <= 1000;
  }
  result.after = kIterations - 1 - kLast;
  return result;
}

}  // namespace tidepool
