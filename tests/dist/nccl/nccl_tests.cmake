# A library with NCCL's symbols whose devices are the host, and one that is too old: VITRAIL_NCCL of a program, or
# VT_FAKE_NCCL of a test, names it.
foreach(fake fake_nccl old_nccl)
  add_library(${fake} MODULE ${CMAKE_CURRENT_SOURCE_DIR}/dist/nccl/fake_nccl.cpp)
  target_link_libraries(${fake} PRIVATE vt_dist)
  # A name of its own, as NCCL has one, by which the loader knows it once it is open.
  target_link_options(${fake} PRIVATE LINKER:--exclude-libs,ALL LINKER:--no-undefined LINKER:-soname,lib${fake}.so)
  set_target_properties(${fake} PROPERTIES CXX_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake)
endforeach()
target_compile_definitions(old_nccl PRIVATE FAKE_VERSION=21005)

foreach(program test_api test_dist test_ranks)
  add_dependencies(${program} fake_nccl old_nccl)
  target_compile_definitions(${program} PRIVATE VT_FAKE_NCCL="$<TARGET_FILE:fake_nccl>"
    VT_OLD_NCCL="$<TARGET_FILE:old_nccl>")
endforeach()
# The suite of collectives runs on GPUs, too, where the ranks' tests know them.
set(cases sum_cases move_cases group_cases ranks)
list(TRANSFORM cases REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/dist/\\1.cpp")
target_sources(test_ranks PRIVATE ${cases})
