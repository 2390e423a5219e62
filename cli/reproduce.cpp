// tidepool reproduce: published tables and figures beside this project's results on the same work.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "reproduce/reproduction.h"

namespace tidepool::cli {
namespace {

struct Reproduction {
  const char* name;
  const char* title;
  Result<void> (*run)(const ReproduceArguments&, TableReport&);
};

constexpr Reproduction kReproductions[] = {
    {"table1", "Table I of SmartPool/AutoSwap: memory pools against cudaMalloc", reproduce_table1},
    {"table2", "Table II of SmartPool/AutoSwap: load reduction without overhead", reproduce_table2},
    {"fig8", "Figure 8 of SmartPool/AutoSwap: memory load of VGG16", reproduce_fig8},
    {"fig9", "Figure 9 of SmartPool/AutoSwap: overhead of VGG16 under load limits", reproduce_fig9},
    {"fig10", "Figure 10 of SmartPool/AutoSwap: footprint against CnMem", reproduce_fig10},
    {"fig11", "Figure 11 of SmartPool/AutoSwap: overhead and footprint reduction of four systems",
     reproduce_fig11},
    {"home", "HOME, section 4: largest batches, throughput and where the time goes",
     reproduce_home},
    {"modnn", "moDNN, section 7: memory, time and copies in budgets, and each technique alone",
     reproduce_modnn},
    {"dqn", "Deep Q-network, figure 5: overhead against memory reduction of eight workloads",
     reproduce_dqn},
};

int run_reproduce(const Reproduction& what, const ReproduceArguments& a, bool json) {
  catch_interrupts();
  TableReport report_of_it(what.name, what.title, json);
  if (auto done = what.run(a, report_of_it); !done) return report(done.error(), json);
  return report_of_it.finish();
}

}  // namespace

void add_reproduce(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ReproduceArguments>();
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "reproduce", "published tables and figures beside our results on the same work");
  std::vector<std::string> names;
  for (const Reproduction& r : kReproductions) names.emplace_back(r.name);
  command->add_option("what", *name, fmt::format("{}", fmt::join(names, ", ")))
      ->required()
      ->check(CLI::IsMember(names));
  command->add_option("--models,--networks,--workloads", arguments->models, "only these networks")
      ->delimiter(',');
  command->add_option("--systems", arguments->systems, "home: only these systems")->delimiter(',');
  command->add_option("--batches", arguments->batches, "fig10: these batch sizes")
      ->delimiter(',')
      ->check(whole_number(1, std::int64_t{1} << 20));
  command
      ->add_option("--limits", arguments->limits,
                   "only these limits: of fig9 such as 280MiB, of fig11 and dqn such as 50% of the "
                   "peak, of modnn "
                   "budgets such as 6GB besides the card's")
      ->delimiter(',');
  command->add_option("--data", arguments->data, "folder with vgg16-trace/, the measured trace")
      ->capture_default_str();
  add_duration_option(
      *command, "--time-limit", arguments->time_limit,
      "for one search: a packing (table1), a linear program (table2), a plan "
      "(fig9, fig11, home, modnn, dqn), a footprint (fig10); default: printed with the constants");
  add_seed_option(*command, arguments->seed, "of the searches");
  command
      ->add_option("--episodes", arguments->episodes,
                   "dqn: of the training of each plan; default: until the time limit, or its own")
      ->check(whole_number(1, std::int64_t{1} << 20));
  command->add_option("-o,--output", arguments->output,
                      "dqn: write its curves to this file (JSON), as they are finished");
  command->add_option("--pictures", arguments->pictures,
                      "dqn: write a picture (SVG) of each workload to this folder");
  command->add_flag("--json", context.json, "one JSON object on stdout");
  command->footer(R"(
Columns named published_* (publ.) are the paper's figures, all others are computed here: on the
measured trace of VGG16 (vgg16-trace) where it tells, otherwise on networks of the zoo with times of
the gtx1080ti preset (home: rtx2080ti, modnn: k40). Every constant behind them is printed. Ctrl-C prints what is finished.

Examples:
  tidepool reproduce table1
  tidepool reproduce table2 --models vgg16,resnet18-cifar --time-limit 30
  tidepool reproduce fig9 --data ../shared/data --json
  tidepool reproduce fig10 --models resnet50-cifar --batches 50,100
  tidepool reproduce fig11 --models vgg16 --limits 60%,40%
  tidepool reproduce home --models vgg16 --systems pytorch,home --time-limit 200ms
  tidepool reproduce modnn --networks resnet34,vgg16-imagenet --limits 4GB,2GB
  tidepool reproduce dqn --workloads vgg16,unet --limits 60% --episodes 20 -o curves.json)");
  command->callback([arguments, name, &context] {
    const auto* what = std::find_if(std::begin(kReproductions), std::end(kReproductions),
                                    [&](const Reproduction& r) { return *name == r.name; });
    context.run = [arguments, what, &context] {
      return run_reproduce(*what, *arguments, context.json);
    };
  });
}

}  // namespace tidepool::cli
