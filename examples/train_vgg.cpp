// Trains a network inside a memory budget: example_train_vgg [MODEL [BATCH [BUDGET [ITERATIONS]]]]
#include <cstdio>
#include <cstdlib>

#include "train/train.h"
#include "train/training_spec.h"

int main(int argc, char** argv) {
  using namespace tidepool;  // NOLINT(google-build-using-namespace)
  const auto argument = [&](int i, const char* usual) { return argc > i ? argv[i] : usual; };
  const auto budget = parse_size_or_percent(argument(3, "60%"));
  if (!budget) return std::fprintf(stderr, "%s\n", budget.error().message.c_str()), 2;

  TrainingSpec spec;
  spec.job.model = argument(1, "vgg11");
  spec.job.batch = std::atoll(argument(2, "64"));
  spec.job.data.name = "synthetic";
  spec.job.device.link = 1'000'000'000;  // bytes per second, of the emulated accelerator
  spec.budget.device = *budget;
  spec.iterations = std::atoll(argument(4, "10"));

  TrainingObserver observer;  // derive from it to watch progress, or to stop early
  const auto report = run_training(spec, observer);
  if (!report) return std::fprintf(stderr, "%s\n", report.error().message.c_str()), 1;

  std::printf("%s: %s used of a budget of %s\n", spec.job.model.c_str(),
              format_bytes(report->arena_peak).c_str(),
              format_bytes(report->start.budget.device).c_str());
  for (std::size_t i = 0; i < report->losses.size(); ++i) {
    std::printf("  iteration %zu: loss %.4f\n", i + 1, static_cast<double>(report->losses[i]));
  }
}
