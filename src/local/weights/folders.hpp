#pragma once

#include "local/services/services.hpp"
#include "local/store/files.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace tinkxx::local {

/// The folders of weights in the home: how they get and lose their names, and are read. All file
/// work is done by a worker. Loop thread.
///
/// A folder is written under a temporary name, gets its checksums and the row that it will have,
/// and its own name once that row is safe. A server that finds it under the temporary name knows by
/// the row whether to finish or to remove it.
class Folders {
public:
    /// `next`: larger than any number that a folder or a row has.
    Folders(Services& services, std::int64_t next) : services_{services}, next_{next} {}
    Folders(Folders const&) = delete;
    Folders& operator=(Folders const&) = delete;

    /// A number that no folder and no checkpoint has or had.
    [[nodiscard]] std::int64_t next_number() noexcept { return next_++; }
    /// Where a folder is, and where it is while it has its temporary name.
    [[nodiscard]] std::filesystem::path place(std::string const& folder) const;
    [[nodiscard]] std::filesystem::path saving_place(std::string const& folder) const;

    /// Gives a folder its name once its row is safe, and says whether that worked.
    void finish(std::string const& folder, Store::Written done);
    /// Removes a folder that no row names any more.
    void remove(std::string const& folder);
    /// Removes what has the temporary name of a folder that was to be saved.
    void remove_saving(std::string const& folder);
    /// Removes what has a temporary name.
    void remove_temporary(std::string const& name);
    /// Checks the files of a checkpoint, has the engine load it, and calls `submitted`.
    void load(engine::LoadAdapter job, std::string name, FileMarks files, Task submitted,
              engine::Done<engine::AdapterInfo> done);

private:
    Services& services_;
    std::int64_t next_;
};

}  // namespace tinkxx::local
