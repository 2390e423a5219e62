# TIDEPOOL_PORTABLE: programs that start on Linux systems older than the one that builds them, for
# scripts/gpu_bundle.sh. The value is a folder with an older C library, as scripts/old_c_library.sh
# makes it. Only the linker sees it: compiled is with the headers of this system. Everything but the
# C library is linked in.
set(TIDEPOOL_PORTABLE "" CACHE PATH "Folder with an older C library to link programs against")
if(NOT TIDEPOOL_PORTABLE)
  return()
endif()

# Debian has no archive of fmt; its headers have all of it.
add_library(fmt::fmt INTERFACE IMPORTED)
set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)

set(TIDEPOOL_CLP "" CACHE PATH "Folder with an older Clp, as scripts/old_clp.sh makes it, for the wheel")
if(TIDEPOOL_WHEEL)
  # Debian's archives are not position-independent.
  foreach(library Clp CoinUtils)
    string(TOUPPER ${library} name)
    find_library(TIDEPOOL_OLD_${library} ${library} REQUIRED NO_DEFAULT_PATH PATHS ${TIDEPOOL_CLP}/lib)
    set(${name}_LIBRARY ${TIDEPOOL_OLD_${library}} CACHE FILEPATH "" FORCE)
  endforeach()
  include_directories(SYSTEM BEFORE ${TIDEPOOL_CLP}/include)
  add_link_options(-Wl,-rpath-link,${TIDEPOOL_CLP}/lib)
else()
  # An archive does not say what it needs.
  set(clp "")
  foreach(library Clp CoinUtils lapack blas gfortran quadmath bz2 z)
    find_library(TIDEPOOL_${library}_ARCHIVE lib${library}.a REQUIRED
                 HINTS ${CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES})
    list(APPEND clp ${TIDEPOOL_${library}_ARCHIVE})
  endforeach()
  set(CLP_LIBRARY "${clp}" CACHE STRING "Clp and what it needs" FORCE)
  set(ZLIB_LIBRARY ${TIDEPOOL_z_ARCHIVE} CACHE FILEPATH "" FORCE)
endif()

# What compiled code and libstdc++ take from the C library of this system and the older one lacks.
add_library(tidepool_newer_libc OBJECT ${CMAKE_CURRENT_LIST_DIR}/newer_libc.cpp)
set_target_properties(tidepool_newer_libc PROPERTIES POSITION_INDEPENDENT_CODE ON)
link_libraries($<TARGET_OBJECTS:tidepool_newer_libc>)
# Parts of the C library of their own until 2.34.
link_libraries(-lrt -ldl)
# -B: the compiler looks beside itself before it looks into the folder.
set(libraries ${TIDEPOOL_PORTABLE}/usr/lib/x86_64-linux-gnu)
add_link_options(--sysroot=${TIDEPOOL_PORTABLE} -B${libraries}/ -L${libraries}
                 -L${TIDEPOOL_PORTABLE}/lib/x86_64-linux-gnu -L${TIDEPOOL_PORTABLE}/unwinder
                 -static-libstdc++ -static-libgcc -pthread)
