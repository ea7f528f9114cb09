#include "net/http/content_decoder.hpp"

#include "base/common/ascii.hpp"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <vector>

namespace tinkxx::net {
namespace {

constexpr std::size_t piece_bytes = std::size_t{64} * 1024;
constexpr std::size_t most_encodings = 4;
/// 8 MB: what RFC 9659 lets a server use. More would let a small reply claim much memory.
constexpr int zstd_window_log = 23;

/// What all decoders share: the input that is left, one output buffer, the error.
class DecoderBase : public ContentDecoder {
public:
    void feed(std::span<char const> input) noexcept final {
        input_ = input;
        begun_ = begun_ || !input.empty();
    }
    std::span<char const> output() const noexcept final { return {buffer_.get(), produced_}; }
    std::string_view error_text() const noexcept final { return error_; }

protected:
    Step fail(std::string text) {
        produced_ = 0;
        error_ = std::move(text);
        return Step::error;
    }
    [[nodiscard]] bool failed() const noexcept { return !error_.empty(); }
    void drop_input(std::size_t bytes) noexcept { input_ = input_.subspan(bytes); }

    std::span<char const> input_;
    std::unique_ptr<char[]> buffer_{std::make_unique_for_overwrite<char[]>(piece_bytes)};
    std::size_t produced_{0};
    bool begun_{false};

private:
    std::string error_;
};

class ZlibDecoder final : public DecoderBase {
public:
    enum class Format { gzip, deflate };

    explicit ZlibDecoder(Format format) : format_{format} {
        if (::inflateInit2(&stream_, format == Format::gzip ? gzip_window : zlib_window) != Z_OK) {
            throw std::bad_alloc{};
        }
    }
    ZlibDecoder(ZlibDecoder const&) = delete;
    ZlibDecoder& operator=(ZlibDecoder const&) = delete;
    ~ZlibDecoder() override { ::inflateEnd(&stream_); }

    Step next() override {
        if (failed()) return Step::error;
        produced_ = 0;
        for (;;) {
            if (state_ == State::between) {
                if (input_.empty()) return Step::need_input;
                if (auto const step = after_end(); step != Step::data) return step;
            }
            if (format_ == Format::deflate && sniffed_ < sniff_.size()) {
                if (!sniff()) return Step::need_input;
            }
            auto const result = sniff_left_.empty() ? run(input_) : run(sniff_left_);
            if (result == Z_STREAM_END) {
                state_ = State::between;
            } else if (result == Z_NEED_DICT) {
                return fail(name() + " data needs a dictionary, which HTTP has none of");
            } else if (result != Z_OK && result != Z_BUF_ERROR) {
                return fail("the body is not valid " + name() + ": " +
                            (stream_.msg != nullptr ? stream_.msg : "damaged data"));
            }
            if (produced_ > 0) return Step::data;
            if (input_.empty() && sniff_left_.empty()) return Step::need_input;
        }
    }

    bool complete() const noexcept override {
        return !failed() && (!begun_ || (state_ == State::between && input_.empty()));
    }

private:
    enum class State {
        inside,   ///< of a member
        between,  ///< after one: padding, another member or nothing may follow
    };
    static constexpr int gzip_window = MAX_WBITS + 16;
    static constexpr int zlib_window = MAX_WBITS;
    static constexpr int raw_window = -MAX_WBITS;

    [[nodiscard]] std::string name() const { return format_ == Format::gzip ? "gzip" : "deflate"; }

    int run(std::span<char const>& input) noexcept {
        auto const offered = static_cast<uInt>(
            std::min<std::size_t>(input.size(), std::numeric_limits<uInt>::max()));
        // zlib does not write through next_in; its type predates const.
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
        stream_.avail_in = offered;
        stream_.next_out = reinterpret_cast<Bytef*>(buffer_.get());
        stream_.avail_out = static_cast<uInt>(piece_bytes);
        auto const result = ::inflate(&stream_, Z_NO_FLUSH);
        input = input.subspan(offered - stream_.avail_in);
        produced_ = piece_bytes - stream_.avail_out;
        return result;
    }

    /// With input after the end of a member. `Step::data` means that another member begins.
    Step after_end() {
        auto const padding =
            std::find_if(input_.begin(), input_.end(), [](char c) { return c != '\0'; });
        if (padding != input_.begin()) padded_ = true;
        drop_input(static_cast<std::size_t>(padding - input_.begin()));
        if (input_.empty()) return Step::need_input;
        if (format_ != Format::gzip || padded_ || input_.front() != '\x1f') {
            return fail("the body goes on after the end of its " + name() + " data");
        }
        ::inflateReset(&stream_);
        state_ = State::inside;
        return Step::data;
    }

    /// "deflate" is zlib by the letter of the standard and raw deflate with some servers: the
    /// first two bytes tell. False if they are not there yet.
    bool sniff() {
        while (sniffed_ < sniff_.size() && !input_.empty()) {
            sniff_[sniffed_++] = input_.front();
            drop_input(1);
        }
        if (sniffed_ < sniff_.size()) return false;
        unsigned const first = static_cast<unsigned char>(sniff_[0]);
        unsigned const second = static_cast<unsigned char>(sniff_[1]);
        bool const zlib = (first & 0x0fU) == Z_DEFLATED && (first * 256 + second) % 31 == 0;
        if (!zlib) ::inflateReset2(&stream_, raw_window);
        sniff_left_ = sniff_;
        return true;
    }

    Format format_;
    State state_{State::inside};
    bool padded_{false};
    std::array<char, 2> sniff_{};
    std::size_t sniffed_{0};
    std::span<char const> sniff_left_;
    z_stream stream_{};
};

class ZstdDecoder final : public DecoderBase {
public:
    ZstdDecoder() : context_{::ZSTD_createDCtx()} {
        if (context_ == nullptr) throw std::bad_alloc{};
        ::ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, zstd_window_log);
    }

    Step next() override {
        if (failed()) return Step::error;
        produced_ = 0;
        // With nothing to read or to flush a call would begin a new frame in zstd's eyes.
        while (!input_.empty() || flush_) {
            ZSTD_inBuffer in{input_.data(), input_.size(), 0};
            ZSTD_outBuffer out{buffer_.get(), piece_bytes, 0};
            auto const hint = ::ZSTD_decompressStream(context_.get(), &out, &in);
            drop_input(in.pos);
            if (::ZSTD_isError(hint) != 0) return fail(explain(hint));
            frame_done_ = hint == 0;
            flush_ = !frame_done_ && out.pos == out.size;
            produced_ = out.pos;
            if (produced_ > 0) return Step::data;
        }
        return Step::need_input;
    }

    bool complete() const noexcept override {
        return !failed() && (!begun_ || (frame_done_ && input_.empty()));
    }

private:
    static std::string explain(std::size_t error) {
        if (::ZSTD_getErrorCode(error) == ZSTD_error_frameParameter_windowTooLarge) {
            return "the zstd body asks for a window of more than 8 MB";
        }
        return std::string{"the body is not valid zstd: "} + ::ZSTD_getErrorName(error);
    }

    struct Free {
        void operator()(ZSTD_DCtx* context) const noexcept { ::ZSTD_freeDCtx(context); }
    };
    std::unique_ptr<ZSTD_DCtx, Free> context_;
    bool frame_done_{false};
    bool flush_{false};
};

/// Several encodings, outermost first; each stage feeds the next.
class ChainDecoder final : public ContentDecoder {
public:
    explicit ChainDecoder(std::vector<std::unique_ptr<ContentDecoder>> stages)
        : stages_{std::move(stages)} {}

    void feed(std::span<char const> input) noexcept override { stages_.front()->feed(input); }

    Step next() override { return next_of(stages_.size() - 1); }

    std::span<char const> output() const noexcept override { return stages_.back()->output(); }

    bool complete() const noexcept override {
        return std::all_of(stages_.begin(), stages_.end(),
                           [](auto const& stage) { return stage->complete(); });
    }

    std::string_view error_text() const noexcept override {
        for (auto const& stage : stages_) {
            if (!stage->error_text().empty()) return stage->error_text();
        }
        return {};
    }

private:
    Step next_of(std::size_t index) {
        auto& stage = *stages_[index];
        for (;;) {
            auto const step = stage.next();
            if (step != Step::need_input || index == 0) return step;
            auto const before = next_of(index - 1);
            if (before != Step::data) return before;
            stage.feed(stages_[index - 1]->output());
        }
    }

    std::vector<std::unique_ptr<ContentDecoder>> stages_;
};

}  // namespace

std::unique_ptr<ContentDecoder> make_content_decoder(std::string_view content_encoding,
                                                     bool& known) {
    known = true;
    std::vector<std::unique_ptr<ContentDecoder>> stages;
    while (!content_encoding.empty()) {
        // From the end: what was applied last is undone first.
        auto const comma = content_encoding.rfind(',');
        auto const begin = comma == std::string_view::npos ? 0 : comma + 1;
        auto const name = base::trim(content_encoding.substr(begin));
        content_encoding = content_encoding.substr(0, begin == 0 ? 0 : comma);
        if (name.empty() || base::equal_in_any_case(name, "identity")) continue;
        if (stages.size() == most_encodings) {
            known = false;
            return nullptr;
        }
        if (base::equal_in_any_case(name, "gzip") || base::equal_in_any_case(name, "x-gzip")) {
            stages.push_back(std::make_unique<ZlibDecoder>(ZlibDecoder::Format::gzip));
        } else if (base::equal_in_any_case(name, "deflate")) {
            stages.push_back(std::make_unique<ZlibDecoder>(ZlibDecoder::Format::deflate));
        } else if (base::equal_in_any_case(name, "zstd")) {
            stages.push_back(std::make_unique<ZstdDecoder>());
        } else {
            known = false;
            return nullptr;
        }
    }
    if (stages.empty()) return nullptr;
    if (stages.size() == 1) return std::move(stages.front());
    return std::make_unique<ChainDecoder>(std::move(stages));
}

}  // namespace tinkxx::net
