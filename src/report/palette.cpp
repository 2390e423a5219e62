#include "report/palette.h"

namespace tidepool {
namespace {

constexpr Colour kPalette[] = {
    {"background", "", "#ffffff", "#14171b"},
    {"panel", "", "#f6f7f9", "#1b1f25"},
    {"text", "", "#1f2328", "#e6e9ed"},
    {"muted", "", "#626b75", "#9aa5b1"},
    {"grid", "", "#dfe3e8", "#2d343d"},

    {"activation", "activation", "#7db8e3", "#4d8fc2"},
    {"weight", "weight", "#3c4c9c", "#8493ea"},
    {"optimizer-state", "optimizer state", "#a36ec4", "#bb90d8"},
    {"gradient", "gradient", "#e3b94d", "#d3a83e"},
    {"input", "input", "#83933a", "#a5b552"},
    {"workspace", "workspace", "#9aa0a6", "#7d858e"},

    {"keep", "kept", "#b9c1ca", "#56606b"},
    {"swap", "swapped", "#2f86a6", "#45a5c8"},
    {"drop", "dropped, host copy valid", "#93d0c4", "#8fd6c8"},
    {"recompute", "recomputed", "#dd7a00", "#f79c42"},

    {"op", "op", "#66727f", "#8793a1"},
    {"host-op", "host op", "#8d8d8d", "#8d8d8d"},
    {"copy-out", "copy out", "#97305f", "#e0699f"},
    {"copy-in", "copy in", "#16846b", "#3fc4a3"},
    {"stall", "stall of compute", "#d92b2b", "#ff5a4c"},
};

}  // namespace

std::span<const Colour> palette() { return kPalette; }

std::string_view colour_of(TensorKind kind) {
  switch (kind) {
    case TensorKind::input:
      return "input";
    case TensorKind::weight:
      return "weight";
    case TensorKind::optimizer_state:
      return "optimizer-state";
    case TensorKind::activation:
      return "activation";
    case TensorKind::gradient:
      return "gradient";
    case TensorKind::workspace:
      break;
  }
  return "workspace";
}

std::string_view colour_of(Decision decision) { return to_string(decision); }

std::string_view colour_of(RunKind kind) {
  switch (kind) {
    case RunKind::op:
      return "op";
    case RunKind::recomputation:
      return "recompute";
    case RunKind::host_op:
      return "host-op";
    case RunKind::copy_out:
      return "copy-out";
    case RunKind::copy_in:
      break;
  }
  return "copy-in";
}

}  // namespace tidepool
