#include "job/job.h"

#include <fmt/format.h>

#include <thread>

#include "base/counted.h"
#include "job/data_sets.h"
#include "job/device_kind.h"
#include "job/file_place.h"
#include "nn/models/model.h"
#include "planners/registry.h"
#include "planners/settings.h"
#include "planning/planning_spec.h"
#include "planning/rounds.h"

namespace tidepool {
namespace {

/// Of each device.
int threads_of(const DeviceSpec& device, const DeviceKind& kind, std::int32_t devices = 1) {
  return device.threads > 0 ? device.threads : usual_threads(kind, devices);
}

void warn_of_too_many(int threads, std::int32_t devices, Observer& observer) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());  // 0: not known
  if (cores == 0 || threads * devices <= cores) return;
  observer.notice(Notice::too_many_threads,
                  fmt::format("`threads` {}{} is more than the {} here: they wait for each other",
                              threads, devices > 1 ? fmt::format(" on {} devices", devices) : "",
                              counted(cores, "core")));
}

Result<void> check_devices(const JobSpec& spec) {
  if (spec.devices >= 1 && spec.devices <= kMostDevices) return {};
  return fail(ErrorCode::usage, fmt::format("`devices` {}: there can be 1 to {} in a machine",
                                            spec.devices, kMostDevices));
}

Result<const nn::KernelList*> kernels_of(const DeviceSpec& device, const DeviceKind& kind,
                                         std::int32_t devices = 1) {
  if (kind.choose_kernels != nullptr) return &kind.choose_kernels(device.kernels);
  if (device.kernels.tf32 || device.kernels.nondeterministic) {
    return fail(
        ErrorCode::usage,
        fmt::format("`tf32` and `nondeterministic` mean nothing to device '{}'", kind.name));
  }
  return &kind.kernels(threads_of(device, kind, devices));
}

std::string fingerprint_of(const DeviceKind& kind, const nn::KernelList& kernels, int threads) {
  return fmt::format("{}; kernels {}", kind.make(DeviceRequest{.threads = threads})->fingerprint(),
                     kernels.name);
}

nn::TrainingOptions training_options(const JobSpec& spec) {
  constexpr float kUsualOfAdamW = 0.01F;
  nn::TrainingOptions options;
  options.batch = spec.batch;
  options.sub_batch = spec.sub_batch;
  options.sub_batch_statistics = spec.sub_batch_statistics;
  options.devices = spec.devices;
  options.naive_accumulation = spec.accumulation == Accumulation::naive;
  options.storage = spec.storage;
  options.optimizer = spec.optimizer;
  if (spec.optimizer == nn::Optimizer::adamw) options.weight_decay = kUsualOfAdamW;
  if (spec.weight_decay) options.weight_decay = static_cast<float>(*spec.weight_decay);
  options.workspace_limit = spec.workspace_limit;
  return options;
}

/// Images and classes are those of the data; a vocabulary is the model's.
nn::ModelOptions model_options(const JobSpec& spec, const nn::SampleSource& data) {
  nn::ModelOptions options;
  options.sequence = spec.sequence;
  options.clusters = spec.clusters;
  std::int64_t classes = 0;
  for (const nn::Field& field : data.fields()) {
    if (field.name == "labels") classes = field.classes;
    if (field.name != "images") continue;
    const std::vector<std::int64_t>& dims = field.type.dims;
    options.image = {dims[0], dims[1], dims[2]};
  }
  if (options.image.elements() > 0) options.classes = classes;
  return options;
}

/// What the builder of its program does not see.
Result<void> check_k_means(const JobSpec& spec, const nn::ModelInfo& model) {
  const bool usual = to_text(spec.learning_rate) == to_text(JobSpec{}.learning_rate);
  if (!model.clusters || (usual && !spec.weight_decay)) return {};
  return fail(
      ErrorCode::usage,
      fmt::format("{}: `learning_rate` and `weight_decay` are for gradients, and K-means has "
                  "none",
                  model.name));
}

}  // namespace

AlgorithmPolicy algorithms_of(const JobSpec& job) {
  if (job.algorithms) return *job.algorithms;
  for (const DeviceKind& kind : device_kinds()) {
    if (job.device.name.empty() || kind.name == job.device.name) return kind.algorithms;
  }
  return AlgorithmPolicy::least_workspace;
}

AlgorithmPolicy best_algorithms(const JobSpec& job, bool chooses) {
  return job.choose_algorithms && chooses ? AlgorithmPolicy::fastest : algorithms_of(job);
}

bool plans_all_algorithms(const JobSpec& job, bool chooses) {
  return best_algorithms(job, chooses) != AlgorithmPolicy::least_workspace;
}

PlannerOptions planner_options(const JobSpec& job, const PlannerSpec& planner) {
  PlannerOptions options;
  options.seed = job.seed;
  options.algorithms = algorithms_of(job);
  options.may.algorithms = job.choose_algorithms;
  options.may.streaming = true;  // every budget that can be met is met
  options.time_limit = planner.time_limit.value_or(usual_time_limit(planner.name));
  options.usual_time = !planner.time_limit;
  options.evaluation_limit = planner.evaluations;
  options.values = without_files(planner.values);
  return options;
}

Result<Job> Job::make(const JobSpec& spec, Observer& observer) {
  Job job;
  job.spec_ = spec;
  const auto model = nn::find_model(spec.model);
  if (!model) return fail(model.error());
  if (auto sound = check_k_means(spec, **model); !sound) return fail(sound.error());
  if (auto sound = check_devices(spec); !sound) return fail(sound.error());
  const auto kind = find_device_kind(spec.device.name, spec.devices);
  if (!kind) return fail(kind.error());
  job.kind_ = *kind;
  const auto kernels = kernels_of(spec.device, *job.kind_, spec.devices);
  if (!kernels) return fail(kernels.error());
  job.kernels_ = *kernels;
  job.threads_ = threads_of(spec.device, *job.kind_, spec.devices);
  if (job.kind_->emulates_links()) warn_of_too_many(job.threads_, spec.devices, observer);
  if (spec.device.link > 0 && !job.kind_->emulates_links()) {
    return fail(
        ErrorCode::usage,
        fmt::format("`link` is for emulated devices; that of '{}' is measured", job.kind_->name));
  }
  if (spec.device.spills()) {
    if (spec.devices > 1) {
      return fail(ErrorCode::usage, "`spill` is of one device: not beside more `devices`");
    }
    if (auto possible = check_spill(*job.kind_, spec.device.spill); !possible) {
      return fail(possible.error());
    }
    // Samples would take memory beside what is stated.
    job.spec_.data.scratch_folder = spec.device.spill.folder;
  }
  if (spec.device.has_file_tier()) {
    if (auto possible = check_file_tier(*job.kind_, spec.device.file_tier); !possible) {
      return fail(possible.error());
    }
  }
  auto data = load_data(job.spec_, **model, nn::Split::train);
  if (!data) return fail(data.error());
  job.data_ = std::move(*data);
  if (job.data_->size() < spec.batch) {
    return fail(ErrorCode::usage,
                fmt::format("`batch` {} is more than the {} of {}", spec.batch,
                            counted(job.data_->size(), "sample"), job.data_->name()));
  }
  auto graph = nn::build_model(spec.model, model_options(spec, *job.data_));
  if (!graph) return fail(graph.error());
  job.graph_ = std::make_shared<const nn::Graph>(std::move(*graph));
  job.options_ = training_options(spec);
  auto built = job.set_rounds(spec.sub_batch);
  if (!built && spec.choose_sub_batch && spec.sub_batch == 0) {
    // A whole batch of more elements than kernels can number.
    for (const std::int64_t size : round_sizes(spec.batch / spec.devices)) {
      if (job.set_rounds(size)) return job;
    }
  }
  if (!built) return fail(built.error());
  return job;
}

Result<void> Job::set_rounds(std::int64_t sub_batch) {
  nn::TrainingOptions options = options_;
  options.sub_batch = sub_batch;
  auto training = nn::build_training_program(*graph_, options, *kernels_);
  if (!training) return fail(training.error());
  training_ = std::make_unique<nn::TrainingProgram>(std::move(*training));
  parallel_ = nullptr;
  if (options.devices > 1) {
    parallel_ = std::make_unique<nn::DataParallel>(nn::replicate(*training_, options, *kernels_));
  }
  options_ = options;
  spec_.sub_batch = sub_batch;
  return {};
}

Result<Job> Job::with(std::int64_t batch, std::int64_t sub_batch) const {
  Job job;
  job.spec_ = spec_;
  job.spec_.batch = batch;
  job.kind_ = kind_;
  job.kernels_ = kernels_;
  job.threads_ = threads_;
  job.data_ = data_;
  job.graph_ = graph_;
  job.options_ = options_;
  job.options_.batch = batch;
  if (auto built = job.set_rounds(sub_batch); !built) return fail(built.error());
  return job;
}

Result<std::unique_ptr<nn::TrainingRunner>> Job::make_runner(std::int64_t iterations,
                                                             std::int64_t first_iteration) const {
  return runner_of(whole(), iterations, first_iteration, {});
}

Result<std::unique_ptr<nn::TrainingRunner>> Job::make_runner_of_one() const {
  // Each op runs in each iteration: whatever branches there are, a few give the times of all.
  return runner_of(*training_, 0, 0, [](std::int64_t) { return ~0U; });
}

Result<std::unique_ptr<nn::TrainingRunner>> Job::runner_of(
    const nn::TrainingProgram& program, std::int64_t iterations, std::int64_t first_iteration,
    std::function<std::uint32_t(std::int64_t)> guards) const {
  nn::TrainingSettings settings;
  settings.guards = std::move(guards);
  settings.seed = spec_.seed;
  settings.first_iteration = first_iteration;
  const nn::TrainingLength length{iterations_per_epoch(),
                                  iterations > 0 ? iterations : iterations_per_epoch()};
  settings.learning_rate = [rate = spec_.learning_rate, length](std::int64_t i) {
    return rate.at(i, length);
  };
  auto runner = nn::TrainingRunner::create(program, *kernels_, *data_, settings);
  if (runner && spec_.device.spills()) {
    if (auto kept = (*runner)->keep_values_in(spec_.device.spill.folder); !kept) {
      return fail(kept.error());
    }
  }
  return runner;
}

Result<Program> Job::in_rounds(std::int64_t sub_batch, bool statistics) const {
  nn::TrainingOptions options = options_;
  options.sub_batch = sub_batch;
  options.sub_batch_statistics = statistics;
  auto training = nn::build_training_program(*graph_, options, *kernels_);
  if (!training) return fail(training.error());
  return std::move(training->program);
}

Result<nn::TrainingProgram> Job::make_evaluation() const {
  // No more samples at once than training takes, so that it fits where training does.
  nn::TrainingOptions options = options_;
  options.batch = training_->program.sub_batch;
  return nn::build_evaluation_program(*graph_, options, *kernels_);
}

Result<std::unique_ptr<nn::SampleSource>> Job::load_test_data() const {
  const auto model = nn::find_model(spec_.model);
  if (!model) return fail(model.error());
  return load_data(spec_, **model, nn::Split::test);
}

std::vector<std::pair<std::string, std::string>> Job::settings() const {
  std::vector<std::pair<std::string, std::string>> list = {
      {"model", spec_.model},
      {"batch", fmt::format("{}", spec_.batch)},
      {"sub_batch", fmt::format("{}", training_->program.sub_batch)},
      {"data", data_->name()},
      {"seed", fmt::format("{}", spec_.seed)},
      {"optimizer", std::string(to_text(spec_.optimizer))},
      {"weight_decay", fmt::format("{}", options_.weight_decay)},
      {"learning_rate", to_text(spec_.learning_rate)},
      {"storage", std::string(to_text(spec_.storage))},
      {"algorithms", std::string(to_text(algorithms_of(spec_)))},
      {"fingerprint", fingerprint()},
      {"devices", fmt::format("{}", spec_.devices)}};
  for (const nn::ProgramInput& input : training_->inputs) {
    if (input.name != "tokens") continue;
    list.emplace_back("sequence", fmt::format("{}", input.type.elements()));
  }
  return list;
}

std::unique_ptr<Device> Job::make_device(const Machine& machine) const {
  const auto bus = [&](SpaceId from, SpaceId to) {
    const std::int32_t index = machine.find_link(from, to)->bus;
    return index == kNone ? 0 : machine.buses[static_cast<std::size_t>(index)];
  };
  DeviceRequest request;
  request.threads = threads_;
  request.devices = machine.devices();
  request.to_host = machine.to_host();
  request.to_device = machine.to_device();
  request.bus_to_host = bus(0, machine.host());
  request.bus_to_device = bus(machine.host(), 0);
  if (spec_.device.spills()) {
    // Its arena is memory like the host's: copies within it are as fast as they go.
    request.to_host = request.to_device = {};
    request.spill = spec_.device.spill;
  } else {
    request.spill = spec_.device.file_tier;
  }
  return kind_->make(request);
}

std::string Job::fingerprint() const { return fingerprint_of(*kind_, *kernels_, threads_); }

Result<std::string> device_fingerprint(const DeviceSpec& device) {
  const auto kind = find_device_kind(device.name);
  if (!kind) return fail(kind.error());
  const auto kernels = kernels_of(device, **kind);
  if (!kernels) return fail(kernels.error());
  return fingerprint_of(**kind, **kernels, threads_of(device, **kind));
}

std::string to_text(const nn::LearningRate& rate) {
  using Shape = nn::LearningRate::Shape;
  const nn::LearningRate usual;
  std::string text;
  if (rate.warmup_epochs > 0) text += fmt::format("warmup:{}+", rate.warmup_epochs);
  if (rate.shape == Shape::step) text += "step:";
  if (rate.shape == Shape::cosine) text += "cosine:";
  text += fmt::format("{}", rate.base);
  for (const double milestone : rate.milestones) text += fmt::format(",{}", milestone);
  if (rate.gamma != usual.gamma) text += fmt::format(",gamma={}", rate.gamma);
  if (rate.epochs > 0) text += fmt::format(",epochs={}", rate.epochs);
  return text;
}

std::string_view to_text(nn::Optimizer optimizer) {
  return optimizer == nn::Optimizer::adamw ? "adamw" : "sgd";
}

std::string_view to_text(nn::Storage storage) {
  if (storage == nn::Storage::relu_in_place) return "relu-in-place";
  return storage == nn::Storage::separate ? "separate" : "in-place";
}

std::string_view to_text(Accumulation accumulation) {
  return accumulation == Accumulation::naive ? "naive" : "overlapped";
}

}  // namespace tidepool
