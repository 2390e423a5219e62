// Which of the faults that mutants.py wrote into this program is there in this run.
#pragma once

#include <cstdlib>
#include <cstring>

namespace standin {

/// Whether STANDIN_MUTANT names this fault.
inline bool is_chosen(const char* fault) {
  const char* chosen = std::getenv("STANDIN_MUTANT");
  return chosen != nullptr && std::strcmp(chosen, fault) == 0;
}

}  // namespace standin
