# Installs the build into a folder, moves it, holds its symbols against a stored list, builds examples/ against it
# and runs them.
#   cmake -D build= -D source= -D compiler= -D nm= -P consumer.cmake
set(work ${build}/install_consumer)
set(prefix ${work}/moved)
set(image ${source}/examples/images/coffee.png)
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
    message(FATAL_ERROR "${who} should see an espresso in ${image}, it said:\n${out}")
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

# What the library shows, against tests/api/abi.txt: a symbol that goes or changes breaks programs, one that
# comes is a promise. What it has of the standard library's templates does not count.
run(${nm} -DC --defined-only ${prefix}/lib/libvitrail.so)
string(REGEX MATCHALL "[^\n]+" lines "${out}")
set(symbols)
foreach(line ${lines})
  string(REGEX REPLACE "^[0-9a-f]* *. " "" symbol "${line}")
  if(symbol MATCHES "^([a-z]+( name)? for )?vitrail::")
    list(APPEND symbols "${symbol}")
  endif()
endforeach()
list(SORT symbols)
list(REMOVE_DUPLICATES symbols)
string(JOIN "\n" found ${symbols})
file(READ ${source}/tests/api/abi.txt stored)
string(STRIP "${stored}" stored)
if(NOT found STREQUAL stored)
  file(WRITE ${build}/abi.txt "${found}\n")
  message(FATAL_ERROR "libvitrail.so shows other symbols than tests/api/abi.txt lists; they are in ${build}/abi.txt:\n${found}")
endif()

set(model ${prefix}/share/vitrail/models/deit_tiny_patch16_224)
set(images ${source}/examples/images)
run(${CMAKE_COMMAND} -S ${source}/examples -B ${work}/examples -G Ninja
  -DCMAKE_CXX_COMPILER=${compiler} -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work}/examples)
run(${work}/examples/classify ${model} ${image})
expect_espresso("examples/classify")
run(${work}/examples/classify deit_tiny_patch16_224 ${image})
expect_espresso("examples/classify, by the bundled model's name,")
execute_process(COMMAND ${work}/examples/classify ${model} /no/such.png RESULT_VARIABLE code ERROR_VARIABLE err)
if(NOT code EQUAL 65 OR NOT err MATCHES "no image")
  message(FATAL_ERROR "an error of libvitrail should be caught as vitrail::Error of kind kData: ${code} ${err}")
endif()

run(${work}/examples/batch_gpu ${model} ${images}/chelsea.png ${image})
if(NOT out MATCHES "chelsea.png: Egyptian cat\n.*coffee.png: espresso")
  message(FATAL_ERROR "examples/batch_gpu should name the cat, then the coffee; it said:\n${out}")
endif()
run(${work}/examples/embed_search ${model} ${images}/chelsea.png ${images}/rocket.jpg ${images}/raccoon.png
  ${images}/chelsea.png)
if(NOT out MATCHES "^1.000  [^\n]*chelsea.png\n[^\n]*raccoon.png\n[^\n]*rocket.jpg\n$")
  message(FATAL_ERROR "examples/embed_search should find the cat, then the raccoon, then the rocket; it said:\n${out}")
endif()

file(WRITE ${work}/config.json "{\"model\": {\"image_height\": 16, \"image_width\": 16, \"patch\": 8, \"width\": 32, \"depth\": 1,
  \"heads\": 2, \"mlp\": 64}, \"data\": {\"train\": \"synthetic:3x16x16x4x64\"}, \"train\": {\"batch\": 16, \"steps\": 6}}")
run(${work}/examples/train_callback ${work}/config.json ${work}/run 100)
if(NOT out MATCHES "step 1 of 6: loss .*\nstopped on request at step 1\n$")
  message(FATAL_ERROR "examples/train_callback should stop after a step; it said:\n${out}")
endif()

if(EXISTS ${prefix}/bin/vitrail)
  run(${prefix}/bin/vitrail predict -m deit_tiny_patch16_224 ${image})
  expect_espresso("the installed program, by the model's name,")
endif()
file(REMOVE_RECURSE ${work})
