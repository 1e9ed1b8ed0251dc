# What the server's package holds, and the packages themselves: `cpack` in the build directory makes weir_*.deb (server)
# and libweir-dev_*.deb (library). Included by the top-level CMakeLists.txt.
include(GNUInstallDirs)
set(deploy ${PROJECT_SOURCE_DIR}/deploy)

install(TARGETS weir_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT server)
install(FILES ${PROJECT_SOURCE_DIR}/schema/weir.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/weir COMPONENT server)
install(FILES ${deploy}/grafana/weir.json DESTINATION ${CMAKE_INSTALL_DATADIR}/weir/grafana COMPONENT server)
install(FILES ${deploy}/prometheus/alerts.yaml ${deploy}/prometheus/scrape.yaml
        DESTINATION ${CMAKE_INSTALL_DATADIR}/weir/prometheus COMPONENT server)
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.md)
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT server)
file(GLOB pictures CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.svg ${PROJECT_SOURCE_DIR}/docs/*.png)
install(FILES ${pictures} DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT server)
file(GLOB apis CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/openapi/*.yaml)
install(FILES ${apis} DESTINATION ${CMAKE_INSTALL_DOCDIR}/openapi COMPONENT server)

# The manual page and the completion come from the program's own table of commands (weir/app/CMakeLists.txt makes them).
set(man_page ${CMAKE_CURRENT_BINARY_DIR}/weir/app/weir.1.gz)
set(completion ${CMAKE_CURRENT_BINARY_DIR}/weir/app/weir)
install(FILES ${man_page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT server)
install(FILES ${completion}.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME weir
        COMPONENT server)
install(FILES ${completion}.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _weir
        COMPONENT server)
install(FILES ${completion}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT server)

# Debian 12's /lib is a link to /usr/lib, but dpkg knows units under /lib.
file(GLOB units CONFIGURE_DEPENDS ${deploy}/systemd/*)
option(WEIR_PACKAGE "Install units and the configuration too, as the Debian package has them" OFF)
if(WEIR_PACKAGE)
  install(FILES ${units} DESTINATION /lib/systemd/system COMPONENT server)
  install(FILES ${deploy}/weir.yaml DESTINATION /etc/weir COMPONENT server)
else()
  install(FILES ${units} DESTINATION ${CMAKE_INSTALL_DATADIR}/weir/systemd COMPONENT server)
  install(FILES ${deploy}/weir.yaml DESTINATION ${CMAKE_INSTALL_DATADIR}/weir COMPONENT server)
endif()

# lintian asks for both in every package.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(package weir libweir-dev)
  set(changelog ${CMAKE_CURRENT_BINARY_DIR}/${package}/changelog)
  file(WRITE ${changelog} "weir (${PROJECT_VERSION}) stable; urgency=medium\n\n  * See CHANGELOG.md.\n\n"
                          " -- The Weir authors <maintainers@weir.example>  ${date}\n")
  execute_process(COMMAND gzip -9nkf ${changelog})
  set(component server)
  if(package STREQUAL libweir-dev)
    set(component library)
  endif()
  install(FILES ${changelog}.gz ${deploy}/debian/copyright DESTINATION share/doc/${package} COMPONENT ${component})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weir)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The Weir authors <maintainers@weir.example>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL server library)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_SERVER_PACKAGE_NAME weir)
set(CPACK_DEBIAN_SERVER_PACKAGE_SECTION net)
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "publicsuffix, tzdata, ca-certificates, init-system-helpers (>= 1.62)")
set(CPACK_DEBIAN_SERVER_DESCRIPTION "exact rate limiter: decision server, edge proxy and tools
Weir decides whether a request may pass. It answers over HTTP, gRPC and the
Redis protocol, or sits in front of a service as a reverse proxy. Limits live
in memory, or in a Redis that several servers share.")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA ${deploy}/debian/conffiles ${deploy}/debian/postinst
                                              ${deploy}/debian/prerm ${deploy}/debian/postrm)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${deploy}/debian/triggers)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libweir-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "exact rate limits inside a program (C++20 and C)
The embeddable part of Weir: headers, libweir.a for C++ and C, libweir.so for
C, CMake and pkg-config files. It needs the standard library only.")
include(CPack)
