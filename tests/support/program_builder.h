// ProgramBuilder: small programs written by hand, for tests with expected numbers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cost/machine.h"
#include "ir/program.h"

namespace tidepool::testing {

class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name = "by hand") {
    program_.name = std::move(name);
    program_.batch = program_.sub_batch = 1;
  }

  TensorId tensor(std::string name, Bytes bytes, bool persistent = false) {
    const TensorKind kind = persistent ? TensorKind::weight : TensorKind::activation;
    program_.tensors.push_back({std::move(name), bytes, kind, persistent});
    return static_cast<TensorId>(program_.tensors.size()) - 1;
  }

  OpId device(std::string name, std::vector<Access> accesses, Nanos time, Bytes workspace = 0) {
    return op(std::move(name), std::move(accesses), time, workspace, OpPlace::device);
  }

  OpId host(std::string name, std::vector<Access> accesses, Nanos time = Nanos{0}) {
    return op(std::move(name), std::move(accesses), time, 0, OpPlace::host);
  }

  /// The last op.
  Op& last() { return program_.ops.back(); }

  [[nodiscard]] Program build() const { return program_; }

 private:
  OpId op(std::string name, std::vector<Access> accesses, Nanos time, Bytes workspace,
          OpPlace place) {
    Op o;
    o.name = std::move(name);
    o.kind = "test";
    o.place = place;
    o.accesses = std::move(accesses);
    o.algorithms.push_back({"only", time, workspace, true});
    for (const Access& a : o.accesses) {
      const Tensor& t = program_.tensors[static_cast<std::size_t>(a.tensor)];
      if (a.mode != AccessMode::read && t.persistent) o.recomputable = false;
    }
    if (place == OpPlace::host) {
      o.recomputable = false;
      o.random = true;
    }
    program_.ops.push_back(std::move(o));
    return static_cast<OpId>(program_.ops.size()) - 1;
  }

  Program program_;
};

/// One byte a nanosecond each way, no latency.
inline Machine byte_a_nanosecond(Bytes alignment = 1) {
  Machine m;
  m.name = "one byte a nanosecond";
  m.set_alignment(alignment);
  m.to_host() = {1e9, Nanos{0}};
  m.to_device() = {1e9, Nanos{0}};
  return m;
}

/// A training iteration in miniature: feed, forward, loss, backward, update, collect. One weight.
inline Program tiny_training() {
  using enum AccessMode;
  ProgramBuilder b("tiny training");
  const TensorId input = b.tensor("input", 256);
  const TensorId weight = b.tensor("weight", 512, true);
  const TensorId hidden = b.tensor("hidden", 1024);
  const TensorId output = b.tensor("output", 512);
  const TensorId gradient = b.tensor("gradient", 512);
  b.host("feed", {{input, write}});
  b.device("forward", {{input, read}, {weight, read}, {hidden, write}}, Nanos{1000});
  b.device("head", {{hidden, read}, {output, write}}, Nanos{1000}, 2048);
  b.device("backward", {{output, read}, {hidden, read}, {gradient, write}}, Nanos{1000});
  b.device("update", {{gradient, read}, {weight, update}}, Nanos{1000});
  b.host("collect", {{output, read}});
  return b.build();
}

}  // namespace tidepool::testing
