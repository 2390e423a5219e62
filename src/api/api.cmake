# The shared libraries. Both export what api/exports.map says, the interfaces in include/tidepool.
# TIDEPOOL_PORTABLE links archives of this system that are not position-independent: it has none, but
# for the wheel, which links others.
option(TIDEPOOL_SHARED "Build libtidepool.so.1" ON)
if(TIDEPOOL_PORTABLE AND NOT TIDEPOOL_WHEEL)
  set(TIDEPOOL_SHARED OFF)
endif()
if(NOT TIDEPOOL_SHARED)
  return()
endif()

set(exports ${CMAKE_CURRENT_LIST_DIR}/exports.map)
set(public_headers ${PROJECT_SOURCE_DIR}/include)

# tidepool_shared_library(NAME ALIAS SOURCES file... LINKS library...)
function(tidepool_shared_library name alias)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} SHARED ${ARG_SOURCES})
  add_library(Tidepool::${alias} ALIAS ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${alias} VERSION 1.${PROJECT_VERSION}
                                           SOVERSION 1 LINK_DEPENDS ${exports})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${public_headers}>
                                            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${name} INTERFACE cxx_std_20)
  target_compile_definitions(${name} PRIVATE TIDEPOOL_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${name} PRIVATE ${ARG_LINKS})
  target_link_options(${name} PRIVATE -Wl,--version-script=${exports} -Wl,-z,defs
                                      -Wl,--exclude-libs,ALL)
  if(TIDEPOOL_SANITIZE)
    # What sanitizers need is in the program.
    target_link_options(${name} PRIVATE -Wl,-z,undefs)
  endif()
endfunction()

file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
tidepool_shared_library(tidepool_shared tidepool SOURCES ${sources}
                        LINKS tidepool_planning tidepool_report)
set_target_properties(tidepool_shared PROPERTIES OUTPUT_NAME tidepool)

# Training needs a device. It shares nothing with the library above but errors and statuses, so that
# a program may link both.
if(TIDEPOOL_CPU_DEVICE OR TIDEPOOL_CUDA_FOUND)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/train/*.cpp)
  tidepool_shared_library(tidepool_train_shared train
                          SOURCES ${sources} ${CMAKE_CURRENT_LIST_DIR}/guard.cpp
                          LINKS tidepool_devices tidepool_train)
  set_target_properties(tidepool_train_shared PROPERTIES OUTPUT_NAME tidepool_train)
endif()

# Sessions need a device that is memory of the process.
if(TIDEPOOL_CPU_DEVICE)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/session/*.cpp)
  tidepool_shared_library(tidepool_session_shared session
                          SOURCES ${sources} ${CMAKE_CURRENT_LIST_DIR}/guard.cpp
                          LINKS tidepool_session tidepool_device_cpu)
  set_target_properties(tidepool_session_shared PROPERTIES OUTPUT_NAME tidepool_session)
endif()
