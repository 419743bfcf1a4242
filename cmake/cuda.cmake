# The CUDA backend's plugin, libvitrail_cuda.so: everything that needs the vendor's headers. The program finds
# it beside itself at run time and does without it where there is none. Built where nvcc is.
set(VITRAIL_CUDA AUTO CACHE STRING "Build the CUDA plugin: AUTO (where nvcc is), ON or OFF")
set(VITRAIL_CUDA_ARCHITECTURES 90a-real CACHE STRING "GPUs to build for; the preset release-all-gpus names more")

# Program and plugin each carry a hash of the headers they agree on: one made from others is refused.
file(GLOB cuda_agreement CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cuda/api/*.h)
list(APPEND cuda_agreement ${CMAKE_SOURCE_DIR}/src/tensor/dtype.h ${CMAKE_SOURCE_DIR}/src/base/error.h
  ${CMAKE_SOURCE_DIR}/include/vitrail/error.h ${CMAKE_SOURCE_DIR}/src/image/image_recipe.h
  ${CMAKE_SOURCE_DIR}/src/ops/act_kind.h)
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

# Most of what nvcc takes for a small source is the reading of headers, and CMake 3.25 unites no CUDA sources: with
# VITRAIL_UNITY each of these rows is compiled as one. Sources of a row share no names of their anonymous namespaces, nor
# such names with headers of each other. They are chosen so that every kernel keeps its registers and its shared memory:
# the alignment of an `extern __shared__` array counts for all kernels of a row, and a function that two of its sources
# call (block_sum<256>, pow) may be inlined otherwise. What is in no row stands alone: sources whose
# kernels take long by themselves (hopper_gemm, hopper_small, finish_gemm, norm_grads, attention_forward_stream,
# attention_backward_stream), and plugin, which is compiled with a definition of its own.
set(cuda_units
  "attention attention_backward attention_long"
  "attention_backward_long attention_forward"
  "attention_backward_plain attention_groups"
  "attention_backward_groups attention_plain"
  "attention_one attention_one_backward"
  "copy_accumulate losses rms updates"
  "dropout patches quantize_columns rows sums tensor_maps"
  "foreign gemm moves session softmax tokens"
  "images lamb norms quantize step_control tiled_gemm"
  "quantize_warps streams")

# Puts a source that includes those of a row in their place, for each row.
function(vt_unite_cuda sources)
  set(left ${${sources}})
  if(VITRAIL_UNITY)
    foreach(unit ${cuda_units})
      string(REGEX MATCH "^[a-z_]+" first ${unit})
      separate_arguments(members UNIX_COMMAND ${unit})
      list(TRANSFORM members REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/src/backend/cuda/device/\\1.cu")
      list(REMOVE_ITEM left ${members})
      list(TRANSFORM members REPLACE "(.+)" "#include \"\\1\"\n")
      string(JOIN "" text ${members})
      file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/cuda_units/${first}.cu CONTENT "${text}" @ONLY)
      list(APPEND left ${CMAKE_BINARY_DIR}/cuda_units/${first}.cu)
    endforeach()
  endif()
  set(${sources} ${left} PARENT_SCOPE)
endfunction()

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
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cuda/device/*.cu)
  vt_unite_cuda(cuda_sources)
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
