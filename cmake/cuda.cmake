# Sets TIDEPOOL_CUDA_FOUND: the toolkit (nvcc, the static runtime, cuBLAS' header) and cuDNN's
# header are there and TIDEPOOL_CUDA does not forbid them. Nothing is linked but the static runtime:
# what is built here starts on machines without CUDA.
set(TIDEPOOL_CUDA_FOUND FALSE)
if(NOT TIDEPOOL_CUDA)
  return()
endif()

# Machine code for the GPUs there are (A100 and kin; H100, H200) and intermediate code for later
# ones. Keep kLeastMajor in src/device/cuda/cuda_device.cpp in step.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
endif()
include(CheckLanguage)
check_language(CUDA)
set(missing "")
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  find_package(CUDAToolkit QUIET)
  find_path(TIDEPOOL_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_path(TIDEPOOL_CUBLAS_INCLUDE cublas_v2.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(NOT TARGET CUDA::cudart_static)
    list(APPEND missing "the static CUDA runtime")
  endif()
  if(NOT TIDEPOOL_CUDNN_INCLUDE)
    list(APPEND missing cudnn.h)
  endif()
  if(NOT TIDEPOOL_CUBLAS_INCLUDE)
    list(APPEND missing cublas_v2.h)
  endif()
else()
  list(APPEND missing nvcc)
endif()

if(NOT missing)
  set(TIDEPOOL_CUDA_FOUND TRUE)
  # CMake 3.25 does not know that nvcc takes C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  # Constexpr functions of base/random.h and nn/op_desc.h are shared with device code.
  string(APPEND CMAKE_CUDA_FLAGS " --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra")
  # fmt 9 takes nvcc for a compiler without constexpr, and then does not compile as C++20.
  string(APPEND CMAKE_CUDA_FLAGS " -DFMT_USE_CONSTEXPR=1")
  message(STATUS "CUDA ${CUDAToolkit_VERSION}: building the cuda device")
elseif(TIDEPOOL_CUDA STREQUAL "AUTO")
  list(JOIN missing ", " missing)
  message(STATUS "No cuda device: ${missing} not found")
else()
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "TIDEPOOL_CUDA is ON, but not found: ${missing}")
endif()
