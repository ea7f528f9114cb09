#include "files/extraction.hpp"

#include <tinkxx/error.hpp>

#include "base/common/descriptor.hpp"
#include "files/folder_writer.hpp"

#include <fcntl.h>
#include <zlib.h>

#include <cerrno>
#include <optional>
#include <span>
#include <system_error>

namespace tinkxx::files {
namespace {

constexpr std::size_t read_at_once = std::size_t{256} * 1024;
constexpr int reads_in_a_step = 4;

Error bad_gzip(std::string why) {
    return Error{
        {.kind = ErrorKind::validation,
         .message = "the archive " + std::move(why) + "; it may be corrupt, so fetch it again",
         .field = "archive"}};
}

/// Undoes gzip, in pieces.
class Gunzip {
public:
    Gunzip() {
        constexpr int gzip_only = 15 + 16;
        good_ = ::inflateInit2(&stream_, gzip_only) == Z_OK;
    }
    ~Gunzip() {
        if (good_) ::inflateEnd(&stream_);
    }
    Gunzip(Gunzip const&) = delete;
    Gunzip& operator=(Gunzip const&) = delete;

    /// Gives what `in` holds to `take`, in pieces.
    Result<void> feed(std::span<char const> in, TarReader& take) {
        if (!good_) return bad_gzip("cannot be unpacked: there is no memory");
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
        stream_.avail_in = static_cast<uInt>(in.size());
        // A full piece may leave more behind, even if all that came in is used up.
        for (bool more = true; more;) {
            if (ended_) {
                if (stream_.avail_in == 0) return {};
                if (::inflateReset(&stream_) != Z_OK) return bad_gzip("cannot be unpacked");
                ended_ = false;
            }
            stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
            stream_.avail_out = static_cast<uInt>(out_.size());
            auto const status = ::inflate(&stream_, Z_NO_FLUSH);
            if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
                return bad_gzip("is no whole gzip file");
            }
            ended_ = status == Z_STREAM_END;
            auto const size = out_.size() - stream_.avail_out;
            if (auto fed = take.feed({out_.data(), size}); !fed) return fed;
            more = status != Z_BUF_ERROR && (stream_.avail_in > 0 || stream_.avail_out == 0);
        }
        return {};
    }
    [[nodiscard]] bool ended() const noexcept { return ended_; }

private:
    z_stream stream_{};
    bool good_{false};
    bool ended_{true};
    std::vector<char> out_ = std::vector<char>(read_at_once);
};

class TarExtraction final : public Extraction, private TarReader::Sink {
public:
    TarExtraction(base::Descriptor archive, std::filesystem::path archive_path,
                  std::filesystem::path target, FolderWriter folder, TarLimits limits)
        : archive_{std::move(archive)},
          archive_path_{std::move(archive_path)},
          target_{std::move(target)},
          folder_{std::move(folder)},
          reader_{*this, limits} {}
    ~TarExtraction() override {
        if (done_) return;
        std::error_code ignored;
        std::filesystem::remove_all(target_, ignored);
    }

    Result<bool> step() override {
        for (int i = 0; i < reads_in_a_step; ++i) {
            auto const got = ::read(archive_.get(), buffer_.data(), buffer_.size());
            if (got < 0) {
                if (errno == EINTR) continue;
                return file_error("read", archive_path_, errno);
            }
            if (got == 0) return end();
            std::span<char const> const bytes{buffer_.data(), static_cast<std::size_t>(got)};
            if (auto fed = feed(bytes); !fed) return fed.error();
        }
        return false;
    }
    std::vector<Written> const& written() const noexcept override { return written_; }

private:
    Result<void> feed(std::span<char const> bytes) {
        constexpr std::string_view gzip_mark{"\x1f\x8b", 2};
        if (!begun_) {
            begun_ = true;
            if (std::string_view{bytes.data(), bytes.size()}.starts_with(gzip_mark)) {
                gunzip_.emplace();
            }
        }
        return gunzip_ ? gunzip_->feed(bytes, reader_) : reader_.feed(bytes);
    }
    Result<bool> end() {
        if (gunzip_ && !gunzip_->ended()) return bad_gzip("is cut short");
        if (auto whole = reader_.finish(); !whole) return whole.error();
        done_ = true;
        return true;
    }

    Result<void> folder(std::string const& name) override { return folder_.make_folder(name); }
    Result<void> file(std::string const& name, std::int64_t bytes) override {
        auto made = folder_.make_file(name);
        if (!made) return made.error();
        file_ = *std::move(made);
        written_.emplace_back(name, bytes);
        at_ = 0;
        return {};
    }
    Result<void> data(std::span<char const> bytes) override {
        auto wrote = write_at(file_.get(), bytes, at_, target_ / written_.back().first);
        at_ += static_cast<std::int64_t>(bytes.size());
        return wrote;
    }
    Result<void> file_end() override {
        file_ = base::Descriptor{};
        return {};
    }

    base::Descriptor archive_;
    std::filesystem::path const archive_path_;
    std::filesystem::path const target_;
    FolderWriter folder_;
    TarReader reader_;
    std::optional<Gunzip> gunzip_{};
    std::vector<char> buffer_ = std::vector<char>(read_at_once);
    std::vector<Written> written_{};
    base::Descriptor file_{};
    std::int64_t at_{0};
    bool begun_{false};
    bool done_{false};
};

}  // namespace

Result<std::unique_ptr<Extraction>> Extraction::begin(std::filesystem::path const& archive,
                                                      std::filesystem::path const& target,
                                                      TarLimits limits) {
    base::Descriptor in{::open(archive.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!in) return file_error("open", archive, errno);
    std::error_code failed;
    if (!std::filesystem::create_directory(target, failed)) {
        return file_error("create", target, failed ? failed.value() : EEXIST);
    }
    auto folder = FolderWriter::open(target);
    if (!folder) return folder.error();
    return std::unique_ptr<Extraction>{std::make_unique<TarExtraction>(
        std::move(in), archive, target, *std::move(folder), limits)};
}

}  // namespace tinkxx::files
