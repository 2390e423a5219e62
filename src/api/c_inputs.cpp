// The C interface: what is read, named and listed.
#include "api/c_handles.h"
#include "api/guard.h"

namespace api = tidepool::api;

namespace {

/// Reads a text into a new handle.
template <class Handle, class Data, class Read>
tp_status read_handle(const char* json, std::size_t length, const char* name, Handle** out,
                      Read read) {
  return api::guarded([&]() -> tp_status {
    if (json == nullptr) return api::refuse_null("json");
    if (out == nullptr) return api::refuse_null("out");
    auto made = read(std::string_view(json, length), std::string_view(name));
    if (!made) return api::remember(made.error());
    *out = new Handle{std::make_shared<const Data>(Data{std::move(*made)})};
    return TP_OK;
  });
}

}  // namespace

int32_t tp_abi(void) { return TP_ABI; }

const char* tp_version(void) { return TIDEPOOL_VERSION; }

tp_status tp_error(tp_error_info* out) {
  if (out == nullptr) return TP_USAGE;
  // The error stays, and is what this call is about: nothing is forgotten here.
  const tp_error_info info = api::remembered();
  return api::given_back(info, out, "tp_error_info");
}

tp_status tp_program_read(const char* json, size_t length, const char* name, tp_program** out) {
  return read_handle<tp_program, api::ProgramData>(json, length, name == nullptr ? "program" : name,
                                                   out, api::read_program);
}

tp_status tp_machine_read(const char* json, size_t length, const char* name, tp_machine** out) {
  return read_handle<tp_machine, api::MachineData>(json, length, name == nullptr ? "machine" : name,
                                                   out, api::read_machine);
}

tp_status tp_machine_preset(const char* name, tp_machine** out) {
  return api::guarded([&]() -> tp_status {
    if (name == nullptr) return api::refuse_null("name");
    if (out == nullptr) return api::refuse_null("out");
    auto machine = tidepool::find_machine(name);
    if (!machine) return api::remember(machine.error());
    *out = new tp_machine{
        std::make_shared<const api::MachineData>(api::MachineData{std::move(*machine)})};
    return TP_OK;
  });
}

void tp_program_free(tp_program* program) { delete program; }
void tp_machine_free(tp_machine* machine) { delete machine; }

tp_status tp_program_describe(const tp_program* program, const tp_machine* machine,
                              tp_program_info* out) {
  return api::guarded([&]() -> tp_status {
    if (program == nullptr) return api::refuse_null("program");
    if (machine == nullptr) return api::refuse_null("machine");
    if (out == nullptr) return api::refuse_null("out");
    const auto info = api::info_of(program->data->program, machine->data->machine);
    if (!info) return api::remember(info.error());
    return api::given_back(*info, out, "tp_program_info");
  });
}

tp_status tp_list(const char* what, const char** lines) {
  return api::guarded([&]() -> tp_status {
    if (what == nullptr) return api::refuse_null("what");
    if (lines == nullptr) return api::refuse_null("lines");
    const auto names = api::names_of(what);
    if (!names) return api::remember(names.error());
    *lines = *names;
    return TP_OK;
  });
}
