# What `cmake --install` copies, and the files by which other projects find it afterwards.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(tinkxx_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tinkxx)

install(TARGETS tinkxx tinkxx_text tinkxx_testing EXPORT tinkxxTargets FILE_SET HEADERS)
install(EXPORT tinkxxTargets NAMESPACE tinkxx:: DESTINATION ${tinkxx_cmake_dir})
if(TINKXX_BUILD_LOCAL)
    # Apart, so that a program without the server needs none of its libraries.
    install(TARGETS tinkxx_local EXPORT tinkxxLocalTargets FILE_SET HEADERS)
    install(EXPORT tinkxxLocalTargets NAMESPACE tinkxx:: DESTINATION ${tinkxx_cmake_dir})
endif()
if(TARGET tinkxx-cli)
    install(TARGETS tinkxx-cli)
    if(EXISTS ${PROJECT_SOURCE_DIR}/models/tiny/config.json)
        install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/tiny
            DESTINATION ${CMAKE_INSTALL_DATADIR}/tinkxx/models PATTERN recipe EXCLUDE)
    endif()
endif()
if(TARGET tinkxx_torch)
    install(TARGETS tinkxx_torch EXPORT tinkxxTorchTargets FILE_SET HEADERS)
    install(EXPORT tinkxxTorchTargets NAMESPACE tinkxx:: DESTINATION ${tinkxx_cmake_dir})
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tinkxxConfig.cmake.in
    ${PROJECT_BINARY_DIR}/tinkxxConfig.cmake INSTALL_DESTINATION ${tinkxx_cmake_dir})
# Before 1.0 a new minor version may change the source interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tinkxxConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tinkxxConfig.cmake
    ${PROJECT_BINARY_DIR}/tinkxxConfigVersion.cmake DESTINATION ${tinkxx_cmake_dir})

# The prefix is written relative to the .pc file itself, so an installed tree can be moved.
file(RELATIVE_PATH tinkxx_pc_to_prefix
    ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" tinkxx_pc_to_prefix ${tinkxx_pc_to_prefix})
set(tinkxx_pc_files tinkxx tinkxx-testing)
if(TINKXX_BUILD_LOCAL)
    list(APPEND tinkxx_pc_files tinkxx-local)
endif()
foreach(name IN LISTS tinkxx_pc_files)
    configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
