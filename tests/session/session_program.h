// Programs that allocate, compute and free like a training written by hand, through a Session or on
// plain memory: the same calls, so that all values can be compared bit for bit.
#pragma once

#include <gmock/gmock.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/at.h"
#include "base/random.h"
#include "cost/spill.h"
#include "device/cpu/cpu_device.h"
#include "session/session.h"

namespace tidepool::testing {

/// What programs here call.
class Blocks {
 public:
  using Id = std::uint64_t;
  struct Uses {
    std::vector<Id> reads{}, writes{}, updates{};
    bool pure = false;
  };
  virtual ~Blocks() = default;
  virtual Id malloc(Bytes bytes) = 0;
  virtual void free(Id block) = 0;
  virtual void run(const std::string& op, const Uses& uses, const Session::Function& function) = 0;
  virtual Bytes bytes(Id block) = 0;
  /// Words that depend on the name, on every word that is read and, of updates, on what was there.
  void mix(const std::string& op, const Uses& uses) {
    std::vector<Bytes> sizes;
    for (const auto* list : {&uses.reads, &uses.writes, &uses.updates}) {
      for (const Id block : *list) sizes.push_back(bytes(block));
    }
    const std::size_t reads = uses.reads.size(), writes = uses.writes.size();
    run(op, uses, [=](std::span<std::byte* const> p) { mix_words(op, reads, writes, sizes, p); });
  }
  std::uint64_t sum(Id block) {
    std::uint64_t sum = 0;
    const Bytes size = bytes(block);
    run("sum", {.reads = {block}}, [&](std::span<std::byte* const> p) {
      for (Bytes i = 0; i + 8 <= size; i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, p[0] + i, 8);
        sum = hash_combine(sum, word);
      }
    });
    return sum;
  }

 private:
  static void mix_words(const std::string& op, std::size_t reads, std::size_t writes,
                        const std::vector<Bytes>& sizes, std::span<std::byte* const> p) {
    std::uint64_t seed = op.size();
    for (const char c : op) seed = seed * 31 + static_cast<unsigned char>(c);
    for (std::size_t k = 0; k < reads; ++k) {
      for (Bytes i = 0; i + 8 <= sizes[k]; i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, p[k] + i, 8);
        seed = seed * 0x9E3779B97F4A7C15U + word;
      }
    }
    for (std::size_t k = reads; k < sizes.size(); ++k) {
      for (Bytes i = 0; i + 8 <= sizes[k]; i += 8) {
        std::uint64_t word = 0;
        if (k >= reads + writes) std::memcpy(&word, p[k] + i, 8);
        word = word * 0x2545F4914F6CDD1DU + seed + static_cast<std::uint64_t>(i);
        std::memcpy(p[k] + i, &word, 8);
      }
    }
  }
};

class PlainBlocks final : public Blocks {
 public:
  Id malloc(Bytes bytes) override {
    blocks_[++last_].resize(static_cast<std::size_t>(bytes));
    return last_;
  }
  void free(Id block) override { blocks_.erase(block); }
  Bytes bytes(Id block) override { return static_cast<Bytes>(blocks_.at(block).size()); }
  void run(const std::string&, const Uses& uses, const Session::Function& function) override {
    std::vector<std::byte*> pointers;
    for (const auto* list : {&uses.reads, &uses.writes, &uses.updates}) {
      for (const Id block : *list) pointers.push_back(blocks_.at(block).data());
    }
    function(pointers);
  }

 private:
  std::map<Id, std::vector<std::byte>> blocks_;
  Id last_ = 0;
};

class SessionBlocks : public Blocks {
 public:
  explicit SessionBlocks(Session& session) : session_(session) {}
  static Id id(BlockHandle h) { return h.id(); }
  static BlockHandle handle(Id id) { return BlockHandle::of(id); }
  Id malloc(Bytes bytes) override { return id(session_.malloc(bytes)); }
  void free(Id block) override { session_.free(handle(block)); }
  Bytes bytes(Id block) override { return session_.bytes(handle(block)); }
  void run(const std::string& op, const Uses& uses, const Session::Function& function) override {
    std::vector<Session::Use> list;
    for (const Id block : uses.reads) list.push_back({handle(block), BlockUse::read});
    for (const Id block : uses.writes) list.push_back({handle(block), BlockUse::write});
    for (const Id block : uses.updates) list.push_back({handle(block), BlockUse::update});
    if (uses.pure || op.size() % 2 == 1) return session_.exec(op, list, uses.pure, function);
    const auto pointers = session_.begin(op, list);
    try {
      function(pointers);
    } catch (...) {
      session_.end();
      throw;
    }
    session_.end();
  }

 private:
  Session& session_;
};

/// A training of some layers: forwards, backwards, updates; each a call or two.
struct TrainingShape {
  int layers = 6;
  Bytes activation = 64 * kKiB;
  Bytes weight = 24 * kKiB;
  int rounds = 1;            ///< before weights are updated
  bool pure = false;         ///< ops of the forward pass
  bool writes_only = false;  ///< blocks that stay are written twice an iteration and never read
  bool keeps_state = false;  ///< a state is replaced in every iteration
};

class HandTraining {
 public:
  HandTraining(Blocks& blocks, TrainingShape shape) : b_(blocks), s_(shape) {
    for (int i = 0; i < s_.layers; ++i) {
      weights_.push_back(b_.malloc(s_.weight));
      b_.mix("init" + std::to_string(i), {.writes = {weights_.back()}});
      if (s_.rounds > 1) {
        gradients_.push_back(b_.malloc(s_.weight));
        b_.mix("zero", {.writes = {gradients_.back()}});
      }
    }
    for (int i = 0; s_.writes_only && i < 2; ++i) {
      results_.push_back(b_.malloc(s_.weight));
      b_.mix("no result", {.writes = {results_.back()}});
    }
    if (s_.keeps_state) {
      state_ = b_.malloc(s_.activation);
      b_.mix("first state", {.writes = {state_}});
    }
  }

  /// `scale`: of activations, in percent; `skip`: a layer that is left out, or -1.
  void iteration(int scale = 100, int skip = -1) {
    for (int round = 0; round < s_.rounds; ++round) this->round(scale, skip);
    if (s_.rounds > 1) {
      for (int i = 0; i < s_.layers; ++i) {
        b_.mix("update", {.reads = {gradients_[at(i)]}, .updates = {weights_[at(i)]}});
        b_.mix("zero", {.writes = {gradients_[at(i)]}});
      }
    }
    ++iterations_;
  }

  /// An op throws; the program goes on without what came behind it.
  void failing_iteration(int layer) {
    const Blocks::Id x = b_.malloc(s_.activation);
    b_.mix("feed", {.writes = {x}});
    try {
      b_.run("forward" + std::to_string(layer), {.updates = {x}},
             [](auto) { throw std::runtime_error("the program's own"); });
    } catch (const std::runtime_error&) {
    }
    b_.free(x);
  }

  std::vector<std::uint64_t> sums() {
    std::vector<std::uint64_t> all;
    for (const auto w : weights_) all.push_back(b_.sum(w));
    for (const auto result : results_) all.push_back(b_.sum(result));
    if (s_.keeps_state) all.push_back(b_.sum(state_));
    return all;
  }

 private:
  void round(int scale, int skip) {
    const Bytes bytes = s_.activation * scale / 100;
    std::vector<Blocks::Id> x{b_.malloc(bytes)};
    b_.mix("feed", {.writes = {x[0]}});
    for (int i = 0; i < s_.layers; ++i) {
      if (i == skip) continue;
      x.push_back(b_.malloc(bytes));
      b_.mix("forward" + std::to_string(i),
             {.reads = {x[x.size() - 2], weights_[at(i)]}, .writes = {x.back()}, .pure = s_.pure});
    }
    if (s_.keeps_state) {
      const auto next = b_.malloc(s_.activation);
      b_.mix("state", {.reads = {state_, x.back()}, .writes = {next}});
      b_.free(state_);
      state_ = next;
    }
    for (const auto result : results_) b_.mix("result", {.reads = {x[0]}, .writes = {result}});
    Blocks::Id dy = b_.malloc(bytes);
    b_.mix("loss", {.reads = {x.back()}, .writes = {dy}});
    for (int i = s_.layers - 1; i >= 0; --i) {
      if (i == skip) continue;
      const auto dx = b_.malloc(bytes);
      b_.mix("backward", {.reads = {dy, x.back(), weights_[at(i)]}, .writes = {dx}});
      b_.free(x.back());
      x.pop_back();
      if (s_.rounds > 1) {
        b_.mix("gradient", {.reads = {dy, x.back()}, .updates = {gradients_[at(i)]}});
      } else {
        b_.mix("step", {.reads = {dy, x.back()}, .updates = {weights_[at(i)]}});
      }
      b_.free(dy);
      dy = dx;
    }
    for (const auto result : results_) b_.mix("again", {.reads = {dy}, .writes = {result}});
    b_.free(dy);
    b_.free(x[0]);
  }

  Blocks& b_;
  TrainingShape s_;
  std::vector<Blocks::Id> weights_, gradients_, results_;
  Blocks::Id state_ = 0;
  int iterations_ = 0;
};

/// Bytes that are live at most, addresses not counted.
inline Bytes peak_of(const TrainingShape& s) {
  return s.layers * s.weight * (s.rounds > 1 ? 2 : 1) + (s.layers + 3) * s.activation;
}

inline SessionSpec session_spec(Bytes budget, const std::string& folder = {}) {
  CpuDeviceOptions options;
  options.threads = 1;
  options.to_host = {20e9, Nanos{2000}};
  options.to_device = {20e9, Nanos{2000}};
  SessionSpec spec;
  spec.machine.name = "test";
  spec.machine.set_links({20e9, Nanos{2000}}, {20e9, Nanos{2000}});
  if (!folder.empty()) {
    options.spill = SpillOptions{.folder = folder};
    SpillLink link;
    link.write = {1e9, Nanos{50'000}};
    link.read = {1e9, Nanos{50'000}};
    link.memory = {20e9, Nanos{2000}};
    spec.machine = with_spill(spec.machine, link);
  }
  spec.device = std::make_unique<CpuDevice>(options);
  spec.budget = budget;
  spec.away_bytes = 8 * kMiB;
  spec.planner.evaluations = 200;
  return spec;
}

}  // namespace tidepool::testing
