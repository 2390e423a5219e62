// tidepool models: the model zoo.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "base/quantity.h"
#include "context.h"
#include "ir/load_profile.h"
#include "nn/models/model.h"
#include "nn/training_program.h"
#include "option_names.h"

namespace tidepool::cli {
namespace {

std::string sample_text(const nn::ModelInfo& model) {
  if (model.takes_text()) return fmt::format("{} tokens", model.sequence);
  return fmt::format("{}x{}x{}", model.image.channels, model.image.height, model.image.width);
}

Result<nn::TrainingProgram> program_of(const nn::ModelInfo& model, std::int64_t batch) {
  auto graph = nn::build_model(model.name);
  if (!graph) return fail(graph.error());
  nn::TrainingOptions options;
  options.batch = batch;
  return nn::build_training_program(*graph, options, nn::reference_kernels());
}

/// Null where the batch makes a tensor too large for kernels.
Json bytes_of(const Result<nn::TrainingProgram>& training, bool peak) {
  constexpr Bytes kAlignment = 64;
  if (!training) return nullptr;
  if (!peak) return smallest_budget(training->program, kAlignment).bytes;
  const AccessIndex index(training->program);
  return load_profile(training->program, index, kAlignment,
                      least_workspace_algorithms(training->program))
      .peak;
}

std::string text_of(const Json& bytes, bool up) {
  if (bytes.is_null()) return "-";
  return up ? format_bytes_up(bytes.get<Bytes>()) : format_bytes(bytes.get<Bytes>());
}

int list_models(std::int64_t batch, bool json) {
  Json rows = Json::array();
  std::string too_large;
  for (const nn::ModelInfo& model : nn::models()) {
    const auto training = program_of(model, batch);
    const auto one = training ? Result<nn::TrainingProgram>(*training) : program_of(model, 1);
    if (!one) return report(one.error(), json);
    if (!training) too_large += fmt::format("\n-: {}", training.error().message);
    Json row = {{"name", model.name},
                {"description", model.description},
                {"sample", sample_text(model)},
                {"parameters", one->learnable_elements()},
                {"ops", one->program.ops.size()},
                {"unlimited_peak_bytes", bytes_of(training, true)},
                {"smallest_feasible_bytes", bytes_of(training, false)}};
    if (!model.takes_text()) row["image"] = row["sample"];
    rows.push_back(std::move(row));
  }
  if (json) {
    print({{"schema", 1}, {"batch", batch}, {"models", std::move(rows)}});
    return kOk;
  }
  say("at batch {}, plain layouts, data of the size in the column sample (fashion-mnist has "
      "1x28x28; of text see --sequence):\n",
      batch);
  say("{:16} {:>11} {:>11} {:>5} {:>12} {:>12}  {}\n", "name", "sample", "parameters", "ops",
      "peak", "smallest", "description");
  for (const Json& r : rows) {
    say("{:16} {:>11} {:>11} {:>5} {:>12} {:>12}  {}\n", r["name"].get<std::string>(),
        r["sample"].get<std::string>(), r["parameters"].get<std::int64_t>(),
        r["ops"].get<std::int64_t>(), text_of(r["unlimited_peak_bytes"], false),
        text_of(r["smallest_feasible_bytes"], true), r["description"].get<std::string>());
  }
  if (!too_large.empty()) say("{}\n", with_option_names(too_large));
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
