# Run at install: copies the shared libraries that ${linked} need into ${private_libs} under the prefix.
file(GET_RUNTIME_DEPENDENCIES
  EXECUTABLES ${linked}
  RESOLVED_DEPENDENCIES_VAR found
  UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|stdc\\+\\+|gcc_s)\\.so" "^libvitrail\\.so")
if(missing)
  message(FATAL_ERROR "cannot bundle, not found: ${missing}")
endif()
foreach(library IN LISTS found)
  file(INSTALL ${library} DESTINATION "${CMAKE_INSTALL_PREFIX}/${private_libs}" FOLLOW_SYMLINK_CHAIN)
endforeach()
include(${CMAKE_CURRENT_LIST_DIR}/bundle_licences.cmake)
bundle_licences(${found})
