// What Python sees of the device.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/extension.h>

#include "backend.h"
#include "sim.h"

namespace py = pybind11;

namespace {

py::dict stats() {
  py::dict found;
  sim::device().locked([&](sim::Sim& sim) {
    found["allocated"] = sim.pool.allocated;
    found["peak"] = sim.pool.peak;
    found["reserved"] = sim.pool.reserved;
    found["peak_reserved"] = sim.pool.peak_reserved;
    found["allocations"] = sim.pool.allocations;
    found["retries"] = sim.counters.retries;
    found["ooms"] = sim.counters.ooms;
    found["kernels"] = sim.counters.kernels;
    found["dry_runs"] = sim.counters.dry_runs;
    found["pageable"] = sim.counters.pageable;
    found["host_syncs"] = sim.counters.host_syncs;
  });
  return found;
}

template <typename Use>
auto locked(Use use) {
  return sim::device().locked(use);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using sim::device;
  using sim::Sim;
  sim::register_hooks();
  module.def("policy",
             [](const std::string& name, uint64_t seed) { device().set_policy(name, seed); });
  module.def("cap", [](size_t bytes) { locked([&](Sim& s) { s.pool.cap = bytes; }); });
  module.def("segment", [](size_t bytes) { locked([&](Sim& s) { s.pool.segment = bytes; }); });
  module.def("expandable", [](bool on) { locked([&](Sim& s) { s.pool.expandable = on; }); });
  module.def("poison", [](bool on) { locked([&](Sim& s) { s.poisons = on; }); });
  module.def("look_for_races", [](bool on) { locked([&](Sim& s) { s.races.looks = on; }); });
  module.def("raise_races", [](bool on) { locked([&](Sim& s) { s.raises_races = on; }); });
  module.def("forbid_waits", [](bool on) { locked([&](Sim& s) { s.forbids_waits = on; }); });
  module.def("skip_tasks", [](bool on) { locked([&](Sim& s) { s.skips_tasks = on; }); });
  module.def("races", [] { return locked([](Sim& s) { return s.races.take(); }); });
  module.def("rates", [](double bandwidth, double link, int64_t launch) {
    locked([&](Sim& s) { s.rates = {bandwidth, link, launch}; });
  });
  module.def("synchronize", [] { device().synchronize(); });
  module.def("empty_cache", [] { device().empty_cache(); });
  module.def("host_register", [](uintptr_t at, size_t size) { device().pin(at, size); });
  module.def("host_unregister", [](uintptr_t at) { device().unpin(at); });
  module.def("host_access", [](uintptr_t at, size_t size, bool write, const std::string& name) {
    device().host_access({at, at + size, write}, name);
  });
  module.def("fail_allocation", [](int64_t n) { device().fail_allocation(n); });
  module.def("fail_task", [](const std::string& name, int64_t n) { device().fail_task(name, n); });
  module.def("seed", [](uint64_t seed) { locked([&](Sim& s) { s.generator = {seed, 0}; }); });
  module.def("random_state", [] {
    return locked([](Sim& s) { return std::make_pair(s.generator.seed, s.generator.offset); });
  });
  module.def("set_random_state", [](uint64_t seed, uint64_t offset) {
    locked([&](Sim& s) { s.generator = {seed, offset}; });
  });
  module.def("now", [] { return device().now(); });
  module.def("stats", &stats);
  module.def("reset_peak", [] { device().reset_peak(); });
}
