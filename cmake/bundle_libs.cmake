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
  # Their licences travel with them.
  get_filename_component(real ${library} REALPATH)
  get_filename_component(name ${real} NAME)  # a package may own /lib/x while we see /usr/lib/x
  execute_process(COMMAND dpkg-query -S "*/${name}" OUTPUT_VARIABLE owner ERROR_QUIET)
  string(REGEX REPLACE "[:,].*" "" owner "${owner}")
  string(STRIP "${owner}" owner)
  if(owner AND EXISTS /usr/share/doc/${owner}/copyright)
    file(INSTALL /usr/share/doc/${owner}/copyright
      DESTINATION "${CMAKE_INSTALL_PREFIX}/share/doc/vitrail/licences" RENAME ${owner})
  endif()
endforeach()
