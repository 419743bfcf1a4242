# What lies under isa/ in the rooms of backend/cpu is compiled once per instruction set, each into its own
# namespace (VT_ISA); backend/cpu chooses one at run time from what the processor reports.
set(cpu_folder ${CMAKE_SOURCE_DIR}/src/backend/cpu)
file(GLOB isa_sources CONFIGURE_DEPENDS ${cpu_folder}/*/isa/*.cpp)
# Sizes and tables, which any processor can ask for.
file(GLOB isa_tables CONFIGURE_DEPENDS ${cpu_folder}/isa/*.cpp)
set(dot_folder ${cpu_folder}/lowp/isa/dot)
set(isa_avx512_flags -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma)

function(vt_isa_objects target level)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEFINITIONS;FLAGS" ${ARGN})
  add_library(${target} OBJECT ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_definitions(${target} PRIVATE VT_ISA=${level} ${ARG_DEFINITIONS})
  target_compile_options(${target} PRIVATE ${ARG_FLAGS})
endfunction()

# A level with f32 kernels of its own, for vectors of so many floats.
function(vt_isa_level level lanes)
  vt_isa_objects(vt_isa_${level} ${level} SOURCES ${isa_sources} FLAGS ${ARGN})
  vt_isa_objects(vt_isa_${level}_table ${level} SOURCES ${isa_tables} DEFINITIONS VT_LANES=${lanes})
  target_sources(vt_backend PRIVATE $<TARGET_OBJECTS:vt_isa_${level}> $<TARGET_OBJECTS:vt_isa_${level}_table>)
endfunction()

# A level that adds dot-product instructions, by vectors (vnni) or tiles (amx), to the f32 kernels of another.
# Its table is made by code any processor can run.
function(vt_dot_level level kind f32_level)
  vt_isa_objects(vt_isa_${level} ${level} DEFINITIONS VT_F32_ISA=${f32_level} FLAGS ${ARGN}
    SOURCES ${dot_folder}/layout.cpp ${dot_folder}/rows.cpp ${dot_folder}/finish.cpp ${dot_folder}/${kind}.cpp)
  vt_isa_objects(vt_isa_${level}_table ${level} DEFINITIONS VT_F32_ISA=${f32_level}
    SOURCES ${dot_folder}/table.cpp)
endfunction()
function(vt_use_dot_level target level)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:vt_isa_${level}> $<TARGET_OBJECTS:vt_isa_${level}_table>)
endfunction()

vt_isa_level(baseline 4)
vt_isa_level(avx2 8 -mavx2 -mfma)
vt_isa_level(avx512 16 ${isa_avx512_flags})
set(isa_vnni_flags ${isa_avx512_flags} -mavx512vnni -mavx512bf16)
vt_dot_level(vnni vnni avx512 ${isa_vnni_flags})
vt_dot_level(amx amx avx512 ${isa_vnni_flags} -mamx-tile -mamx-bf16 -mamx-int8 -mprfchw)
vt_use_dot_level(vt_backend vnni)
vt_use_dot_level(vt_backend amx)

# The same kernels over emulated instructions, for tests alone: vt_backend does not hold them.
if(VITRAIL_TESTS)
  vt_dot_level(emulated_vnni vnni baseline)
  vt_dot_level(emulated_amx amx baseline)
endif()
