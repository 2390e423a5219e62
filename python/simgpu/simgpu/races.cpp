#include "races.h"

#include <algorithm>
#include <sstream>

namespace sim {
namespace {

constexpr size_t kMostFound = 1000;

std::string called(int who) { return who == kHost ? "the host" : "stream " + std::to_string(who); }

}  // namespace

void Clock::join(const Clock& other) {
  for (int i = 0; i < kMostStreams; ++i) at[i] = std::max(at[i], other.at[i]);
}

void Races::look(int who, const Clock& clock, const std::string& name, const Range& range) {
  if (!looks || range.end <= range.begin) return;
  const std::string* kept_name = &*names_.insert(name).first;
  const uint64_t now = clock.at[who];
  for (uintptr_t g = range.begin / kGrain; g <= (range.end - 1) / kGrain; ++g) {
    Last& last = last_[g];
    if (last.writer >= 0 && last.writer != who && clock.at[last.writer] < last.written) {
      report(range.write ? "writes" : "reads", who, name, "written", last.writer, *last.writer_name,
             g);
    }
    if (!range.write) {
      last.read[who] = now;
      last.reader_name[who] = kept_name;
      continue;
    }
    for (int s = 0; s < kMostStreams; ++s) {
      if (s != who && last.read[s] > clock.at[s]) {
        report("writes", who, name, "read", s, *last.reader_name[s], g);
      }
    }
    last = Last{};
    last.writer = who;
    last.written = now;
    last.writer_name = kept_name;
  }
}

void Races::report(const char* does, int who, const std::string& name, const char* done, int other,
                   const std::string& other_name, uintptr_t grain) {
  std::ostringstream text;
  text << name << " on " << called(who) << " " << does << " what " << other_name << " on "
       << called(other) << " has " << done << ", without waiting for it (0x" << std::hex
       << grain * kGrain << ")";
  if (found_.empty() || found_.back() != text.str()) add(text.str());
}

void Races::add(std::string text) {
  if (found_.size() < kMostFound) found_.push_back(std::move(text));
}

std::vector<std::string> Races::take() {
  std::vector<std::string> found;
  found.swap(found_);
  return found;
}

}  // namespace sim
