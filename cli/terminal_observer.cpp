#include "terminal_observer.h"

#include "context.h"
#include "option_names.h"

namespace tidepool::cli {
namespace {

/// What to do about it, where there is an option for that.
const char* hint(Notice kind) {
  switch (kind) {
    case Notice::profile_from_cache:
      return " (--reprofile measures anew)";
    case Notice::plan_from_cache:
      return " (--replan plans anew)";
    default:
      return "";
  }
}

}  // namespace

void TerminalObserver::update(double fraction, std::string_view what) {
  progress_.update(fraction, what);
}

void TerminalObserver::notice(Notice kind, const std::string& text) {
  inform("tidepool: {}{}\n", with_option_names(text), hint(kind));
}

bool TerminalObserver::stop_requested() const { return interrupted(); }

int TerminalObserver::report_promptly() { return report_interruption(); }

void TerminalObserver::nothing_to_lose(bool begins) {
  nothing_to_lose_ += begins ? 1 : -1;
  if (nothing_to_lose_ > 0 && !prompt_) prompt_.emplace([this] { return report_promptly(); });
  if (nothing_to_lose_ == 0) prompt_.reset();
}

}  // namespace tidepool::cli
