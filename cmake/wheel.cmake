# TIDEPOOL_WHEEL: what the Python package ships in tidepool_torch/lib, as the install component
# `wheel`: libtidepool.so.1, the module with Clp that it loads, and the allocator hook. python/pyproject.toml
# turns it on, scripts/torch_wheel.sh with TIDEPOOL_PORTABLE and TIDEPOOL_CLP, a folder as
# scripts/old_clp.sh makes it; without these the wheel runs on systems like this one.
if(NOT TIDEPOOL_WHEEL)
  return()
endif()

enable_language(C)
add_library(tidepool_torch_hook MODULE ${PROJECT_SOURCE_DIR}/python/hook/hook.c)
# Nothing is linked into it: what programs get for older systems is C++.
set_target_properties(tidepool_torch_hook PROPERTIES C_STANDARD 11 LINK_LIBRARIES "")
# The functions that it stands before: the compiler may assume nothing of them.
target_compile_options(tidepool_torch_hook PRIVATE -fno-builtin -Wall -Wextra -Werror)
target_link_options(tidepool_shared PRIVATE -s)
target_link_options(tidepool_clp PRIVATE -s -Wl,--exclude-libs,ALL)
target_link_options(tidepool_torch_hook PRIVATE -s -Wl,-z,defs)
add_custom_target(wheel_parts DEPENDS tidepool_shared tidepool_clp tidepool_torch_hook)

set(place tidepool_torch/lib)
# A wheel holds no links, so the library has the one name that is looked for.
install(FILES $<TARGET_FILE:tidepool_shared> DESTINATION ${place} RENAME libtidepool.so.1
        PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ WORLD_READ COMPONENT wheel)
install(TARGETS tidepool_clp LIBRARY DESTINATION ${place}/tidepool COMPONENT wheel)
install(TARGETS tidepool_torch_hook LIBRARY DESTINATION ${place} COMPONENT wheel)
set(licenses ${place}/licenses)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${licenses} RENAME tidepool.txt COMPONENT wheel)
foreach(package libfmt-dev nlohmann-json3-dev libexpected-dev)
  install(FILES /usr/share/doc/${package}/copyright DESTINATION ${licenses} RENAME ${package}.txt
          COMPONENT wheel OPTIONAL)
endforeach()
if(TIDEPOOL_CLP)
  install(DIRECTORY ${TIDEPOOL_CLP}/licenses/ DESTINATION ${licenses} COMPONENT wheel)
endif()
