#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

namespace tinkxx::local {

/// SQLite's way to the disk, with a disk that can be full. Registered once for the whole program;
/// without `fail_from` it changes nothing.
class FaultyDisk {
public:
    static FaultyDisk& instance() {
        static FaultyDisk disk;
        return disk;
    }

    /// Writes fail from the `first`-th from now on (0 is the next one), `count` of them.
    void fail_from(std::uint64_t first,
                   std::uint64_t count = std::numeric_limits<std::uint64_t>::max() / 2) {
        begin_ = writes_ + first;
        end_ = begin_ + count;
    }
    void heal() { begin_ = end_ = 0; }
    /// How many writes have failed so far.
    [[nodiscard]] std::uint64_t failed() const noexcept { return failed_; }

private:
    struct File {
        sqlite3_file base;
        sqlite3_file* real;
    };

    FaultyDisk() {
        auto* const real = sqlite3_vfs_find(nullptr);
        real_ = real;
        vfs_ = *real;
        vfs_.zName = "faulty";
        vfs_.szOsFile = static_cast<int>(sizeof(File)) + real->szOsFile;
        vfs_.pAppData = this;
        vfs_.xOpen = [](sqlite3_vfs* vfs, char const* name, sqlite3_file* file, int flags,
                        int* out) {
            auto& disk = *static_cast<FaultyDisk*>(vfs->pAppData);
            auto& mine = *reinterpret_cast<File*>(file);
            mine.real = reinterpret_cast<sqlite3_file*>(&mine + 1);
            std::memset(mine.real, 0, static_cast<std::size_t>(disk.real_->szOsFile));
            int const code = disk.real_->xOpen(disk.real_, name, mine.real, flags, out);
            file->pMethods = mine.real->pMethods == nullptr ? nullptr : &disk.methods();
            return code;
        };
        sqlite3_vfs_register(&vfs_, 1);
    }
    ~FaultyDisk() { sqlite3_vfs_unregister(&vfs_); }

    static sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<File*>(file)->real; }

    [[nodiscard]] bool fails() {
        auto const number = writes_++;
        if (number < begin_ || number >= end_) return false;
        ++failed_;
        return true;
    }

    sqlite3_io_methods const& methods() {
        static sqlite3_io_methods const made = [] {
            sqlite3_io_methods all{};
            all.iVersion = 3;
            all.xClose = [](sqlite3_file* f) { return real(f)->pMethods->xClose(real(f)); };
            all.xRead = [](sqlite3_file* f, void* to, int size, sqlite3_int64 at) {
                return real(f)->pMethods->xRead(real(f), to, size, at);
            };
            all.xWrite = [](sqlite3_file* f, void const* from, int size, sqlite3_int64 at) {
                if (instance().fails()) return SQLITE_FULL;
                return real(f)->pMethods->xWrite(real(f), from, size, at);
            };
            all.xTruncate = [](sqlite3_file* f, sqlite3_int64 size) {
                return real(f)->pMethods->xTruncate(real(f), size);
            };
            all.xSync = [](sqlite3_file* f, int flags) {
                return real(f)->pMethods->xSync(real(f), flags);
            };
            all.xFileSize = [](sqlite3_file* f, sqlite3_int64* size) {
                return real(f)->pMethods->xFileSize(real(f), size);
            };
            all.xLock = [](sqlite3_file* f, int lock) {
                return real(f)->pMethods->xLock(real(f), lock);
            };
            all.xUnlock = [](sqlite3_file* f, int lock) {
                return real(f)->pMethods->xUnlock(real(f), lock);
            };
            all.xCheckReservedLock = [](sqlite3_file* f, int* out) {
                return real(f)->pMethods->xCheckReservedLock(real(f), out);
            };
            all.xFileControl = [](sqlite3_file* f, int op, void* argument) {
                return real(f)->pMethods->xFileControl(real(f), op, argument);
            };
            all.xSectorSize = [](sqlite3_file* f) {
                return real(f)->pMethods->xSectorSize(real(f));
            };
            all.xDeviceCharacteristics = [](sqlite3_file* f) {
                return real(f)->pMethods->xDeviceCharacteristics(real(f));
            };
            all.xShmMap = [](sqlite3_file* f, int page, int size, int extend, void volatile** out) {
                return real(f)->pMethods->xShmMap(real(f), page, size, extend, out);
            };
            all.xShmLock = [](sqlite3_file* f, int offset, int n, int flags) {
                return real(f)->pMethods->xShmLock(real(f), offset, n, flags);
            };
            all.xShmBarrier = [](sqlite3_file* f) { real(f)->pMethods->xShmBarrier(real(f)); };
            all.xShmUnmap = [](sqlite3_file* f, int remove) {
                return real(f)->pMethods->xShmUnmap(real(f), remove);
            };
            all.xFetch = [](sqlite3_file* f, sqlite3_int64 at, int size, void** out) {
                return real(f)->pMethods->xFetch(real(f), at, size, out);
            };
            all.xUnfetch = [](sqlite3_file* f, sqlite3_int64 at, void* page) {
                return real(f)->pMethods->xUnfetch(real(f), at, page);
            };
            return all;
        }();
        return made;
    }

    sqlite3_vfs* real_{nullptr};
    sqlite3_vfs vfs_{};
    std::uint64_t writes_{0};
    std::uint64_t begin_{0};
    std::uint64_t end_{0};
    std::uint64_t failed_{0};
};

}  // namespace tinkxx::local
