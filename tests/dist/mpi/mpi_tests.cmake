# The suite of collectives over MPI, on 2, 3 and 4 processes, and what an abort does; skipped by name where MPI
# was not found.
if(TARGET vitrail_mpi AND MPIEXEC_EXECUTABLE)
  set(cases sum_cases move_cases group_cases)
  list(TRANSFORM cases REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/dist/\\1.cpp")
  add_executable(test_dist_mpi ${CMAKE_CURRENT_SOURCE_DIR}/dist/mpi/suite.cpp ${cases})
  target_link_libraries(test_dist_mpi PRIVATE vt_dist GTest::gtest)
  target_include_directories(test_dist_mpi PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/dist)
  add_dependencies(test_dist_mpi vitrail_mpi)
endif()

# Ranks outnumber cores, tests run as root in containers, and sanitizers know nothing of MPI's own memory and threads.
set(mpi_environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0
  TSAN_OPTIONS=ignore_noninstrumented_modules=1)
function(vt_mpi_test name ranks)
  if(TARGET test_dist_mpi)
    add_test(NAME ${name} COMMAND /bin/sh ${CMAKE_CURRENT_SOURCE_DIR}/dist/mpi/own_session.sh
      ${MPIEXEC_EXECUTABLE} --oversubscribe --bind-to none -n ${ranks}
      $<TARGET_FILE:test_dist_mpi> ${ARGN})
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${mpi_environment}" TIMEOUT 120)
  else()
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: MPI was not found when this was built")
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: MPI")
  endif()
endfunction()

foreach(ranks 2 3 4)
  vt_mpi_test(dist_mpi_${ranks} ${ranks} --gtest_brief=1)
endforeach()
# mpirun counts an end without MPI_Finalize as a failure, which it is: what the rank says first is what counts.
vt_mpi_test(dist_mpi_abort 3 --abort)
vt_mpi_test(dist_mpi_throw 3 --throw)
vt_mpi_test(dist_mpi_differ 2 --differ)
if(TARGET test_dist_mpi)
  set_tests_properties(dist_mpi_abort PROPERTIES PASS_REGULAR_EXPRESSION "rank 1 ended by: the disk is full")
  set_tests_properties(dist_mpi_throw PROPERTIES PASS_REGULAR_EXPRESSION "rank 1 ended by: bad data")
  set_tests_properties(dist_mpi_differ PROPERTIES PASS_REGULAR_EXPRESSION "ended by: .*(40 bytes where 44|TRUNCATE)")
endif()
