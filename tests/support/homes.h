// Programs some of whose persistent tensors have their home on the device.
#pragma once

#include <utility>

#include "base/random.h"
#include "ir/program.h"

namespace tidepool::testing {

/// One in `one_in` of those that may have one.
inline void give_homes(Random& random, Program& p, std::uint64_t one_in = 2) {
  for (const Op& op : p.ops) {
    if (op.place != OpPlace::device) continue;
    for (const Access& a : op.accesses) {
      Tensor& tensor = p.tensors[static_cast<std::size_t>(a.tensor)];
      if (tensor.persistent && random.below(one_in) == 0) tensor.home = Home::device;
    }
  }
}

inline Program with_homes(Program p, std::uint64_t seed) {
  Random random(seed ^ 0x403eULL);
  give_homes(random, p);
  p.name += " at home";
  return p;
}

inline Program without_homes(Program p) {
  for (Tensor& t : p.tensors) t.home = Home::anywhere;
  return p;
}

}  // namespace tidepool::testing
