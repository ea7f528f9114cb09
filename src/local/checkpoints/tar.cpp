#include "local/checkpoints/tar.hpp"

#include "local/store/files.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <optional>
#include <system_error>

namespace tinkxx::local {

namespace {

struct FreeArchive {
    void operator()(archive* made) const { archive_write_free(made); }
};
struct FreeEntry {
    void operator()(archive_entry* made) const { archive_entry_free(made); }
};

la_ssize_t take_bytes(archive* /*from*/, void* to, void const* bytes, std::size_t size) {
    static_cast<std::string*>(to)->append(static_cast<char const*>(bytes), size);
    return static_cast<la_ssize_t>(size);
}

Error failed(std::string const& why) {
    return Error{ErrorDetails{.kind = ErrorKind::request_failed,
                              .message = "archive: " + why,
                              .category = ErrorCategory::server}};
}

}  // namespace

struct TarStream::Impl {
    struct File {
        std::string name{};
        std::filesystem::path path{};
        std::int64_t size{0};
    };

    std::string bytes{};
    std::unique_ptr<archive, FreeArchive> out{};
    std::vector<File> files{};
    std::size_t at{0};
    std::optional<Descriptor> current{};
    std::int64_t left{0};
    std::time_t time{0};
    bool closed{false};
};

TarStream::TarStream(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
TarStream::~TarStream() = default;

Result<std::unique_ptr<TarStream>> TarStream::open(std::filesystem::path const& folder,
                                                   std::vector<std::string> markers,
                                                   WallTime time) {
    auto impl = std::make_unique<Impl>();
    impl->time = std::chrono::system_clock::to_time_t(time);
    auto const entries = list_folder(folder);
    if (!entries) return failed(entries.error().what());
    for (auto const& [name, kind] : *entries) {
        if (kind != EntryKind::file || name.front() == own_file_prefix) continue;
        auto const file = open_regular(folder / name);
        if (!file) return failed(file.error().what());
        impl->files.push_back({.name = name,
                               .path = folder / name,
                               .size = static_cast<std::int64_t>(file_bytes(*file))});
    }
    for (auto& name : markers) impl->files.push_back({.name = std::move(name)});
    std::ranges::sort(impl->files, {}, &Impl::File::name);
    impl->out.reset(archive_write_new());
    auto* const out = impl->out.get();
    if (out == nullptr || archive_write_set_format_pax_restricted(out) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(out, 1) != ARCHIVE_OK ||
        archive_write_open(out, &impl->bytes, nullptr, take_bytes, nullptr) != ARCHIVE_OK) {
        return failed(out == nullptr ? "out of memory" : archive_error_string(out));
    }
    return std::unique_ptr<TarStream>{new TarStream{std::move(impl)}};
}

Result<std::string> TarStream::next() {
    auto& impl = *impl_;
    auto* const out = impl.out.get();
    auto const broken = [&] { return failed(archive_error_string(out)); };
    while (impl.bytes.empty() && !impl.closed) {
        if (impl.current) {
            if (impl.left == 0) {
                impl.current.reset();
                continue;
            }
            auto const& name = impl.files[impl.at - 1].name;
            auto piece = read_piece(*impl.current, name);
            if (!piece) return failed(piece.error().what());
            if (piece->empty()) return failed(name + " ended early");
            auto const size = std::min(impl.left, static_cast<std::int64_t>(piece->size()));
            impl.left -= size;
            if (archive_write_data(out, piece->data(), static_cast<std::size_t>(size)) != size) {
                return broken();
            }
        } else if (impl.at < impl.files.size()) {
            auto const& file = impl.files[impl.at++];
            std::unique_ptr<archive_entry, FreeEntry> const entry{archive_entry_new()};
            archive_entry_set_pathname(entry.get(), file.name.c_str());
            archive_entry_set_size(entry.get(), file.size);
            archive_entry_set_filetype(entry.get(), AE_IFREG);
            archive_entry_set_perm(entry.get(), 0644);
            archive_entry_set_mtime(entry.get(), impl.time, 0);
            if (archive_write_header(out, entry.get()) != ARCHIVE_OK) return broken();
            if (file.path.empty()) continue;
            auto opened = open_regular(file.path);
            if (!opened) return failed(opened.error().what());
            impl.current.emplace(*std::move(opened));
            impl.left = file.size;
        } else {
            if (archive_write_close(out) != ARCHIVE_OK) return broken();
            impl.closed = true;
        }
    }
    return std::exchange(impl.bytes, {});
}

}  // namespace tinkxx::local
