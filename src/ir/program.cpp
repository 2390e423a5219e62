#include "ir/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/at.h"

namespace tidepool {
namespace {

Result<void> validate_names(const Program& program) {
  std::unordered_set<std::string> names;
  for (const Tensor& t : program.tensors) {
    if (t.name.empty() || !names.insert(t.name).second) {
      return fail(ErrorCode::bad_input,
                  fmt::format("tensor name '{}' is empty or used twice", t.name));
    }
    if (t.bytes <= 0 || t.bytes > kMostTensorBytes) {
      return fail(ErrorCode::bad_input,
                  fmt::format("tensor '{}' has {} bytes; at least 1, at most {}", t.name, t.bytes,
                              kMostTensorBytes));
    }
  }
  names.clear();
  for (const Op& op : program.ops) {
    if (op.name.empty() || !names.insert(op.name).second) {
      return fail(ErrorCode::bad_input,
                  fmt::format("op name '{}' is empty or used twice", op.name));
    }
  }
  return {};
}

/// `seen[t]`: last op that accessed t (to find doubles); `written[t]`: t holds a value.
Result<void> validate_op(const Program& program, OpId id, std::vector<OpId>& seen,
                         std::vector<char>& written) {
  const Op& op = program.ops[static_cast<std::size_t>(id)];
  const auto bad = [&](std::string_view what) {
    return fail(ErrorCode::bad_input, fmt::format("op '{}': {}", op.name, what));
  };
  if (op.algorithms.empty()) return bad("has no algorithm");
  if (op.round < kNone || op.round >= program.rounds()) {
    return bad(fmt::format("belongs to round {} of {}", op.round, program.rounds()));
  }
  if (op.guard < kNone || op.guard >= kMostGuards) {
    return bad(fmt::format("has guard {}, they go from 0 to {}", op.guard, kMostGuards - 1));
  }
  if (op.device < 0 || op.device >= kMostDevices || (op.place == OpPlace::host && op.device != 0)) {
    return bad(fmt::format("runs on device {}; there are at most {}, and host ops have none",
                           op.device, kMostDevices));
  }
  if (op.layer < kNone || op.layer >= std::ssize(program.layers)) {
    return bad(fmt::format("belongs to layer {} of {}", op.layer, program.layers.size()));
  }
  for (const Algorithm& a : op.algorithms) {
    if (a.workspace < 0 || a.time < Nanos{0}) return bad("negative workspace or time");
    if (op.place == OpPlace::host && a.workspace > 0) return bad("host ops have no workspace");
  }
  bool changes_persistent = false;
  for (const Access& access : op.accesses) {
    if (access.tensor < 0 || static_cast<std::size_t>(access.tensor) >= program.tensors.size()) {
      return bad(fmt::format("accesses tensor {} of {}", access.tensor, program.tensors.size()));
    }
    const auto t = static_cast<std::size_t>(access.tensor);
    const Tensor& tensor = program.tensors[t];
    if (seen[t] == id) return bad(fmt::format("accesses tensor '{}' twice", tensor.name));
    seen[t] = id;
    if (access.mode != AccessMode::write && !written[t] && !tensor.persistent) {
      return bad(fmt::format("reads tensor '{}' before anything wrote it", tensor.name));
    }
    if (access.mode != AccessMode::read) {
      written[t] = 1;
      if (tensor.persistent) changes_persistent = true;
    }
  }
  if (changes_persistent && op.recomputable)
    return bad("updates persistent state, so it cannot be recomputable");
  return {};
}

/// Sums over an iteration can be counted.
Result<void> validate_sums(const Program& program) {
  Bytes bytes = 0;
  Nanos time{0};
  for (const Op& op : program.ops) {
    for (const Access& a : op.accesses) {
      bytes += program.tensors[static_cast<std::size_t>(a.tensor)].bytes;
      if (bytes > kMostAccessedBytes) {
        return fail(ErrorCode::bad_input,
                    fmt::format("op '{}', tensor '{}': with its bytes an iteration accesses more "
                                "than {} B, the most that can be counted",
                                op.name, program.tensors[static_cast<std::size_t>(a.tensor)].name,
                                kMostAccessedBytes));
      }
    }
    Nanos longest{0};
    Bytes workspace = 0;
    for (const Algorithm& a : op.algorithms) {
      longest = std::max(longest, a.time);
      workspace = std::max(workspace, a.workspace);
    }
    if (workspace > kMostTensorBytes) {
      return fail(ErrorCode::bad_input, fmt::format("op '{}': a workspace of {} B; at most {}",
                                                    op.name, workspace, kMostTensorBytes));
    }
    if (longest > kMostIterationTime - time) {
      return fail(ErrorCode::bad_input,
                  fmt::format("op '{}': with its {} ns the ops of an iteration take longer than {} "
                              "ns, the most that can be counted",
                              op.name, longest.count(), kMostIterationTime.count()));
    }
    time += longest;
  }
  return {};
}

Result<void> validate_rounds(const Program& program) {
  std::int32_t round = 0;
  for (const Op& op : program.ops) {
    if (op.round == kNone) continue;
    if (op.round < round) {
      return fail(ErrorCode::bad_input, fmt::format("op '{}' of round {} comes after round {}",
                                                    op.name, op.round, round));
    }
    round = op.round;
  }
  return {};
}

/// See Note [Guards].
Result<void> validate_guards(const Program& program) {
  // Per tensor: the guard under which its value was written, if any.
  std::vector<std::int32_t> written_under(program.tensors.size(), kNone);
  for (const Op& op : program.ops) {
    for (const Access& a : op.accesses) {
      const Tensor& tensor = program.tensors[static_cast<std::size_t>(a.tensor)];
      std::int32_t& guard = written_under[static_cast<std::size_t>(a.tensor)];
      if (a.mode == AccessMode::write) {
        if (op.guard != kNone && tensor.persistent) {
          return fail(ErrorCode::bad_input,
                      fmt::format("op '{}': has a guard and overwrites persistent tensor '{}'; an "
                                  "op that may be skipped updates it",
                                  op.name, tensor.name));
        }
        guard = op.guard;
      } else if (guard != kNone && guard != op.guard) {
        return fail(ErrorCode::bad_input,
                    fmt::format("op '{}': uses tensor '{}', which is not written when guard {} is "
                                "off",
                                op.name, tensor.name, guard));
      }
    }
  }
  return {};
}

/// See Note [Home].
Result<void> validate_homes(const Program& program) {
  std::vector<char> on_device(program.tensors.size(), 0);
  for (const Op& op : program.ops) {
    if (op.place != OpPlace::device) continue;
    for (const Access& a : op.accesses) on_device[at(a.tensor)] = 1;
  }
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const Tensor& tensor = program.tensors[t];
    if (tensor.home == Home::anywhere) continue;
    if (!tensor.persistent) {
      return fail(ErrorCode::bad_input,
                  fmt::format("tensor '{}': its home is the device, and it is not persistent: only "
                              "persistent tensors lie somewhere between iterations",
                              tensor.name));
    }
    if (on_device[t] == 0) {
      return fail(ErrorCode::bad_input,
                  fmt::format("tensor '{}': its home is the device, and only host ops access it; a "
                              "device op has to",
                              tensor.name));
    }
  }
  return {};
}

/// Tensors that are pinned, or stay taken after their last access.
Result<void> validate_stays(const Program& program) {
  std::vector<OpId> last(program.tensors.size(), kNone);
  for (OpId id = 0; id < static_cast<OpId>(program.ops.size()); ++id) {
    const Op& op = program.ops[static_cast<std::size_t>(id)];
    for (const Access& a : op.accesses) {
      const auto t = static_cast<std::size_t>(a.tensor);
      const Tensor& tensor = program.tensors[t];
      const Op& before = program.ops[static_cast<std::size_t>(last[t] == kNone ? id : last[t])];
      if (tensor.pinned && (before.place != op.place || before.device != op.device)) {
        return fail(ErrorCode::bad_input,
                    fmt::format("op '{}': accesses pinned tensor '{}' elsewhere than op '{}'",
                                op.name, tensor.name, before.name));
      }
      last[t] = id;
    }
  }
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const Tensor& tensor = program.tensors[t];
    if (tensor.released_at == kNone) continue;
    if (tensor.persistent) {
      return fail(ErrorCode::bad_input,
                  fmt::format("tensor '{}': is persistent and released at an op", tensor.name));
    }
    if (tensor.released_at <= last[t] || tensor.released_at >= std::ssize(program.ops)) {
      return fail(ErrorCode::bad_input,
                  fmt::format("tensor '{}': is released at op {}, which is not behind its last "
                              "access by op {} of {}",
                              tensor.name, tensor.released_at, last[t], program.ops.size()));
    }
    const Op& user = program.ops[static_cast<std::size_t>(last[t])];
    const Op& releaser = program.ops[static_cast<std::size_t>(tensor.released_at)];
    if (user.place != releaser.place || user.device != releaser.device) {
      return fail(ErrorCode::bad_input,
                  fmt::format("tensor '{}': is released at op '{}', which runs elsewhere than op "
                              "'{}', the last that accesses it",
                              tensor.name, releaser.name, user.name));
    }
  }
  return {};
}

/// Of those that repeat their bits the best that was measured, see `Algorithm::time`.
template <class Better>
int best_algorithm(const Op& op, Better better) {
  const auto comes_first = [&](const Algorithm& a, const Algorithm& b) {
    if (a.deterministic != b.deterministic) return a.deterministic;
    if (is_measured(a, op) != is_measured(b, op)) return is_measured(a, op);
    return better(a, b);
  };
  int best = 0;
  for (int i = 1; i < static_cast<int>(op.algorithms.size()); ++i) {
    if (comes_first(op.algorithms[static_cast<std::size_t>(i)],
                    op.algorithms[static_cast<std::size_t>(best)])) {
      best = i;
    }
  }
  return best;
}

}  // namespace

Result<void> validate(const Program& program) {
  if (program.ops.empty()) return fail(ErrorCode::bad_input, "the program has no ops");
  if (program.sub_batch < 1 || program.sub_batch > program.batch) {
    return fail(ErrorCode::bad_input, fmt::format("rounds of {} samples do not split a batch of {}",
                                                  program.sub_batch, program.batch));
  }
  if (auto names = validate_names(program); !names) return names;
  std::vector<OpId> seen(program.tensors.size(), kNone);
  std::vector<char> written(program.tensors.size(), 0);
  for (OpId id = 0; id < static_cast<OpId>(program.ops.size()); ++id) {
    if (auto op = validate_op(program, id, seen, written); !op) return op;
  }
  if (auto sums = validate_sums(program); !sums) return sums;
  if (auto rounds = validate_rounds(program); !rounds) return rounds;
  if (auto guards = validate_guards(program); !guards) return guards;
  for (std::size_t t = 0; t < seen.size(); ++t) {
    if (seen[t] == kNone) {
      return fail(ErrorCode::bad_input,
                  fmt::format("tensor '{}' is never accessed", program.tensors[t].name));
    }
  }
  if (auto homes = validate_homes(program); !homes) return homes;
  return validate_stays(program);
}

bool on_one_device(const Program& program) {
  return std::ranges::all_of(program.ops, [](const Op& op) { return op.device == 0; });
}

bool is_measured(const Algorithm& algorithm, const Op& op) {
  return algorithm.time > Nanos{0} ||
         std::ranges::none_of(op.algorithms, [&algorithm](const Algorithm& a) {
           return a.deterministic == algorithm.deterministic && a.time > Nanos{0};
         });
}

int least_workspace_algorithm(const Op& op) {
  return best_algorithm(op, [](const Algorithm& a, const Algorithm& b) {
    return a.workspace != b.workspace ? a.workspace < b.workspace : a.time < b.time;
  });
}

void limit_workspaces(Program& program, Bytes most) {
  for (Op& op : program.ops) {
    const Bytes least = op.algorithms[at(least_workspace_algorithm(op))].workspace;
    std::erase_if(op.algorithms,
                  [&](const Algorithm& a) { return a.workspace > std::max(most, least); });
  }
}

int fastest_algorithm(const Op& op) {
  return best_algorithm(op, [](const Algorithm& a, const Algorithm& b) {
    return a.time != b.time ? a.time < b.time : a.workspace < b.workspace;
  });
}

const char* to_string(TensorKind kind) {
  switch (kind) {
    case TensorKind::input:
      return "input";
    case TensorKind::weight:
      return "weight";
    case TensorKind::optimizer_state:
      return "optimizer_state";
    case TensorKind::activation:
      return "activation";
    case TensorKind::gradient:
      return "gradient";
    case TensorKind::workspace:
      return "workspace";
  }
  return "?";
}

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::update:
      return "update";
    case Phase::other:
      return "other";
  }
  return "?";
}

const char* to_string(AccessMode mode) {
  switch (mode) {
    case AccessMode::read:
      return "read";
    case AccessMode::write:
      return "write";
    case AccessMode::update:
      return "update";
  }
  return "?";
}

}  // namespace tidepool
