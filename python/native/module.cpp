// The Python module tidepool_torch_native._native.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "observer.h"

namespace tidepool_torch {
namespace {

namespace py = pybind11;

/// Reads (name, overload, whether its tensors matter, positions of what it writes, bytes it makes).
Call read_call(const py::handle& from) {
  const auto [name, overload, looks, written, made] =
      py::cast<std::tuple<std::string, std::string, bool, std::vector<std::size_t>,
                          std::optional<std::size_t>>>(from);
  Call call;
  call.op = c10::Dispatcher::singleton().findSchema({name, overload});
  if (call.op.has_value()) {
    call.kind = looks ? Call::Kind::kLooks : Call::Kind::kPasses;
  }
  call.written = written;
  call.made = made;
  return call;
}

/// Each call as above, or None: it is Python's.
Watched read_calls(const py::list& calls, std::size_t least) {
  Watched watched;
  watched.least = least;
  for (const py::handle call : calls) {
    watched.calls.push_back(call.is_none() ? Call{} : read_call(call));
  }
  return watched;
}

}  // namespace
}  // namespace tidepool_torch

PYBIND11_MODULE(_native, module) {
  using namespace tidepool_torch;
  install_observer();
  py::class_<Watched>(module, "Watched")
      .def(py::init(&read_calls))
      .def_readwrite("position", &Watched::position)
      .def_readwrite("spare", &Watched::spare)
      .def_readonly("passed", &Watched::passed);
  module.def("start",
             [](py::handle mode, const py::set& ours, const py::set& read_later, Watched& watched) {
               start_observer(mode.ptr(), ours.ptr(), read_later.ptr(), watched);
             });
  module.def("stop", &stop_observer);
}
