# Run at install: puts what a host without Open MPI needs of it to start ranks on itself into ${own_mpi} under the
# prefix: mpirun, the libraries, the plugins for one host, their help texts and their licences. Nothing is altered:
# src/launch/chosen_mpi.cpp says by variables where it lies. Knows Open MPI 4, which has its plugins apart.
cmake_policy(VERSION 3.25)
find_program(orterun orterun)
find_program(orted orted)
find_program(ompi_info ompi_info)
if(NOT orterun OR NOT orted OR NOT ompi_info)
  message(WARNING "Open MPI's programs were not found, and are not bundled: ranks will need an Open MPI on their host")
  return()
endif()

function(mpi_folder name result)
  execute_process(COMMAND ${ompi_info} --path ${name} --parsable OUTPUT_VARIABLE out COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "^path:${name}:([^\n]*)\n.*" "\\1" out "${out}")
  set(${result} "${out}" PARENT_SCOPE)
endfunction()
mpi_folder(pkglibdir plugin_dir)
mpi_folder(pkgdatadir help_dir)

# By framework. Left out: networks other than TCP, resource managers, remote starts, files and windows of MPI.
set(wanted
  allocator_basic allocator_bucket bml_r2 btl_self btl_tcp btl_vader
  coll_basic coll_inter coll_libnbc coll_self coll_sm coll_sync coll_tuned compress_bzip compress_gzip crs_none
  errmgr_default_app errmgr_default_hnp errmgr_default_orted ess_env ess_hnp ess_pmi ess_singleton
  filem_raw grpcomm_direct iof_hnp iof_orted mpool_hugepage odls_default oob_tcp op_avx
  patcher_overwrite plm_isolated pmix_ext3x pmix_isolated pml_ob1 pstat_linux rcache_grdma reachable_weighted
  regx_fwd regx_naive regx_reverse rmaps_round_robin rml_oob routed_binomial routed_direct routed_radix rtc_hwloc
  schizo_ompi schizo_orte shmem_mmap shmem_posix shmem_sysv state_app state_hnp state_novm state_orted topo_basic)
set(plugins)
foreach(name IN LISTS wanted)
  if(EXISTS ${plugin_dir}/mca_${name}.so)
    list(APPEND plugins ${plugin_dir}/mca_${name}.so)
  endif()
endforeach()
foreach(name btl_self btl_vader pml_ob1 plm_isolated odls_default ess_hnp ess_pmi)
  if(NOT ${plugin_dir}/mca_${name}.so IN_LIST plugins)
    message(FATAL_ERROR "cannot bundle Open MPI, not found: ${plugin_dir}/mca_${name}.so")
  endif()
endforeach()

# A library that comes with every system stays out, as do networks that a plugin might have asked for.
set(system "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|stdc\\+\\+|gcc_s)\\.so")
function(libraries_of result)
  file(GET_RUNTIME_DEPENDENCIES ${ARGN} RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
    PRE_EXCLUDE_REGEXES ${system})
  if(missing OR found MATCHES "lib(uc[pst]|fabric|psm|ibverbs)")
    message(FATAL_ERROR "cannot bundle Open MPI; missing: ${missing}; found: ${found}")
  endif()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()
libraries_of(libraries EXECUTABLES ${orterun} ${orted} MODULES ${plugins} ${mpi_plugin})

# Those of PMIx lie beside it, and tell a resource manager's from the rest.
set(pmix_plugins)
foreach(library IN LISTS libraries)
  if(library MATCHES "/libpmix\\.so")
    file(REAL_PATH ${library} real)
    cmake_path(GET real PARENT_PATH pmix_dir)
    file(GLOB pmix_plugins ${pmix_dir}/pmix/pmix_mca_*.so)
    list(FILTER pmix_plugins EXCLUDE REGEX "slurm")
    file(GLOB pmix_help ${pmix_dir}/../share/pmix/help-*.txt)
  endif()
endforeach()

set(own ${CMAKE_INSTALL_PREFIX}/${own_mpi})
file(GLOB help ${help_dir}/help-*.txt)
file(INSTALL ${orterun} DESTINATION ${own}/bin TYPE PROGRAM RENAME mpirun)
file(INSTALL ${orted} DESTINATION ${own}/bin TYPE PROGRAM)
file(INSTALL ${libraries} DESTINATION ${own}/lib FOLLOW_SYMLINK_CHAIN)
file(INSTALL ${plugins} DESTINATION ${own}/lib/openmpi)
file(INSTALL ${pmix_plugins} DESTINATION ${own}/lib/pmix)
file(INSTALL ${help} DESTINATION ${own}/share/openmpi)
file(INSTALL ${pmix_help} DESTINATION ${own}/share/pmix)
include(${CMAKE_CURRENT_LIST_DIR}/bundle_licences.cmake)
list(GET help 0 one_help)
bundle_licences(${libraries} ${orterun} ${one_help})
