#include "option_names.h"

#include <utility>

namespace tidepool::cli {
namespace {

constexpr std::pair<std::string_view, std::string_view> kOptions[] = {
    {"baseline", "--baseline"},
    {"batch", "--batch"},
    {"budget", "--budget"},
    {"checkpoint", "--checkpoint"},
    {"clusters", "--clusters"},
    {"data", "--data"},
    {"data_folder", "--data-dir"},
    {"devices", "--devices"},
    {"dqn_discount", "--dqn-discount"},
    {"dqn_published", "--dqn-published"},
    {"dqn_rate", "--dqn-rate"},
    {"dqn_reach", "--dqn-reach"},
    {"dqn_uniform", "--dqn-uniform"},
    {"dqn_width", "--dqn-width"},
    {"episode_log", "--episode-log"},
    {"episodes", "--episodes"},
    {"epochs", "--epochs"},
    {"evaluations", "--evaluations"},
    {"file_folder", "--file-folder"},
    {"file_limit", "--file-limit"},
    {"file_tier", "--file-tier"},
    {"foreign", "--foreign"},
    {"graph", "--graph"},
    {"host_budget", "--host-budget"},
    {"iterations", "--iterations"},
    {"learning_rate", "--learning-rate"},
    {"link", "--link"},
    {"machine", "--machine"},
    {"memory", "--memory"},
    {"modnn_one_stream", "--modnn-one-stream"},
    {"modnn_weights_leave", "--modnn-weights-leave"},
    {"nondeterministic", "--allow-nondeterministic"},
    {"network", "--network"},
    {"plan", "--plan"},
    {"planner", "--planner"},
    {"profile", "--profile"},
    {"program", "--program"},
    {"pso_iterations", "--pso-iterations"},
    {"pso_particles", "--pso-particles"},
    {"resident", "--resident"},
    {"resume", "--resume"},
    {"save_network", "--save-network"},
    {"sequence", "--sequence"},
    {"spill", "--spill"},
    {"spill_limit", "--spill-limit"},
    {"spill_speed", "--spill-speed"},
    {"sub_batch", "--sub-batch"},
    {"sub_batch_statistics", "--sub-batch-statistics"},
    {"tf32", "--tf32"},
    {"threads", "--threads"},
    {"time_limit", "--time-limit"},
    {"trace", "--trace"},
    {"verify", "--verify"},
    {"weight_decay", "--weight-decay"},
};

/// Empty: it is no field.
std::string_view option_of(std::string_view field) {
  for (const auto& [name, option] : kOptions) {
    if (name == field) return option;
  }
  return {};
}

}  // namespace

std::string with_option_names(std::string_view text) {
  std::string named;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find('`', at);
    const std::size_t close = open == std::string_view::npos ? open : text.find('`', open + 1);
    if (close == std::string_view::npos) return named.append(text.substr(at));
    named.append(text.substr(at, open - at));
    const std::string_view option = option_of(text.substr(open + 1, close - open - 1));
    if (option.empty()) {
      named.push_back('`');
      at = open + 1;
    } else {
      named.append(option);
      at = close + 1;
    }
  }
  return named;
}

}  // namespace tidepool::cli
