#include "bound/absences.h"

#include <algorithm>

#include "base/at.h"
#include "bound/constants.h"

namespace tidepool {
namespace {

/// The absences of one tensor.
class Writer {
 public:
  Writer(const Program& program, const AccessIndex& index, const Constants& constants,
         std::vector<Absence>& all)
      : program_(program), index_(index), constants_(constants), all_(all) {}

  void write(TensorId t) {
    if (program_.tensors[at(t)].pinned) return;  // it never leaves
    tensor_ = t;
    accesses_ = index_.accesses(t);
    producers_.assign(1, kNone);
    for (const TensorAccess& a : accesses_) {
      if (a.version_written != kNone) producers_.push_back(a.op);
    }
    const std::size_t begin = all_.size();
    std::size_t first = accesses_.size();  // device accesses
    std::size_t last = accesses_.size();
    for (std::size_t i = 0; i < accesses_.size(); ++i) {
      if (!on_device(i)) continue;
      if (last < accesses_.size()) {
        add(last, i, false);
      } else {
        first = i;
      }
      last = i;
    }
    const bool wraps = last < accesses_.size() && program_.tensors[at(t)].persistent;
    if (wraps && !stays_home(first, last)) add(last, first, true);
    link(begin);
    add_uploads();
  }

 private:
  [[nodiscard]] bool on_device(std::size_t access) const {
    return program_.ops[at(accesses_[access].op)].place == OpPlace::device;
  }
  /// Over the iteration's end, from its last access to its first one. See Note [Home] of programs.
  [[nodiscard]] bool stays_home(std::size_t first, std::size_t last) const {
    return program_.tensors[at(tensor_)].home == Home::device && first == 0 &&
           last + 1 == accesses_.size();
  }
  /// The host made the value that this access reads behind the device access in front of it.
  [[nodiscard]] bool is_upload(std::size_t access, std::size_t last) const {
    const std::int32_t version = accesses_[access].version_read;
    if (version == kNone || version == 0 || constants_.is_constant(tensor_, version)) return false;
    const auto made = std::find_if(accesses_.begin(), accesses_.end(), [version](const auto& a) {
      return a.version_written == version;
    });
    const auto i = static_cast<std::size_t>(made - accesses_.begin());
    return !on_device(i) && (last == accesses_.size() || last < i);
  }
  void add_uploads() {
    std::size_t last = accesses_.size();
    for (std::size_t i = 0; i < accesses_.size(); ++i) {
      if (!on_device(i)) continue;
      if (is_upload(i, last)) {
        Absence a;
        a.tensor = tensor_;
        a.from = a.to = accesses_[i].op;
        a.wraps = a.host_has_it = a.upload = true;
        all_.push_back(a);
      }
      last = i;
    }
  }
  [[nodiscard]] std::int32_t last_version() const {
    return static_cast<std::int32_t>(producers_.size()) - 1;
  }
  /// The value that the next iteration starts with has two numbers.
  [[nodiscard]] bool same_value(std::int32_t a, std::int32_t b) const {
    const auto number = [&](std::int32_t v) {
      return program_.tensors[at(tensor_)].persistent && v == 0 ? last_version() : v;
    };
    return number(a) == number(b);
  }

  /// A host op reads or writes the value.
  [[nodiscard]] bool used_by_host(std::int32_t version) const {
    for (std::size_t i = 0; i < accesses_.size(); ++i) {
      if (on_device(i)) continue;
      for (const std::int32_t v : {accesses_[i].version_read, accesses_[i].version_written}) {
        if (v != kNone && same_value(v, version)) return true;
      }
    }
    return false;
  }

  void add(std::size_t from, std::size_t to, bool wraps) {
    Absence a;
    a.tensor = tensor_;
    a.from = accesses_[from].op;
    a.to = accesses_[to].op;
    a.wraps = wraps;
    const bool adjacent = wraps ? from + 1 == accesses_.size() && to == 0 : to == from + 1;
    if (adjacent) a.gap = index_.first_gap(tensor_) + static_cast<GapId>(from);
    a.dead = accesses_[to].version_read == kNone || is_upload(to, wraps ? accesses_.size() : from);
    if (!a.dead) {
      const std::int32_t version = accesses_[to].version_read;
      a.carried = version == 0;
      a.born = producers_[at(a.carried ? last_version() : version)];
      a.host_has_it =
          a.born == kNone || constants_.is_constant(tensor_, version) || used_by_host(version);
    }
    versions_.resize(all_.size() + 1);
    versions_.back() = accesses_[to].version_read;
    all_.push_back(a);
  }

  /// Sets `before`. In the life of the value that is carried over the iteration's end, those of the
  /// last version come first, then the one that wraps, then those of version 0.
  void link(std::size_t begin) {
    const std::size_t count = all_.size() - begin;
    for (std::size_t i = 0; i < count; ++i) {
      Absence& a = all_[begin + i];
      const std::size_t previous = begin + (i > 0 ? i - 1 : count - 1);
      const Absence& b = all_[previous];
      if (a.dead || b.dead || &a == &b || (i == 0 && !b.wraps)) continue;
      const std::int32_t version = versions_[begin + i];
      const bool same = i == 0    ? version == 0
                        : a.wraps ? versions_[previous] == last_version() && version == 0
                                  : versions_[previous] == version;
      if (same) a.before = static_cast<std::int32_t>(previous);
    }
  }

  const Program& program_;
  const AccessIndex& index_;
  const Constants& constants_;
  std::vector<Absence>& all_;
  TensorId tensor_ = kNone;
  std::span<const TensorAccess> accesses_;
  std::vector<OpId> producers_;  ///< per version; kNone for version 0
  std::vector<std::int32_t> versions_;
};

}  // namespace

std::vector<Absence> absences_of(const Program& program, const AccessIndex& index) {
  std::vector<Absence> all;
  const Constants constants(program, index);
  Writer writer(program, index, constants, all);
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) writer.write(t);
  return all;
}

bool sees_an_op(const Program& program, const Absence& a) {
  const auto device_op = [&](OpId begin, OpId end) {
    for (OpId k = begin; k < end; ++k) {
      if (program.ops[at(k)].place == OpPlace::device) return true;
    }
    return false;
  };
  const auto ops = static_cast<OpId>(program.ops.size());
  return a.wraps ? device_op(a.from + 1, ops) || device_op(0, a.to) : device_op(a.from + 1, a.to);
}

}  // namespace tidepool
