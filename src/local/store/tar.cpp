#include "local/store/tar.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <fstream>
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
    std::optional<std::ifstream> current{};
    std::int64_t left{0};
    std::time_t time{0};
    bool closed{false};
    std::string chunk{};
};

TarStream::TarStream(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
TarStream::~TarStream() = default;

Result<std::unique_ptr<TarStream>> TarStream::open(std::filesystem::path const& folder,
                                                   std::vector<std::string> markers,
                                                   WallTime time) {
    auto impl = std::make_unique<Impl>();
    impl->time = std::chrono::system_clock::to_time_t(time);
    impl->chunk.resize(std::size_t{256} << 10U);
    std::error_code error;
    for (auto const& entry : std::filesystem::directory_iterator{folder, error}) {
        if (!entry.is_regular_file(error)) continue;
        auto const size = entry.file_size(error);
        if (error) break;
        impl->files.push_back({.name = entry.path().filename().string(),
                               .path = entry.path(),
                               .size = static_cast<std::int64_t>(size)});
    }
    if (error) return failed(folder.string() + " cannot be read: " + error.message());
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
            auto const want =
                std::min<std::int64_t>(impl.left, static_cast<std::int64_t>(impl.chunk.size()));
            if (want == 0) {
                impl.current.reset();
                continue;
            }
            impl.current->read(impl.chunk.data(), want);
            if (impl.current->gcount() != want) {
                return failed(impl.files[impl.at - 1].name + " ended early");
            }
            impl.left -= want;
            if (archive_write_data(out, impl.chunk.data(), static_cast<std::size_t>(want)) !=
                want) {
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
            impl.current.emplace(file.path, std::ios::binary);
            if (!*impl.current) return failed(file.name + " cannot be read any more");
            impl.left = file.size;
        } else {
            if (archive_write_close(out) != ARCHIVE_OK) return broken();
            impl.closed = true;
        }
    }
    return std::exchange(impl.bytes, {});
}

}  // namespace tinkxx::local
