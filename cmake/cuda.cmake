# The CUDA backend's plugin, libvitrail_cuda.so: everything that needs the vendor's headers. The program finds
# it beside itself at run time and does without it where there is none. Built where nvcc is.
set(VITRAIL_CUDA AUTO CACHE STRING "Build the CUDA plugin: AUTO (where nvcc is), ON or OFF")
set(VITRAIL_CUDA_ARCHITECTURES 90a-real CACHE STRING "GPUs to build for; the preset release-all-gpus names more")

# Program and plugin each carry a hash of the headers they agree on: one made from others is refused.
file(GLOB cuda_agreement CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cuda/api/*.h)
list(APPEND cuda_agreement ${CMAKE_SOURCE_DIR}/src/tensor/dtype.h ${CMAKE_SOURCE_DIR}/src/base/error.h
  ${CMAKE_SOURCE_DIR}/include/vitrail/error.h ${CMAKE_SOURCE_DIR}/src/image/image_recipe.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${cuda_agreement})
set(cuda_hashes)
foreach(header ${cuda_agreement})
  file(SHA256 ${header} cuda_hash)
  string(APPEND cuda_hashes ${cuda_hash})
endforeach()
string(SHA256 cuda_hash ${cuda_hashes})
string(SUBSTRING ${cuda_hash} 0 16 cuda_hash)
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/backend/cuda/plugin.cpp
  ${CMAKE_SOURCE_DIR}/src/backend/cuda/device/plugin.cu PROPERTIES COMPILE_DEFINITIONS VITRAIL_CUDA_API=0x${cuda_hash})

if(VITRAIL_CUDA STREQUAL AUTO)
  find_program(VITRAIL_NVCC nvcc HINTS /usr/local/cuda/bin)
  find_package(CUDAToolkit 13 QUIET)  # an older one, or one without cuBLASLt, counts as none
endif()
if(VITRAIL_CUDA STREQUAL ON OR (VITRAIL_CUDA STREQUAL AUTO AND VITRAIL_NVCC AND TARGET CUDA::cublasLt))
  if(VITRAIL_NVCC AND NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${VITRAIL_NVCC})
  endif()
  set(CMAKE_CUDA_ARCHITECTURES ${VITRAIL_CUDA_ARCHITECTURES})
  # What Hopper alone has is behind the "a": without it its GEMMs and attention would be missing.
  list(TRANSFORM CMAKE_CUDA_ARCHITECTURES REPLACE "^90(-real|-virtual)?$" "90a-real")
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
