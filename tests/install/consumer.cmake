# Installs the build into a folder, moves it, builds examples/classify against it and asks what is in the cup.
#   cmake -D build= -D source= -D compiler= -D nm= -P consumer.cmake
set(work ${build}/install_consumer)
set(prefix ${work}/moved)
set(picture ${source}/examples/images/coffee.png)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nexit code ${code}\n${out}${err}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

function(expect_espresso who)
  if(NOT out MATCHES "espresso")
    message(FATAL_ERROR "${who} should see an espresso in ${picture}, it said:\n${out}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/first)
file(RENAME ${work}/first ${prefix})

file(GLOB devices RELATIVE ${source}/configs/devices ${source}/configs/devices/*.json)
foreach(device ${devices})
  if(NOT EXISTS ${prefix}/share/vitrail/devices/${device})
    message(FATAL_ERROR "configs/devices/${device} should be installed")
  endif()
endforeach()

run(${nm} -DC --defined-only ${prefix}/lib/libvitrail.so)
if(out MATCHES "vitrail::(strf|Error::Error)" OR NOT out MATCHES "vitrail::Model::load")
  message(FATAL_ERROR "libvitrail.so should show its API and nothing else:\n${out}")
endif()

run(${CMAKE_COMMAND} -S ${source}/examples/classify -B ${work}/classify -G Ninja
  -DCMAKE_CXX_COMPILER=${compiler} -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work}/classify)
run(${work}/classify/classify ${prefix}/share/vitrail/models/deit_tiny_patch16_224 ${picture})
expect_espresso("examples/classify")

if(EXISTS ${prefix}/bin/vitrail)
  run(${prefix}/bin/vitrail predict -m deit_tiny_patch16_224 ${picture})
  expect_espresso("the installed program, by the model's name,")
endif()
file(REMOVE_RECURSE ${work})
