# The embeddable library as one package: libweir.a (C++ and C), libweir.so (C), headers, CMake config, pkg-config files.
# Included by weir/CMakeLists.txt, after the folders it is made of.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What limiter.h and weir.h include, and nothing else: the rest may change at any time.
set(public_headers limiter.h weir.h)
set(reached_headers base/assert.h base/bounds.h base/clock.h base/inline_list.h base/result.h base/time.h
                    core/decision.h core/limit.h)

foreach(folder ${library_folders} limiter)
  string(REPLACE "/" "_" part weir_${folder})
  get_target_property(type ${part} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")  # a folder of headers only
    list(APPEND objects $<TARGET_OBJECTS:${part}>)
    set_target_properties(${part} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    # The archive must link without our compiler's link-time optimiser too. Compiled to the end, g++ 12 sees an overlap
    # in its own std::string where there is none (GCC bug 105651).
    target_compile_options(${part} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-ffat-lto-objects -Wno-restrict>)
  endif()
endforeach()

add_library(weir_static STATIC ${objects})
add_library(weir_shared SHARED ${objects})
add_library(weir::weir ALIAS weir_static)
add_library(weir::shared ALIAS weir_shared)
set_target_properties(weir_static PROPERTIES OUTPUT_NAME weir EXPORT_NAME weir)
set_target_properties(weir_shared PROPERTIES OUTPUT_NAME weir EXPORT_NAME shared VERSION ${PROJECT_VERSION} SOVERSION 0)
# Hidden visibility does not reach the templates of the standard library.
set(exports ${PROJECT_SOURCE_DIR}/cmake/weir_exports.txt)
target_link_options(weir_shared PRIVATE LINKER:--version-script=${exports})
set_property(TARGET weir_shared APPEND PROPERTY LINK_DEPENDS ${exports})
foreach(library weir_static weir_shared)
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
target_compile_features(weir_static INTERFACE cxx_std_20)
target_link_libraries(weir_static INTERFACE Threads::Threads)
target_link_libraries(weir_shared PRIVATE Threads::Threads)

if(NOT PROJECT_IS_TOP_LEVEL)
  return()  # a program that embeds our source installs itself, not us
endif()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(TARGETS weir_static weir_shared EXPORT weirTargets COMPONENT library)
foreach(header ${public_headers} ${reached_headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weir/${folder} COMPONENT library)
endforeach()
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${package_dir} COMPONENT library)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/weirConfig.cmake.in weirConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(weirConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weirConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/weirConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT library)
# Where the prefix is, seen from the .pc files: `cmake --install --prefix` chooses it later than we are configured.
file(RELATIVE_PATH pc_to_prefix /prefix/${pc_dir} /prefix)
foreach(pc weir weir-c)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${pc}.pc.in ${pc}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${pc}.pc DESTINATION ${pc_dir} COMPONENT library)
endforeach()
