# Headers that most files read are parsed once a build. Every file still includes what it uses: the
# builds of `make lint` and of the fuzz targets precompile nothing (CMAKE_DISABLE_PRECOMPILE_HEADERS).
#
# Most of a full build is the compiler reading the same headers and making the same templates. Slow
# beside that: CLI11 (cli11_fwd.h has its names), JSON (base/json_fwd.h), and what copies or looks
# into an OpDesc: special members of AnyOp, LayerSpec and TrainingProgram are defined once.
set(TIDEPOOL_STANDARD_HEADERS
    <algorithm> <array> <atomic> <chrono> <filesystem> <functional> <map> <memory> <mutex> <optional>
    <set> <span> <string> <thread> <unordered_map> <variant> <vector> <fmt/format.h> <tl/expected.hpp>)

# tidepool_precompile(TARGET KIND [HEADER...]): the standard headers and HEADER... for TARGET, once
# for all targets of one KIND: these agree on compiler flags and headers.
function(tidepool_precompile target kind)
  get_property(owner GLOBAL PROPERTY tidepool_precompiled_${kind})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    set_property(GLOBAL PROPERTY tidepool_precompiled_${kind} ${target})
    target_precompile_headers(${target} PRIVATE ${TIDEPOOL_STANDARD_HEADERS} ${ARGN})
  endif()
endfunction()

option(TIDEPOOL_UNITY "Compile files of most folders together: quicker full builds" ON)

# tidepool_compile_together(TARGET COUNT): COUNT files of TARGET in one piece. Most of what the
# compiler makes of these is templates, the same in each. Local names must differ within a target.
function(tidepool_compile_together target count)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TIDEPOOL_UNITY}
                                             UNITY_BUILD_BATCH_SIZE ${count})
endfunction()
