// The colours of all pictures and what each stands for, for light and dark backgrounds. Told apart
// by lightness too, so that they do not rest on hue alone.
#pragma once

#include <span>
#include <string_view>

#include "report/timeline.h"
#include "schedule/strategy.h"

namespace tidepool {

struct Colour {
  std::string_view name;   ///< CSS class and variable: "optimizer-state"
  std::string_view label;  ///< in legends; empty: in none
  std::string_view light;
  std::string_view dark;
};

std::span<const Colour> palette();

/// The order in which kinds are stacked in the load curve, from the bottom up: what moves least
/// comes first.
inline constexpr TensorKind kStackOrder[] = {TensorKind::weight,   TensorKind::optimizer_state,
                                             TensorKind::input,    TensorKind::activation,
                                             TensorKind::gradient, TensorKind::workspace};

/// Names in the palette.
std::string_view colour_of(TensorKind kind);
std::string_view colour_of(Decision decision);
std::string_view colour_of(RunKind kind);

}  // namespace tidepool
