#pragma once

#include <tinkxx/result.hpp>
#include <tinkxx/scheduler.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tinkxx::local {

/// The files of a folder as a tar archive, some bytes at a time. The same folder gives the same
/// bytes.
class TarStream {
public:
    /// `markers` are further files, which are empty.
    [[nodiscard]] static Result<std::unique_ptr<TarStream>> open(
        std::filesystem::path const& folder, std::vector<std::string> markers, WallTime time);
    ~TarStream();
    TarStream(TarStream const&) = delete;
    TarStream& operator=(TarStream const&) = delete;

    /// The next bytes; none at the end.
    [[nodiscard]] Result<std::string> next();

private:
    struct Impl;
    explicit TarStream(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tinkxx::local
