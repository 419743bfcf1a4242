# The MPI transport's plugin, libvitrail_mpi.so: everything that needs MPI's headers. The program finds it beside
# itself at run time and does without it where there is none. Built where MPI is found.
set(VITRAIL_MPI AUTO CACHE STRING "Build the MPI plugin: AUTO (where MPI is), ON or OFF")

# Program and plugin each carry a hash of the headers they agree on: one made from others is refused.
set(mpi_hashes)
foreach(header dist/mpi_world.h dist/communicator.h tensor/dtype.h base/error.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${header})
  file(SHA256 ${CMAKE_SOURCE_DIR}/src/${header} mpi_hash)
  string(APPEND mpi_hashes ${mpi_hash})
endforeach()
string(SHA256 mpi_hash ${mpi_hashes})
string(SUBSTRING ${mpi_hash} 0 16 mpi_hash)
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/dist/mpi_world.cpp ${CMAKE_SOURCE_DIR}/src/dist/mpi/plugin.cpp
  PROPERTIES COMPILE_DEFINITIONS VITRAIL_MPI_API=0x${mpi_hash})

if(NOT VITRAIL_MPI STREQUAL OFF)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
  if(VITRAIL_MPI STREQUAL ON AND NOT MPI_CXX_FOUND)
    message(FATAL_ERROR "MPI not found: apt install openmpi-bin libopenmpi-dev")
  endif()
endif()
if(MPI_CXX_FOUND AND NOT VITRAIL_MPI STREQUAL OFF)
  file(GLOB mpi_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/dist/mpi/*.cpp)
  add_library(vitrail_mpi MODULE ${mpi_sources})
  set_target_properties(vitrail_mpi PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  # What it takes from the layers below stays inside: those symbols are the program's own elsewhere.
  target_link_libraries(vitrail_mpi PRIVATE vt_dist MPI::MPI_CXX)
  target_link_options(vitrail_mpi PRIVATE LINKER:--exclude-libs,ALL LINKER:--no-undefined LINKER:--as-needed)
  message(STATUS "MPI plugin: MPI ${MPI_CXX_VERSION}")
else()
  message(STATUS "MPI plugin: not built (MPI not found: apt install openmpi-bin libopenmpi-dev)")
endif()
