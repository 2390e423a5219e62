#include "planning/learning.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/output_file.h"
#include "planners/settings.h"
#include "planning/make_plan.h"

namespace tidepool {

Result<void> check_planner_settings(std::span<const std::string> planners,
                                    const OptionValues& values) {
  if (auto sound = check_read_by(planners, values); !sound) return sound;
  OptionValues contents;
  if (auto read = read_input_files(values, contents); !read) return read;
  const std::vector<std::string> inputs = files_of(values, OptionType::input_file);
  const std::vector<std::string> outputs = files_of(values, OptionType::output_file);
  for (const std::string& output : outputs) {
    if (auto writable = check_writable(output); !writable) return writable;
  }
  if (auto distinct = check_distinct(outputs); !distinct) return distinct;
  for (const std::string& output : outputs) {
    if (auto other = check_no_input(output, inputs); !other) return other;
  }
  return {};
}

bool keeps_record(const OptionValues& values) {
  return !files_of(values, OptionType::output_file).empty();
}

Result<void> write_learning(const OptionValues& values, Planned& planned) {
  if (!keeps_record(values)) return {};
  const QLearningRecord nothing;
  const QLearningRecord& record = planned.learning ? *planned.learning : nothing;
  if (const std::string log = values.text("episode_log"); !log.empty()) {
    if (auto written = write_file(log, episode_csv(record)); !written) return written;
  }
  const std::string network = values.text("save_network");
  if (network.empty()) return {};
  if (!record.network.empty()) return write_file(network, record.network);
  planned.notes.push_back("nothing was learned: `save_network` is not written");
  return {};
}

std::string episode_csv(const QLearningRecord& record) {
  std::string csv = "episode,steps,return,overhead,best,loss\n";
  std::size_t number = 0;
  for (const QLearningEpisode& e : record.episodes) {
    csv += fmt::format("{},{},{},{},{},{}\n", ++number, e.steps, e.episode_return,
                       e.overhead ? fmt::format("{}", *e.overhead) : "",
                       e.best ? fmt::format("{}", *e.best) : "", e.loss);
  }
  return csv;
}

}  // namespace tidepool
