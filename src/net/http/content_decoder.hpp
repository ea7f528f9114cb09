#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tinkxx::net {

/// Undoes a Content-Encoding piece by piece. Memory is bounded whatever comes in.
///
///     decoder.feed(bytes);
///     while (decoder.next() == Step::data) use(decoder.output());
class ContentDecoder {
public:
    enum class Step {
        data,        ///< `output()` holds a piece, valid until the next call
        need_input,  ///< all that was fed is used up
        error,       ///< `error_text()` says why; nothing follows
    };

    virtual ~ContentDecoder() = default;
    /// `input` must stay valid until `next` says `need_input`.
    virtual void feed(std::span<char const> input) noexcept = 0;
    virtual Step next() = 0;
    [[nodiscard]] virtual std::span<char const> output() const noexcept = 0;
    /// Whether the encoded body is complete: false at its end means it was cut short.
    [[nodiscard]] virtual bool complete() const noexcept = 0;
    [[nodiscard]] virtual std::string_view error_text() const noexcept = 0;
};

/// What to send as Accept-Encoding.
inline constexpr std::string_view accepted_encodings = "gzip, zstd";

/// A decoder for the value of a Content-Encoding header ("gzip", "x-gzip", "deflate", "zstd",
/// any case; a list is undone in reverse order). Null for "identity" and empty. For an unknown
/// name `known` is set to false.
[[nodiscard]] std::unique_ptr<ContentDecoder> make_content_decoder(
    std::string_view content_encoding, bool& known);

}  // namespace tinkxx::net
