# What a server has in front of it: its port on the network, and the model that comes with it.
include(GNUInstallDirs)
target_sources(tinkxx_local PRIVATE
    ${CMAKE_CURRENT_LIST_DIR}/front.cpp
    ${CMAKE_CURRENT_LIST_DIR}/front_tiny_model.cpp)
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/front_tiny_model.cpp
    TARGET_DIRECTORY tinkxx_local PROPERTIES COMPILE_DEFINITIONS
    "TINKXX_INSTALLED_MODELS=\"${CMAKE_INSTALL_FULL_DATADIR}/tinkxx/models\";TINKXX_SOURCE_MODELS=\"${PROJECT_SOURCE_DIR}/models\"")
