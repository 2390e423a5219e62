#include "reproduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "ir/load_profile.h"
#include "layer_network.h"
#include "lower/overhead.h"
#include "nn/models/model.h"
#include "nn/training_program.h"
#include "trace/recording.h"
#include "trace/trace_program.h"

namespace tidepool::reproduce {
namespace {

constexpr std::int64_t kBatch = 100;
constexpr int kIterations = 3;
constexpr const char* kTraceFile = "vgg16_batch100_3iterations.csv";
/// Allocated before the recording and never seen in it (the data's own description: 13.1 MiB).
constexpr Bytes kTraceResident = 13'762'836;

std::string measured_path(const std::string& data, const std::string& file) {
  return (std::filesystem::path(data) / "vgg16-trace" / file).string();
}

const PublishedNetwork* published_network(std::string_view model) {
  for (const PublishedNetwork& network : kPublishedNetworks) {
    if (network.model == model) return &network;
  }
  return nullptr;
}

}  // namespace

bool Arguments::wants(std::string_view model) const {
  return models.empty() || std::find(models.begin(), models.end(), model) != models.end();
}

Nanos Work::compute_time() const { return tidepool::compute_time(program, algorithms); }

Nanos Work::unlimited_time() const {
  return tidepool::unlimited_time(program, machine, algorithms);
}

Bytes Work::peak() const {
  return load_profile(program, AccessIndex(program), machine.alignment(), algorithms).peak +
         resident;
}

Result<Work> zoo_work(std::string_view model, std::int64_t batch) {
  Work work;
  work.model = model;
  if (batch == kBatch) work.published = published_network(model);
  auto machine = find_machine(kAutoswapMachine);
  if (!machine) return fail(machine.error());
  work.machine = std::move(*machine);
  const auto graph = nn::build_model(work.model);
  if (!graph) return fail(graph.error());
  nn::TrainingOptions options;
  options.batch = batch;
  options.storage = nn::Storage::separate;
  auto training = nn::build_training_program(*graph, options, nn::reference_kernels());
  if (!training) return fail(training.error());
  apply_cost_model(work.machine, training->program);
  work.program = std::move(training->program);
  work.algorithms = least_workspace_algorithms(work.program);
  work.recorded = record_program(work.program, work.algorithms, kIterations);
  work.framework = record_network(layer_network(*graph, batch), kIterations);
  return work;
}

Result<std::string> read_measured(const std::string& data, const std::string& file) {
  auto text = read_file(measured_path(data, file));
  if (text) return text;
  return fail(ErrorCode::bad_input,
              fmt::format("{}: no measured data; --data names the folder that has vgg16-trace/",
                          text.error().message));
}

Result<Work> measured_work(const std::string& data) {
  const auto text = read_measured(data, kTraceFile);
  if (!text) return fail(text.error());
  auto recording = read_recording(*text, measured_path(data, kTraceFile));
  if (!recording) return fail(recording.error());
  recording->resident = kTraceResident;
  const auto iteration = find_iteration(*recording);
  if (!iteration) {
    return fail(ErrorCode::bad_input,
                measured_path(data, kTraceFile) + ": no iteration that repeats in full twice");
  }
  Work work;
  work.model = kTraceModel;
  work.published = published_network("vgg16");
  auto machine = find_machine(kAutoswapMachine);
  if (!machine) return fail(machine.error());
  auto traced = trace_program(*recording, *iteration, machine->compute);
  if (!traced) return fail(traced.error());
  work.machine = std::move(*machine);
  work.program = std::move(traced->program);
  work.move_time = traced->move_time;
  work.algorithms = least_workspace_algorithms(work.program);
  work.recorded = {std::move(*recording), *iteration};
  work.framework = work.recorded;
  work.resident = align_up(traced->resident, work.machine.alignment());
  return work;
}

Result<void> check_known(std::span<const std::string> asked, std::span<const std::string> known) {
  for (const std::string& model : asked) {
    if (std::ranges::find(known, model) != known.end()) continue;
    return fail(ErrorCode::usage, fmt::format("no published figures of '{}'; there are: {}", model,
                                              fmt::join(known, ", ")));
  }
  return {};
}

Result<std::vector<std::string>> wanted_models(const Arguments& arguments, TableReport& report) {
  std::vector<std::string> known;
  for (const PublishedNetwork& network : kPublishedNetworks) known.emplace_back(network.model);
  known.emplace_back(kTraceModel);
  if (auto sound = check_known(arguments.models, known); !sound) return fail(sound.error());
  std::vector<std::string> wanted;
  for (const std::string& model : known) {
    if (!arguments.wants(model)) continue;
    if (model == kTraceModel &&
        !std::filesystem::exists(measured_path(arguments.data, kTraceFile))) {
      if (!arguments.models.empty()) {
        return fail(read_measured(arguments.data, kTraceFile).error());
      }
      report.note(fmt::format("{} is absent, and so is its row (--data DIR)",
                              measured_path(arguments.data, kTraceFile)));
      continue;
    }
    wanted.push_back(model);
  }
  return wanted;
}

Result<std::vector<std::string>> wanted_networks(const Arguments& arguments) {
  std::vector<std::string> known;
  for (const PublishedNetwork& network : kPublishedNetworks) known.emplace_back(network.model);
  if (arguments.models.empty()) return known;
  if (auto sound = check_known(arguments.models, known); !sound) return fail(sound.error());
  return arguments.models;
}

Result<Work> work_of(const std::string& model, const Arguments& arguments) {
  return model == kTraceModel ? measured_work(arguments.data) : zoo_work(model, kBatch);
}

Result<std::vector<double>> wanted_shares(const Arguments& a, std::span<const double> own) {
  std::vector<double> shares(own.begin(), own.end());
  if (a.limits.empty()) return shares;
  shares.clear();
  for (const std::string& text : a.limits) {
    const auto size = parse_size_or_percent(text);
    if (!size || size->percent <= 0 || size->percent > 100) {
      return fail(ErrorCode::usage,
                  fmt::format("--limits: '{}' is not a share of the peak such as 50%", text));
    }
    shares.push_back(size->percent / 100);
  }
  return shares;
}

void add_machine(const Machine& m, TableReport& report) {
  const ComputeModel& c = m.compute;
  report.constant("machine", m.name,
                  fmt::format("machine {}: {}, {} usable", m.name, m.description,
                              format_bytes(m.device_memory())));
  std::string factors;
  Json speeds = Json::object();
  for (const AlgorithmSpeed& s : c.algorithms) {
    factors += fmt::format(", {} {:.2f}", s.algorithm, s.factor);
    speeds[s.algorithm] = s.factor;
  }
  report.constant("compute",
                  {{"peak_flops", c.peak_flops},
                   {"bandwidth", c.bandwidth},
                   {"launch_ns", c.launch.count()},
                   {"max_efficiency", c.max_efficiency},
                   {"half_flops", c.half_flops},
                   {"algorithms", speeds}},
                  fmt::format("op time: max(flops / (efficiency factor {:.2f} TFLOP/s), bytes / "
                              "{:.0f} GB/s) + {}; efficiency {:.2f} flops / (flops + {:.2e}); "
                              "factor implicit-gemm 1{}",
                              c.peak_flops * 1e-12, c.bandwidth * 1e-9, format_time(c.launch),
                              c.max_efficiency, c.half_flops, factors));
  report.constant(
      "link",
      {{"to_host_bytes_per_second", m.to_host().bytes_per_second},
       {"to_host_latency_ns", m.to_host().latency.count()},
       {"to_device_bytes_per_second", m.to_device().bytes_per_second},
       {"to_device_latency_ns", m.to_device().latency.count()}},
      fmt::format("copies: out {:.4f} ns/B + {}, in {:.4f} ns/B + {}, at the same time",
                  1e9 / m.to_host().bytes_per_second, format_time(m.to_host().latency),
                  1e9 / m.to_device().bytes_per_second, format_time(m.to_device().latency)));
}

Nanos kept_time(const Program& program, const Machine& machine,
                const std::vector<std::int32_t>& algorithms) {
  const AccessIndex index(program);
  EvaluateOptions options;
  options.load_limit = kNoDeviceLimit;
  return Evaluator(program, index, machine)
      .evaluate(keep_everything(program, index, algorithms), options)
      .iteration_time;
}

}  // namespace tidepool::reproduce
