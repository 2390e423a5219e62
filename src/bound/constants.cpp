#include "bound/constants.h"

#include <algorithm>

#include "base/at.h"

namespace tidepool {

Constants::Constants(const Program& program, const AccessIndex& index) {
  constant_.resize(program.tensors.size());
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) {
    const auto accesses = index.accesses(t);
    const bool changes = std::any_of(accesses.begin(), accesses.end(),
                                     [](const auto& a) { return a.version_written != kNone; });
    constant_[at(t)].push_back(program.tensors[at(t)].persistent && !changes);
  }
  for (const Op& op : program.ops) {
    bool constant = !op.random;
    for (const Access& a : op.accesses) {
      if (a.mode != AccessMode::write) constant = constant && constant_[at(a.tensor)].back();
    }
    for (const Access& a : op.accesses) {
      if (a.mode != AccessMode::read) constant_[at(a.tensor)].push_back(constant);
    }
  }
}

bool Constants::is_constant(TensorId t, std::int32_t version) const {
  return constant_[at(t)][at(version)];
}

}  // namespace tidepool
