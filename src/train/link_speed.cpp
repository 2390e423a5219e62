#include "train/link_speed.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "base/random.h"
#include "ir/load_profile.h"
#include "train/cache.h"
#include "train/measure.h"

namespace tidepool {
namespace {

constexpr std::string_view kReferenceModel = "vgg16";
constexpr std::int64_t kReferenceBatch = 100;

/// Where its time is kept; empty: nowhere.
std::filesystem::path reference_file(const Job& job) {
  const std::filesystem::path folder = cache_folder();
  if (folder.empty()) return {};
  std::uint64_t hash = 0;
  for (const char c : job.fingerprint()) hash = hash_combine(hash, static_cast<unsigned char>(c));
  return folder / fmt::format("reference-{:016x}.json", hash);
}

std::optional<Nanos> known_reference(const std::filesystem::path& file) {
  std::error_code unknown;
  if (file.empty() || !std::filesystem::exists(file, unknown)) return std::nullopt;
  const auto text = read_file(file.string());
  if (!text) return std::nullopt;
  const auto time = read_json(*text, file.string(), [](const JsonCursor& json) {
    return Nanos{json["iteration_ns"].integer(1)};
  });
  if (!time) return std::nullopt;  // a damaged file: measured anew and replaced
  return *time;
}

/// Best effort.
void remember(const std::filesystem::path& file, const Job& job, Nanos iteration) {
  if (file.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  const Json json = {{"fingerprint", job.fingerprint()}, {"iteration_ns", iteration.count()}};
  (void)write_file(file.string(), json.dump(2) + "\n");
}

/// Warnings about the job itself were given when it was made.
class ProgressOnly : public Observer {
 public:
  explicit ProgressOnly(Observer& observer) : observer_(observer) {}
  void update(double fraction, std::string_view what) override { observer_.update(fraction, what); }
  [[nodiscard]] bool stop_requested() const override { return observer_.stop_requested(); }
  void nothing_to_lose(bool begins) override { observer_.nothing_to_lose(begins); }

 private:
  Observer& observer_;
};

Machine emulated(const Job& job, double bytes_per_second) {
  constexpr Nanos kLatency{50'000};  // waking a copy thread
  Machine machine;
  machine.name = job.kind().name;
  machine.description = job.kind().description;
  machine.set_alignment(job.alignment());
  machine.to_host() = {bytes_per_second, kLatency};
  machine.to_device() = {bytes_per_second, kLatency};
  return machine;
}

Result<Nanos> measure_reference(const Job& job, const Budget& budget, Observer& all) {
  constexpr double kAnySpeed = 10e9;  // copies are not part of the time
  ProgressOnly observer(all);
  const Bytes alignment = job.alignment();
  auto reference = reference_job(job, budget.device, alignment, observer);
  if (!reference) return fail(reference.error());
  ProfilingTask task;
  task.budget = {std::max(budget.device, smallest_budget(reference->program(), alignment).bytes),
                 budget.host};
  const Machine machine = emulated(*reference, kAnySpeed);
  const auto done =
      measure(*reference, machine, task, planned_measurement(*reference, machine, task), observer);
  if (done) {
    return compute_time(reference->program(), least_workspace_algorithms(reference->program()));
  }
  if (done.error().code != ErrorCode::infeasible) return fail(done.error());
  Error error = done.error();
  error.message =
      "the speed of the emulated link follows from a VGG16 iteration, which this machine has not "
      "measured yet: " +
      error.message + "; or give the `link`";
  return fail(std::move(error));
}

}  // namespace

Result<Job> reference_job(const Job& job, Bytes budget, Bytes alignment, Observer& observer) {
  JobSpec spec;
  spec.model = kReferenceModel;
  spec.batch = kReferenceBatch;
  spec.device = job.spec().device;
  spec.device.threads = job.threads();
  spec.data.name = "synthetic";
  spec.sub_batch_statistics = true;  // it is timed, not trained
  for (spec.sub_batch = kReferenceBatch;; spec.sub_batch = (spec.sub_batch + 1) / 2) {
    auto reference = Job::make(spec, observer);
    if (!reference || spec.sub_batch == 1) return reference;
    if (smallest_budget(reference->program(), alignment).bytes <= budget) return reference;
  }
}

Result<Machine> device_machine(const Job& job, const Budget& budget, Observer& observer) {
  if (!job.kind().emulates_links()) return job.kind().calibrate();
  if (job.spec().device.link > 0) return emulated(job, static_cast<double>(job.spec().device.link));
  const std::filesystem::path file = reference_file(job);
  auto reference = known_reference(file);
  if (!reference) {
    const auto measured = measure_reference(job, budget, observer);
    if (!measured) return fail(measured.error());
    reference = *measured;
    remember(file, job, *reference);
  }
  // Published: SmartPool/AutoSwap, arXiv:1903.06631.
  constexpr double kReferenceBandwidth = 13.2e9;
  constexpr double kReferenceSeconds = 81.57e-3;
  return emulated(job, kReferenceBandwidth * kReferenceSeconds / to_seconds(*reference));
}

}  // namespace tidepool
