# Read by cpack once per kind of package: a tarball carries the libraries it needs, a .deb names them.
set(CPACK_COMPONENTS_ALL vitrail)
if(CPACK_GENERATOR STREQUAL "TGZ")
  list(APPEND CPACK_COMPONENTS_ALL bundled mpi bundled_mpi)
  set(CPACK_PACKAGE_FILE_NAME "vitrail-${CPACK_PACKAGE_VERSION}-linux-${CMAKE_HOST_SYSTEM_PROCESSOR}")
else()
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY OFF)  # a .deb's paths start at the root
endif()
