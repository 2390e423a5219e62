// tidepool models: the model zoo.
#include <fmt/format.h>

#include "base/json.h"
#include "base/quantity.h"
#include "context.h"
#include "ir/load_profile.h"
#include "nn/models/model.h"
#include "nn/training_program.h"

namespace tidepool::cli {
namespace {

std::string image_text(const nn::ImageShape& image) {
  return fmt::format("{}x{}x{}", image.channels, image.height, image.width);
}

int list_models(std::int64_t batch, bool json) {
  constexpr Bytes kAlignment = 64;
  Json rows = Json::array();
  for (const nn::ModelInfo& model : nn::models()) {
    auto graph = nn::build_model(model.name);
    if (!graph) return report(graph.error(), json);
    nn::TrainingOptions options;
    options.batch = batch;
    auto training = nn::build_training_program(*graph, options, nn::reference_kernels());
    if (!training) return report(training.error(), json);
    const AccessIndex index(training->program);
    const LoadProfile load = load_profile(training->program, index, kAlignment,
                                          least_workspace_algorithms(training->program));
    rows.push_back(
        {{"name", model.name},
         {"description", model.description},
         {"image", image_text(model.image)},
         {"parameters", training->learnable_elements()},
         {"ops", training->program.ops.size()},
         {"unlimited_peak_bytes", load.peak},
         {"smallest_feasible_bytes", smallest_budget(training->program, kAlignment).bytes}});
  }
  if (json) {
    print({{"schema", 1}, {"batch", batch}, {"models", std::move(rows)}});
    return kOk;
  }
  say("at batch {}, plain layouts, data of the size in the column image (fashion-mnist has "
      "1x28x28):\n",
      batch);
  say("{:15} {:>9} {:>11} {:>5} {:>12} {:>12}  {}\n", "name", "image", "parameters", "ops", "peak",
      "smallest", "description");
  for (const Json& r : rows) {
    say("{:15} {:>9} {:>11} {:>5} {:>12} {:>12}  {}\n", r["name"].get<std::string>(),
        r["image"].get<std::string>(), r["parameters"].get<std::int64_t>(),
        r["ops"].get<std::int64_t>(), format_bytes(r["unlimited_peak_bytes"].get<Bytes>()),
        format_bytes_up(r["smallest_feasible_bytes"].get<Bytes>()),
        r["description"].get<std::string>());
  }
  return kOk;
}

}  // namespace

void add_models(CLI::App& app, Context& context) {
  auto batch = std::make_shared<std::int64_t>(100);
  CLI::App* command = app.add_subcommand("models", "list the models and what they need");
  command->add_option("--batch", *batch, "samples in an iteration")
      ->check(whole_number(1, std::int64_t{1} << 20))
      ->capture_default_str();
  command->add_flag("--json", context.json, "one JSON object on stdout");
  command->footer("\nExample:\n  tidepool models --batch 16");
  command->callback([batch, &context] {
    context.run = [batch, &context] { return list_models(*batch, context.json); };
  });
}

}  // namespace tidepool::cli
