# The CUDA backend's plugin, libvitrail_cuda.so: everything that needs the vendor's headers. The program finds
# it beside itself at run time and does without it where there is none. Built where nvcc is.
set(VITRAIL_CUDA AUTO CACHE STRING "Build the CUDA plugin: AUTO (where nvcc is), ON or OFF")
set(VITRAIL_CUDA_ARCHITECTURES 90a-real CACHE STRING "GPUs to build for; the preset release-all-gpus names more")

if(VITRAIL_CUDA STREQUAL AUTO)
  find_program(VITRAIL_NVCC nvcc HINTS /usr/local/cuda/bin)
  find_package(CUDAToolkit 13 QUIET)  # an older one, or one without cuBLASLt, counts as none
endif()
if(VITRAIL_CUDA STREQUAL ON OR (VITRAIL_CUDA STREQUAL AUTO AND VITRAIL_NVCC AND TARGET CUDA::cublasLt))
  if(VITRAIL_NVCC AND NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${VITRAIL_NVCC})
  endif()
  set(CMAKE_CUDA_ARCHITECTURES ${VITRAIL_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know what nvcc 13 can
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  find_package(CUDAToolkit REQUIRED)
  if(CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
  endif()
  file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cuda/device/*.cu)
  add_library(vitrail_cuda MODULE ${cuda_sources})
  set_target_properties(vitrail_cuda PROPERTIES CUDA_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} CUDA_RUNTIME_LIBRARY Static)
  target_compile_options(vitrail_cuda PRIVATE -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers)
  # What it takes from the layers below stays inside: those symbols are the program's own elsewhere.
  target_link_libraries(vitrail_cuda PRIVATE vt_tensor CUDA::cublasLt)
  target_link_options(vitrail_cuda PRIVATE LINKER:--exclude-libs,ALL LINKER:--no-undefined)
  message(STATUS "CUDA plugin: ${CMAKE_CUDA_COMPILER_VERSION} for ${VITRAIL_CUDA_ARCHITECTURES}")
else()
  message(STATUS "CUDA plugin: not built (nvcc 13 and cuBLASLt not found)")
endif()
