// What training inside a budget costs on a GPU. For each model at a batch that takes about 20 GiB
// unlimited: the time of an iteration unlimited and at 75, 60, 50 and 40 % of the peak with every
// planner, predicted beside measured, memory by the driver's count beside the arena, power and
// energy. Then the price of an allocation and the bandwidth of copies beside kernels.
//
//   bench_cuda [--minutes 7] [--target 20GiB] [--models vgg16,vgg19] [--output FOLDER]
//
// Prints Markdown and, with --output, writes cuda.md and cuda.json there. Ends within the minutes:
// what there is no time for is named and left out.
#include "nn/kernels/cuda/cuda.h"

#include <cuda_runtime_api.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/json.h"
#include "base/median.h"
#include "device/cuda/check.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/links.h"
#include "device/cuda/nvml.h"
#include "ir/load_profile.h"
#include "nn/data/synthetic.h"
#include "nn/models/model.h"
#include "nn/ops/linear.h"
#include "nn/ops/op_desc.h"
#include "nn/training_runner.h"
#include "planners/none.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "runtime/executor.h"
#include "runtime/profiler.h"

namespace {

using namespace tidepool;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max() / 4;
constexpr int kBudgets[] = {75, 60, 50, 40};  // per cent of the unlimited peak

// What comes first where there is no time for all.
constexpr std::string_view kFirstModels[] = {"resnet50", "vgg16", "densenet121", "unet"};
constexpr std::string_view kFirstPlanners[] = {"auto", "tide",     "autoswap",
                                               "home", "capuchin", "vdnn-all"};
constexpr std::chrono::seconds kLeastForAModel{75};

/// Those of `first` to the front, in that order.
template <class Item, class NameOf>
void bring_forward(std::vector<Item>& items, std::span<const std::string_view> first,
                   NameOf name_of) {
  const auto rank = [&](const Item& item) {
    return std::ranges::find(first, std::string_view(name_of(item))) - first.begin();
  };
  std::ranges::stable_sort(items, {}, rank);
}

struct Arguments {
  double minutes = 7;
  Bytes target = 20 * kGiB;
  std::vector<std::string> models;
  std::string output;
};

/// A few samples over and over: feeding the batch costs a copy and nothing else.
class RepeatedSamples final : public nn::Dataset {
 public:
  RepeatedSamples(const nn::ImageShape& image, std::int64_t classes, std::int64_t size)
      : source_(image, classes, kDistinct), size_(size) {
    const auto elements = static_cast<std::size_t>(image.elements());
    for (std::int64_t i = 0; i < kDistinct; ++i) {
      source_.fill(i, samples_.emplace_back(elements).data());
    }
  }
  [[nodiscard]] std::string name() const override { return "repeated"; }
  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] nn::ImageShape image() const override { return source_.image(); }
  [[nodiscard]] std::int64_t classes() const override { return source_.classes(); }
  void fill(std::int64_t sample, float* to) const override {
    const std::vector<float>& from = samples_[static_cast<std::size_t>(sample % kDistinct)];
    std::copy(from.begin(), from.end(), to);
  }
  [[nodiscard]] std::int32_t label(std::int64_t sample) const override {
    return source_.label(sample % kDistinct);
  }

 private:
  static constexpr std::int64_t kDistinct = 64;
  nn::SyntheticDataset source_;
  std::int64_t size_;
  std::vector<std::vector<float>> samples_;
};

double gib(Bytes bytes) { return static_cast<double>(bytes) / static_cast<double>(kGiB); }

/// Times of a plan that ran.
struct Run {
  Nanos iteration{};
  int iterations = 0;
  Bytes arena = 0;   ///< highest byte used
  Bytes driver = 0;  ///< above the level after handles, while it ran
  cuda::EnergyReading energy;
};

class Bench {
 public:
  explicit Bench(const Arguments& arguments)
      : arguments_(arguments),
        deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(arguments.minutes * 60))),
        meter_(0) {}

  int run() {
    nn::load_cuda_kernels();
    describe();
    micro();
    std::vector<std::string> models = arguments_.models;
    if (models.empty()) {
      for (const nn::ModelInfo& model : nn::models()) {
        // The small ones are for trials: no batch of theirs is a training. In an MLP's time the
        // host does not have the samples ready. The rest is of images with a class each.
        const bool small = model.name.rfind("tiny", 0) == 0 || model.name.rfind("mlp", 0) == 0;
        if (!model.takes_text() && !model.segments && !model.clusters && !small)
          models.push_back(model.name);
      }
      bring_forward(models, kFirstModels, [](const std::string& name) { return name; });
    }
    say("\n## Training inside a budget\n\n");
    say("| model | batch | planner | budget | iteration | overhead | predicted | off | arena | "
        "driver | average W | maximum W | J/iteration |\n");
    say("|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (std::size_t i = 0; i < models.size(); ++i) {
      // What is left is shared by the models that are left, as far as that is enough for each.
      const auto left = deadline_ - Clock::now();
      if (left < kLeastForAModel / 2) {
        note(fmt::format("No time for {}.", fmt::join(std::span(models).subspan(i), ", ")));
        break;
      }
      const Clock::duration share = left / static_cast<int>(models.size() - i);
      model(models[i],
            std::min(deadline_, Clock::now() + std::max<Clock::duration>(share, kLeastForAModel)));
    }
    for (const std::string& note : notes_) say("\n" + note + "\n");
    json_["notes"] = notes_;
    write();
    return failures_ == 0 ? 0 : 1;
  }

 private:
  void say(const std::string& text) {
    fmt::print("{}", text);
    std::fflush(stdout);
    markdown_ << text;
  }

  void describe() {
    links_ = measure_links();
    const CudaDevice device({});
    machine_.name = "cuda";
    machine_.set_alignment(device.alignment());
    machine_.set_device_memory(cuda::total_memory(0));
    machine_.to_host() = {links_.to_host_both, links_.to_host.latency};
    machine_.to_device() = {links_.to_device_both, links_.to_device.latency};
    const std::string fingerprint = device.fingerprint();
    const auto today = fmt::localtime(std::time(nullptr));
    say(fmt::format("# CUDA device, {:%Y-%m-%d}\n\n{}\n\n", today, fingerprint));
    say(
        fmt::format("float32 without TF32, deterministic algorithms, of each op the fastest with a "
                    "workspace up to {}.\n",
                    format_bytes(arguments_.target / 8)));
    say("\n## Link\n\n| direction | alone | together | latency |\n|---|---|---|---|\n");
    const auto row = [&](const char* name, const LinkMeasurement::Direction& d, double both) {
      say(fmt::format("| {} | {:.1f} GB/s | {:.1f} GB/s | {} |\n", name, d.bytes_per_second * 1e-9,
                      both * 1e-9, format_time(d.latency)));
    };
    row("to host", links_.to_host, links_.to_host_both);
    row("to device", links_.to_device, links_.to_device_both);
    json_ = {{"schema", 1},
             {"fingerprint", fingerprint},
             {"date", fmt::format("{:%Y-%m-%d}", today)},
             {"power", meter_.available() ? "nvml" : meter_.why_not()},
             {"link",
              {{"to_host", links_.to_host.bytes_per_second},
               {"to_device", links_.to_device.bytes_per_second},
               {"to_host_both", links_.to_host_both},
               {"to_device_both", links_.to_device_both},
               {"to_host_latency_ns", links_.to_host.latency.count()},
               {"to_device_latency_ns", links_.to_device.latency.count()}}},
             {"runs", Json::array()}};
    if (!meter_.available()) notes_.push_back("No power figures: " + meter_.why_not() + ".");
  }

  void micro() {
    copies_beside_kernels();
    allocations();
  }

  /// Copies in both directions while a large matrix product repeats.
  void copies_beside_kernels() {
    constexpr std::int64_t kSide = 8192;
    constexpr Bytes kCopy = 256 * kMiB;
    constexpr int kCopies = 8, kProducts = 8;  // 0.05 and 0.2 s where a link does 50 GB/s
    nn::OpDesc desc{nn::LinearBackwardData{}};
    const nn::TensorDesc square{{kSide, kSide}};
    desc.operands = {square, square, square};
    const auto kernel = nn::cuda_kernels().make(desc);
    const Bytes matrix = square.bytes();
    CudaDevice device({});
    const Bytes work_bytes = kernel->algorithms()[0].workspace;
    device.open({3 * matrix + work_bytes + 2 * kCopy,
                 2 * kCopy,
                 {StreamKind::compute, StreamKind::copy, StreamKind::copy}});
    std::byte* const base = device.arena();
    const Bytes copied = 3 * matrix + work_bytes;
    struct Product {
      nn::Kernel* kernel;
      std::byte* pointers[3];
      std::byte* workspace;
    } product{kernel.get(), {base, base + matrix, base + 2 * matrix}, base + 3 * matrix};
    Work work;
    work.context = &product;
    work.run = [](void* context, std::int64_t, NativeStream stream) {
      auto& p = *static_cast<Product*>(context);
      p.kernel->run(0, p.pointers, p.workspace, stream);
    };
    const auto timed = [&](bool with_products, bool with_copies) {
      Device::EventId events[3][2];
      for (auto& pair : events) {
        for (auto& event : pair) event = device.create_timed_event();
      }
      for (int s = 0; s < 3; ++s) device.record(events[s][0], s);
      if (with_products) {
        for (int i = 0; i < kProducts; ++i) device.launch(0, work);
      }
      for (int i = 0; with_copies && i < kCopies; ++i) {
        device.copy(1, {1, 0}, {0, copied}, kCopy);
        device.copy(2, {0, copied + kCopy}, {1, kCopy}, kCopy);
      }
      for (int s = 0; s < 3; ++s) device.record(events[s][1], s);
      device.synchronize();
      std::vector<double> seconds;
      for (auto& pair : events) {
        seconds.push_back(to_seconds(device.synchronize(pair[1]) - device.synchronize(pair[0])));
      }
      return seconds;
    };
    timed(true, true);
    const auto alone = timed(true, false);
    const auto both = timed(true, true);
    const auto bandwidth = [&](double seconds) {
      return static_cast<double>(kCopy) * kCopies / std::max(seconds, 1e-9);
    };
    const double out = bandwidth(both[1]), in = bandwidth(both[2]);
    say(
        fmt::format("\nWhile an {}x{} float32 product repeats: {:.1f} GB/s out ({:.0f} % of alone "
                    "together), {:.1f} GB/s in ({:.0f} %); the products take {:+.1f} %.\n",
                    kSide, kSide, out * 1e-9, 100 * out / links_.to_host_both, in * 1e-9,
                    100 * in / links_.to_device_both, 100 * (both[0] / alone[0] - 1)));
    if (both[0] < std::max(both[1], both[2])) {
      notes_.emplace_back("The products ended before the copies did.");
    }
    json_["copies_beside_kernels"] = {{"to_host", out},
                                      {"to_device", in},
                                      {"products_seconds_alone", alone[0]},
                                      {"products_seconds", both[0]}};
  }

  /// What serving one tensor costs: a look-up in the plan, cudaMalloc, cudaMallocAsync.
  void allocations() {
    constexpr int kRounds = 20'000, kMallocs = 400;
    const auto graph = nn::build_model("vgg16");
    const auto training = nn::build_training_program(*graph, {.batch = 64}, nn::cuda_kernels());
    if (!training) return note(training.error().message);
    const auto planned = plan(training->program, *make_none(), kUnlimited);
    if (!planned) return note(planned.error().message);
    const std::vector<Placement>& placements = planned->lowered.plan.placements;
    const auto nanoseconds = [](Clock::time_point from, double count) {
      return std::chrono::duration<double, std::nano>(Clock::now() - from).count() / count;
    };
    std::byte* volatile base = nullptr;  // volatile: nothing is worked out in advance
    std::uintptr_t sum = 0;
    auto start = Clock::now();
    for (int i = 0; i < kRounds; ++i) {
      for (const Placement& p : placements) {
        sum += reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(p.offset);
      }
    }
    const double look_up =
        nanoseconds(start, static_cast<double>(kRounds) * static_cast<double>(placements.size()));
    if (sum == 1) fmt::print(stderr, "\n");  // the sum is used
    const auto size = [&](int i) {
      return static_cast<std::size_t>(
          std::max<Bytes>(1, placements[static_cast<std::size_t>(i) % placements.size()].bytes));
    };
    start = Clock::now();
    for (int i = 0; i < kMallocs; ++i) {
      void* memory = nullptr;
      TIDEPOOL_CUDA_CHECK(cudaMalloc(&memory, size(i)));
      TIDEPOOL_CUDA_CHECK(cudaFree(memory));
    }
    const double plain = nanoseconds(start, kMallocs);
    cudaStream_t stream = nullptr;
    TIDEPOOL_CUDA_CHECK(cudaStreamCreate(&stream));
    const auto pooled = [&] {
      for (int i = 0; i < kMallocs; ++i) {
        void* memory = nullptr;
        TIDEPOOL_CUDA_CHECK(cudaMallocAsync(&memory, size(i), stream));
        TIDEPOOL_CUDA_CHECK(cudaFreeAsync(memory, stream));
      }
    };
    pooled();  // fills the pool
    TIDEPOOL_CUDA_CHECK(cudaStreamSynchronize(stream));
    start = Clock::now();
    pooled();
    const double async = nanoseconds(start, kMallocs);
    TIDEPOOL_CUDA_CHECK(cudaStreamSynchronize(stream));
    TIDEPOOL_CUDA_CHECK(cudaStreamDestroy(stream));
    say(fmt::format(
        "\n| serving one tensor (sizes of vgg16, batch 64) | host time |\n|---|---|\n"
        "| look-up in the plan | {:.1f} ns |\n| cudaMallocAsync and cudaFreeAsync, warm "
        "pool | {:.0f} ns |\n| cudaMalloc and cudaFree | {:.0f} ns |\n",
        look_up, async, plain));
    json_["allocation_ns"] = {
        {"look_up", look_up}, {"cuda_malloc_async", async}, {"cuda_malloc", plain}};
  }

  void note(const std::string& text) { notes_.push_back(text); }

  Result<Planned> plan(const Program& program, Planner& planner, Bytes budget) const {
    FixedWorkload workload(program);
    PlannerOptions options;
    options.algorithms = AlgorithmPolicy::fastest;
    options.time_limit = std::chrono::seconds(3);
    return make_plan(planner, workload, machine_, {budget, 0}, options);
  }

  /// The batch whose unlimited peak is near the target; a peak grows linearly with the batch.
  Result<std::int64_t> batch_for(const nn::Graph& graph) const {
    const auto peak = [&](std::int64_t batch) -> Result<Bytes> {
      const auto training =
          nn::build_training_program(graph, {.batch = batch}, nn::reference_kernels());
      if (!training) return fail(training.error());
      const AccessIndex index(training->program);
      return load_profile(training->program, index, machine_.alignment(),
                          least_workspace_algorithms(training->program))
          .peak;
    };
    constexpr std::int64_t kSmall = 64, kLarge = 256;
    const auto small = peak(kSmall), large = peak(kLarge);
    if (!small) return fail(small.error());
    if (!large) return fail(large.error());
    const double each = static_cast<double>(*large - *small) / (kLarge - kSmall);
    const double fixed = static_cast<double>(*small) - each * kSmall;
    const auto batch =
        static_cast<std::int64_t>((static_cast<double>(arguments_.target) - fixed) / each);
    return std::max<std::int64_t>(8, batch / 8 * 8);
  }

  /// One algorithm of every op that has so many: puts their times into the program. Those that want
  /// an eighth of the target as workspace are left out: no budget of this benchmark has room.
  void measure_variant(nn::TrainingProgram& training, const nn::Dataset& data, int variant) {
    Program& program = training.program;
    std::vector<std::int32_t> choice = least_workspace_algorithms(program);
    for (std::size_t i = 0; i < choice.size(); ++i) {
      const auto& algorithms = program.ops[i].algorithms;
      const auto index = static_cast<std::size_t>(variant);
      if (index < algorithms.size() && algorithms[index].workspace <= arguments_.target / 8) {
        choice[i] = static_cast<std::int32_t>(variant);
      }
    }
    Lowering lowering(program, machine_);
    const Strategy strategy = keep_everything(program, lowering.index(), choice);
    auto lowered = lowering.lower(strategy, {kUnlimited, 0});
    if (!lowered) throw DeviceError(lowered.error().message);
    auto runner = nn::TrainingRunner::create(training, nn::cuda_kernels(), data, {});
    if (!runner) throw DeviceError(runner.error().message);
    CudaDevice device({});
    Executor executor(program, lowered->plan, device, **runner);
    executor.enter();
    executor.run(1);  // loads the modules
    executor.record_timings();
    executor.run(1);
    apply_timings(lowered->plan, executor.timings(), program);
    for (std::size_t i = 0; i < choice.size(); ++i) {
      Nanos& time = program.ops[i].algorithms[static_cast<std::size_t>(choice[i])].time;
      time = std::max(time, Nanos{1});  // 0 means not measured
    }
  }

  Run run_plan(const nn::TrainingProgram& training, const nn::Dataset& data, const Plan& plan) {
    constexpr double kSeconds = 1.5;  // of measuring
    auto runner = nn::TrainingRunner::create(training, nn::cuda_kernels(), data, {});
    if (!runner) throw DeviceError(runner.error().message);
    CudaDevice device({});
    Executor executor(training.program, plan, device, **runner);
    executor.enter();
    const Nanos warm = executor.run(2).iteration_times.back();
    Run result;
    result.iterations =
        std::clamp(static_cast<int>(kSeconds / std::max(to_seconds(warm), 1e-6)), 4, 200);
    meter_.start();
    const RunReport report = executor.run(result.iterations);
    result.energy = meter_.stop();
    std::vector<Nanos> times = report.iteration_times;
    times.erase(times.begin());  // starts from an idle device
    result.iteration = times.empty() ? Nanos{0} : median(times);
    result.arena = executor.arena_peak();
    result.driver = device.bytes_above_level();
    return result;
  }

  void row(const std::string& name, std::int64_t batch, std::string_view planner, int percent,
           const Planned& planned, const Run& run, Nanos unlimited) {
    const auto ratio = [](Nanos a, Nanos b) {
      return b.count() == 0 ? 0.0
                            : static_cast<double>(a.count()) / static_cast<double>(b.count()) - 1;
    };
    const Nanos predicted = planned.lowered.iteration_time;
    const double joules = run.energy.joules / std::max(run.iterations, 1);
    const auto power = [&](double value) {
      return meter_.available() ? fmt::format("{:.0f}", value) : std::string("-");
    };
    say(fmt::format(
        "| {} | {} | {} | {} | {} | {:+.1f} % | {} | {:+.1f} % | {:.2f} GiB | {:.2f} "
        "GiB | {} | {} | {} |\n",
        name, batch, planner, percent == 0 ? "unlimited" : fmt::format("{} %", percent),
        format_time(run.iteration), 100 * ratio(run.iteration, unlimited), format_time(predicted),
        100 * ratio(predicted, run.iteration), gib(run.arena), gib(run.driver),
        power(run.energy.average_watts), power(run.energy.maximum_watts),
        meter_.available() ? fmt::format("{:.1f}", joules) : "-"));
    json_["runs"].push_back({{"model", name},
                             {"batch", batch},
                             {"planner", planner},
                             {"budget_percent", percent},
                             {"measured_ms", to_ms(run.iteration)},
                             {"unlimited_ms", to_ms(unlimited)},
                             {"predicted_ms", to_ms(predicted)},
                             {"arena_bytes", run.arena},
                             {"footprint_bytes", planned.lowered.plan.device_bytes()},
                             {"driver_bytes", run.driver},
                             {"host_bytes", planned.lowered.plan.host_bytes()},
                             {"plan_ms", to_ms(planned.plan_time)},
                             {"average_watts", run.energy.average_watts},
                             {"maximum_watts", run.energy.maximum_watts},
                             {"joules_per_iteration", joules},
                             {"iterations", run.iterations}});
  }

  void model(const std::string& name, Clock::time_point until) {
    try {
      measure_model(name, until);
    } catch (const DeviceError& error) {
      ++failures_;
      note(fmt::format("{}: {}", name, error.what()));
    }
  }

  void measure_model(const std::string& name, Clock::time_point until) {
    const auto graph = nn::build_model(name);
    if (!graph) return note(graph.error().message);
    const auto batch = batch_for(*graph);
    if (!batch) return note(fmt::format("{}: {}", name, batch.error().message));
    auto training = nn::build_training_program(*graph, {.batch = *batch}, nn::cuda_kernels());
    if (!training) return note(fmt::format("{}: {}", name, training.error().message));
    const RepeatedSamples data(training->image, training->classes, *batch);
    std::size_t variants = 1;
    for (const Op& op : training->program.ops) variants = std::max(variants, op.algorithms.size());
    for (std::size_t v = 0; v < variants; ++v) {
      if (v > 0 && Clock::now() > until) {
        note(fmt::format("{}: no time to measure all algorithms.", name));
        break;
      }
      try {
        measure_variant(*training, data, static_cast<int>(v));
      } catch (const DeviceError& error) {
        // Without a time it is no choice.
        note(fmt::format("{}: algorithms number {}: {}", name, v, error.what()));
        forget_variant(training->program, v);
      }
    }

    const Program& program = training->program;
    const AccessIndex index(program);
    const Bytes peak =
        load_profile(program, index, machine_.alignment(), least_workspace_algorithms(program))
            .peak;
    const auto unlimited_plan = plan(program, *make_none(), kUnlimited);
    if (!unlimited_plan) return note(fmt::format("{}: {}", name, unlimited_plan.error().message));
    const Run unlimited = run_plan(*training, data, unlimited_plan->lowered.plan);
    row(name, *batch, "none", 0, *unlimited_plan, unlimited, unlimited.iteration);
    std::vector<PlannerInfo> planners(planner_list().begin(), planner_list().end());
    std::erase_if(planners, [](const PlannerInfo& info) { return info.name == "none"; });
    bring_forward(planners, kFirstPlanners, [](const PlannerInfo& info) { return info.name; });
    std::vector<std::string> left_out;
    for (const PlannerInfo& info : planners) {
      for (const int percent : kBudgets) {
        if (Clock::now() > until) {
          left_out.push_back(fmt::format("{} at {} %", info.name, percent));
          continue;
        }
        const auto planned = plan(program, *info.make(), peak * percent / 100);
        if (!planned) {
          note(
              fmt::format("{}, {} at {} %: {}", name, info.name, percent, planned.error().message));
          continue;
        }
        row(name, *batch, info.name, percent, *planned,
            run_plan(*training, data, planned->lowered.plan), unlimited.iteration);
      }
    }
    if (!left_out.empty()) {
      note(fmt::format("{}: no time for {}.", name, fmt::join(left_out, ", ")));
    }
  }

  static void forget_variant(Program& program, std::size_t variant) {
    for (Op& op : program.ops) {
      if (op.place == OpPlace::device && variant < op.algorithms.size()) {
        op.algorithms[variant].time = Nanos{0};
      }
    }
  }

  void write() {
    if (arguments_.output.empty()) return;
    std::filesystem::create_directories(arguments_.output);
    const std::filesystem::path folder(arguments_.output);
    std::ofstream(folder / "cuda.md") << markdown_.str();
    std::ofstream(folder / "cuda.json") << json_.dump(2) << "\n";
    fmt::print(stderr, "wrote {0}/cuda.md and {0}/cuda.json\n", arguments_.output);
  }

  Arguments arguments_;
  Clock::time_point deadline_;
  cuda::EnergyMeter meter_;
  LinkMeasurement links_;
  Machine machine_;
  std::ostringstream markdown_;
  Json json_;
  std::vector<std::string> notes_;
  int failures_ = 0;
};

Result<Arguments> parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--minutes") {
      a.minutes = std::atof(value.c_str());
    } else if (key == "--target") {
      const auto bytes = parse_bytes(value);
      if (!bytes) return fail(bytes.error());
      a.target = *bytes;
    } else if (key == "--models") {
      std::stringstream names(value);
      for (std::string name; std::getline(names, name, ',');) a.models.push_back(name);
    } else if (key == "--output") {
      a.output = value;
    } else {
      return fail(ErrorCode::usage, "unknown option " + key);
    }
  }
  if (argc % 2 == 0) return fail(ErrorCode::usage, "each option takes a value");
  return a;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = parse(argc, argv);
  if (!arguments) {
    fmt::print(stderr, "bench_cuda: {}\n", arguments.error().message);
    return 2;
  }
  if (const std::string reason = why_no_cuda(); !reason.empty()) {
    fmt::print("no GPU is used: {}\n", reason);
    return 0;
  }
  try {
    return Bench(*arguments).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_cuda: {}\n", error.what());
    return 1;
  }
}
