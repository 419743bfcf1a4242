# What leaves the build: libvitrail with its headers and find_package files, the program, the bundled models,
# the licences; and the packages made of them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_LIBDIR lib)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME vitrail)
set(private_libs ${CMAKE_INSTALL_LIBDIR}/vitrail)  # third-party libraries of the tarball
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/vitrail)
set(data_dir ${CMAKE_INSTALL_DATADIR}/vitrail)

# What is built searches where what is installed does. CMake would pad the path of a built file with colons instead,
# and an empty element is the current folder: whoever may write there could bring a library.
function(vt_install_search_path target)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "${ARGN}" BUILD_WITH_INSTALL_RPATH ON)
endfunction()

# An inherited search path (DT_RPATH): libraries beside ours find each other there too.
function(vt_inherited_search_path target)
  vt_install_search_path(${target} ${ARGN})
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
endfunction()

if(TARGET vt_api)
  # vt_api's objects are the library, and of them only what is marked VITRAIL_API can be seen; the layers
  # below come in as archives whose symbols stay inside.
  add_library(vitrail_shared SHARED $<TARGET_OBJECTS:vt_api>)
  add_library(vitrail::vitrail ALIAS vitrail_shared)
  set_target_properties(vitrail_shared PROPERTIES OUTPUT_NAME vitrail EXPORT_NAME vitrail
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  get_target_property(api_deps vt_api LINK_LIBRARIES)
  target_link_libraries(vitrail_shared PRIVATE ${api_deps})
  target_include_directories(vt_api PUBLIC ${CMAKE_SOURCE_DIR}/include)
  set_target_properties(vt_api PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_options(vitrail_shared PRIVATE LINKER:--exclude-libs,ALL LINKER:--no-undefined)
  target_include_directories(vitrail_shared INTERFACE
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(vitrail_shared INTERFACE cxx_std_20)
  vt_inherited_search_path(vitrail_shared "\$ORIGIN;\$ORIGIN/vitrail")

  install(TARGETS vitrail_shared EXPORT vitrailTargets)
  install(EXPORT vitrailTargets NAMESPACE vitrail:: DESTINATION ${config_dir})
  install(DIRECTORY include/vitrail DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
  file(WRITE ${CMAKE_BINARY_DIR}/vitrailConfig.cmake
    "include(\${CMAKE_CURRENT_LIST_DIR}/vitrailTargets.cmake)\n")
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/vitrailConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/vitrailConfig.cmake ${CMAKE_BINARY_DIR}/vitrailConfigVersion.cmake
    DESTINATION ${config_dir})
endif()

if(TARGET vitrail_cli)
  vt_inherited_search_path(vitrail_cli "\$ORIGIN/../lib;\$ORIGIN/../lib/vitrail")
  install(TARGETS vitrail_cli)
endif()

# Nodes of network namespaces, for `scale --namespaces`.
configure_file(${CMAKE_SOURCE_DIR}/tests/cluster/two_nodes.sh ${CMAKE_BINARY_DIR}/vitrail-nodes COPYONLY)
install(PROGRAMS ${CMAKE_SOURCE_DIR}/tests/cluster/two_nodes.sh DESTINATION ${private_libs} RENAME vitrail-nodes)
if(TARGET seed_000)  # for `profile --beside seed-000`
  install(TARGETS seed_000 DESTINATION ${private_libs})
endif()

# Where the program looks for it. NVIDIA's libraries are the host's own: what LD_LIBRARY_PATH names, then the
# usual places.
if(TARGET vitrail_cuda)
  vt_install_search_path(vitrail_cuda
    "\$ORIGIN;/usr/local/cuda/lib64;/usr/local/cuda-13/lib64;/opt/cuda/lib64;/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
  target_link_options(vitrail_cuda PRIVATE LINKER:--enable-new-dtags)
  install(TARGETS vitrail_cuda LIBRARY DESTINATION ${private_libs})
endif()

# A part of its own: the tarball has it, and a .deb that had it would ask for MPI on every machine. Which MPI
# carries the ranks is the host's choice; the tarball brings one for a host without.
if(TARGET vitrail_mpi)
  vt_install_search_path(vitrail_mpi "")
  install(TARGETS vitrail_mpi LIBRARY DESTINATION ${private_libs} COMPONENT mpi)
endif()

install(DIRECTORY models DESTINATION ${data_dir})
install(DIRECTORY configs/devices configs/networks DESTINATION ${data_dir})
install(DIRECTORY configs/kernels DESTINATION ${data_dir} OPTIONAL)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Only on request (the tarball): the libraries we link, except those every system brings along. glibc must be
# the host's own, and libstdc++ must be the newest a process uses, which need not be ours.
set(linked "")
foreach(target vitrail_cli vitrail_shared)
  if(TARGET ${target})
    list(APPEND linked $<TARGET_FILE:${target}>)
  endif()
endforeach()
install(CODE "set(linked \"${linked}\")\nset(private_libs \"${private_libs}\")" COMPONENT bundled EXCLUDE_FROM_ALL)
install(SCRIPT cmake/bundle_libs.cmake COMPONENT bundled EXCLUDE_FROM_ALL)
if(TARGET vitrail_mpi)
  install(CODE "set(mpi_plugin \"$<TARGET_FILE:vitrail_mpi>\")\nset(own_mpi \"${private_libs}/openmpi\")"
    COMPONENT bundled_mpi EXCLUDE_FROM_ALL)
  install(SCRIPT cmake/bundle_mpi.cmake COMPONENT bundled_mpi EXCLUDE_FROM_ALL)
endif()

set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME vitrail)
set(CPACK_PACKAGE_CONTACT "The Vitrail developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/package_kinds.cmake)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
include(CPack)
