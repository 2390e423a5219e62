#include <string>

#include "base/own_module.h"
#include "bound/clp/clp_calls.h"

namespace tidepool {
namespace {

struct ClpModule {
  SolveWithClp solve = nullptr;
  std::string why_not;

  ClpModule() {
#ifdef TIDEPOOL_CLP_MODULE
    const auto path = own_module("tidepool_clp.so", TIDEPOOL_CLP_MODULE);
    solve = reinterpret_cast<SolveWithClp>(load_own_module(path, kSolveWithClp, why_not));
    why_not = "lower bounds need the solver Clp, in a part of its own: " + why_not;
#else
    solve = tidepool_solve_with_clp_1;
#endif
  }
};

const ClpModule& clp_module() {
  static const ClpModule loaded;
  return loaded;
}

}  // namespace

SolveWithClp find_clp() { return clp_module().solve; }
const char* clp_missing() { return clp_module().why_not.c_str(); }

}  // namespace tidepool
