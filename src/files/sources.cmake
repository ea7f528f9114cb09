target_sources(tinkxx PRIVATE
    files/download_folder.cpp
    files/extraction.cpp
    files/folder_writer.cpp
    files/tar_reader.cpp
)
