# What `cmake --install` installs: the program, the libraries, their headers, what finds them, and
# the tool that writes program files. Not where Tidepool is a part of another project, unless that
# asks for it.
option(TIDEPOOL_INSTALL "Install rules" ${PROJECT_IS_TOP_LEVEL})
if(NOT TIDEPOOL_INSTALL)
  return()
endif()

include(CMakePackageConfigHelpers)
# Everything that is built to be installed, which `make install` asks for by this name.
add_custom_target(install_parts DEPENDS tidepool)
install(TARGETS tidepool)
# What the program and the library load, where both look.
foreach(module tidepool_clp tidepool_torch)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION lib/tidepool)
    add_dependencies(install_parts ${module})
  endif()
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/network_program.py
        DESTINATION ${CMAKE_INSTALL_DATADIR}/tidepool)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/networks
        DESTINATION ${CMAKE_INSTALL_DATADIR}/tidepool
        PATTERN __pycache__ EXCLUDE)
if(NOT TARGET tidepool_shared)
  return()
endif()

set(libraries tidepool_shared)
set(TIDEPOOL_LIBRARY_NAMES tidepool)
set(headers tidepool.h error.h program.h machine.h plan.h pack.h)
if(TARGET tidepool_train_shared)
  list(APPEND libraries tidepool_train_shared)
  list(APPEND TIDEPOOL_LIBRARY_NAMES tidepool_train)
  list(APPEND headers train.h)
endif()
if(TARGET tidepool_session_shared)
  list(APPEND libraries tidepool_session_shared)
  list(APPEND TIDEPOOL_LIBRARY_NAMES tidepool_session)
  list(APPEND headers session.h fixed_pool.h)
endif()
list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/include/tidepool/)
install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tidepool)
install(TARGETS ${libraries} EXPORT TidepoolTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
add_dependencies(install_parts ${libraries})

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Tidepool)
install(EXPORT TidepoolTargets NAMESPACE Tidepool:: DESTINATION ${package})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/TidepoolConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/TidepoolConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TidepoolConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TidepoolConfig.cmake
              ${PROJECT_BINARY_DIR}/TidepoolConfigVersion.cmake DESTINATION ${package})

# The folders of a .pc file are relative to itself, so that what is installed may be moved.
string(REGEX REPLACE "[^/]+" ".." up ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(TIDEPOOL_PC_PREFIX "\${pcfiledir}/${up}")
set(description_tidepool "Plans training iterations inside a memory budget")
set(description_tidepool_train "Trains deep networks inside a memory budget")
set(description_tidepool_session "Keeps the blocks of a program inside a memory budget")
foreach(name ${TIDEPOOL_LIBRARY_NAMES})
  set(TIDEPOOL_PC_NAME ${name})
  set(TIDEPOOL_PC_DESCRIPTION ${description_${name}})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/tidepool.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
