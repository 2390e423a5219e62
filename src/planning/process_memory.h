// The RAM of the process: what code, heap and inputs take of it, and what that leaves for the
// arena.
#pragma once

#include <optional>
#include <string>

#include "planning/planning_spec.h"

namespace tidepool {

struct ProcessMemory {
  Bytes limit = 0;     ///< all that the process may take
  Bytes resident = 0;  ///< code, libraries, heap: as it is, or is expected to be
  Bytes host = 0;      ///< the host arena: inputs, and what is on its way
  Bytes hashes = 0;    ///< of the file's blocks, where what is read is compared
  Bytes beyond = 0;    ///< by so much more may `resident` turn out to be

  /// All but a device arena of this size, tables of its pages and some room included.
  [[nodiscard]] Bytes beside(Bytes arena) const;
  /// The largest device arena that leaves that; below 0 where nothing is left.
  [[nodiscard]] Bytes largest_arena(Bytes alignment) const;
  /// Ops of a program that is only looked at: what it takes is not in `resident`.
  [[nodiscard]] std::int64_t most_ops() const;
  [[nodiscard]] bool holds(Bytes arena) const { return arena + beside(arena) <= limit; }
  /// `infeasible`, of an arena: what all of the process would need, in numbers. What is named is
  /// enough when it is given: it has room for what code and heap differ by from run to run, or from
  /// what was expected.
  [[nodiscard]] Error explained(Error of_arena) const;
};

/// What `memory` says, in bytes. Refuses more than the control group of this process allows: the
/// kernel would end it.
Result<Bytes> memory_of(const MemorySpec& memory);

/// Ends work that takes memory of its own, such as planning, before the process takes more than the
/// limit, or where `stop` asks for it. What such work has found so far is good. While it is asked,
/// code that was read ahead and is not used leaves the page cache, which counts where a control
/// group limits the process.
Stop where_memory_ends(Bytes limit, Stop stop);

/// What the process takes now besides its arenas: none may be open.
Bytes resident_beside_arenas();

}  // namespace tidepool
