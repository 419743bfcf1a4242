# One static library per folder of src/, so that a folder builds and is tested with what it may include
# and nothing else. tools/check_layers checks the same table on the include lines.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(WEBP_INCLUDE webp/decode.h)
find_library(WEBP_LIBRARY webp)

# Most of a compilation is the reading of headers and what their templates become: with VITRAIL_UNITY a compiler reads
# them once for several sources of a layer. Names in a layer's anonymous namespaces are then seen by each other; sources
# whose names are theirs by design (tables, a decoder's callbacks) stand alone.
function(vt_unity target sources_at_once)
  if(VITRAIL_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${sources_at_once})
  endif()
endfunction()
file(GLOB vt_alone CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/io/dialects/*.cpp ${CMAKE_SOURCE_DIR}/src/data/decode_*.cpp)
set_source_files_properties(${vt_alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

function(vt_layer name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  string(REPLACE "/" "_" target ${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/isa/|/cuda/device/|/dist/mpi/|/cli/main.cpp")
  if(NOT sources)
    return()
  endif()
  add_library(vt_${target} STATIC ${sources})
  target_include_directories(vt_${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(vt_${target} PUBLIC ${ARG_DEPS})
  vt_unity(vt_${target} 8)
endfunction()

vt_layer(base DEPS Threads::Threads nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
target_include_directories(vt_base PUBLIC ${CMAKE_SOURCE_DIR}/include)  # for vitrail/error.h
vt_layer(tensor DEPS vt_base)
vt_layer(graph DEPS vt_tensor)
vt_layer(ops DEPS vt_graph)
vt_layer(models DEPS vt_ops)
vt_layer(optim DEPS vt_ops)
vt_layer(passes DEPS vt_ops)
vt_layer(backend DEPS vt_ops ${CMAKE_DL_LIBS})
vt_layer(telemetry DEPS vt_tensor)
vt_layer(plan DEPS vt_backend vt_telemetry)
vt_layer(dist DEPS vt_tensor ${CMAKE_DL_LIBS})
vt_layer(runtime DEPS vt_plan vt_dist)
vt_layer(data DEPS vt_tensor JPEG::JPEG PNG::PNG ZLIB::ZLIB ${WEBP_LIBRARY})
vt_layer(io DEPS vt_models vt_telemetry ZLIB::ZLIB)
vt_layer(train DEPS vt_models vt_optim vt_passes vt_plan vt_runtime vt_data vt_io vt_telemetry)
vt_layer(api DEPS vt_train vt_models vt_passes vt_plan vt_runtime vt_io vt_data)
target_compile_definitions(vt_api PRIVATE VITRAIL_VERSION="${PROJECT_VERSION}")
vt_layer(simulate DEPS vt_train vt_telemetry)
vt_layer(measure DEPS vt_simulate vt_api vt_train vt_telemetry)
vt_layer(launch DEPS vt_train vt_dist)
vt_layer(cli DEPS vt_measure vt_simulate vt_launch)
# What reads options, measures others and writes reports is never what a run waits for; it compiles in two thirds of
# the time.
foreach(layer telemetry simulate measure launch cli)
  target_compile_options(vt_${layer} PRIVATE $<$<CONFIG:Release>:-O1>)
endforeach()
foreach(layer measure cli)
  target_compile_definitions(vt_${layer} PRIVATE VITRAIL_VERSION="${PROJECT_VERSION}"
                             VITRAIL_BUILD_TYPE="${CMAKE_BUILD_TYPE}")
endforeach()

include(cmake/isa.cmake)

if(EXISTS ${CMAKE_SOURCE_DIR}/src/cli/main.cpp)
  add_executable(vitrail_cli src/cli/main.cpp)
  set_target_properties(vitrail_cli PROPERTIES OUTPUT_NAME vitrail)
  target_link_libraries(vitrail_cli PRIVATE vt_cli)
endif()
