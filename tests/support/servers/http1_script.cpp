#include "support/servers/http1_script.hpp"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <stdexcept>

namespace tinkxx::test {
namespace {

std::string_view trim(std::string_view text) {
    auto const first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::size_t to_number(std::string_view text, int base) {
    std::size_t number = 0;
    auto const result = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (result.ec != std::errc{}) throw std::runtime_error{"not a number: " + std::string{text}};
    return number;
}

std::string head_of(ScriptedAnswer const& answer) {
    auto text = "HTTP/1.1 " + std::to_string(answer.status) + " Some Reason\r\n";
    for (auto const& [name, value] : answer.headers) text += name + ": " + value + "\r\n";
    return text;
}

}  // namespace

std::string ReceivedRequest::header(std::string_view name) const {
    auto const* value = headers.find(name);
    return value == nullptr ? std::string{} : *value;
}

ReceivedRequest parse_request_head(std::string_view head) {
    ReceivedRequest request;
    auto const line = head.substr(0, head.find("\r\n"));
    auto const first = line.find(' ');
    auto const last = line.rfind(' ');
    if (first == std::string_view::npos || last == first) {
        throw std::runtime_error{"bad request line: " + std::string{line}};
    }
    request.method = line.substr(0, first);
    request.target = line.substr(first + 1, last - first - 1);
    for (auto at = line.size() + 2; at < head.size();) {
        auto const end = std::min(head.find("\r\n", at), head.size());
        auto const field = head.substr(at, end - at);
        auto const colon = field.find(':');
        if (colon == std::string_view::npos) throw std::runtime_error{"bad header line"};
        request.headers.add(std::string{field.substr(0, colon)},
                            std::string{trim(field.substr(colon + 1))});
        at = end + 2;
    }
    return request;
}

std::optional<std::string> parse_request_body(ReceivedRequest const& request,
                                              std::string_view bytes, std::size_t& at) {
    if (request.headers.contains("Transfer-Encoding")) {
        std::string body;
        for (auto next = at;;) {
            auto const end = bytes.find("\r\n", next);
            if (end == std::string_view::npos) return std::nullopt;
            auto const size = to_number(bytes.substr(next, end - next), 16);
            next = end + 2;
            if (bytes.size() < next + size + 2) return std::nullopt;
            body += bytes.substr(next, size);
            next += size + 2;
            if (size == 0) {
                at = next;
                return body;
            }
        }
    }
    auto const* length = request.headers.find("Content-Length");
    if (length == nullptr) return std::string{};
    auto const size = to_number(*length, 10);
    if (bytes.size() < at + size) return std::nullopt;
    std::string body{bytes.substr(at, size)};
    at += size;
    return body;
}

std::optional<ReceivedRequest> read_request(Wire& wire) {
    if (wire.at_end()) return std::nullopt;
    auto const head = wire.receive_until("\r\n\r\n");
    auto request = parse_request_head(std::string_view{head}.substr(0, head.size() - 4));
    request.connection = wire.index();
    if (auto const* length = request.headers.find("Content-Length")) {
        request.body = wire.receive(to_number(*length, 10));
    } else if (request.headers.contains("Transfer-Encoding")) {
        for (;;) {
            auto const line = wire.receive_until("\r\n");
            auto const size = to_number(std::string_view{line}.substr(0, line.size() - 2), 16);
            request.body += wire.receive(size);
            (void)wire.receive(2);
            if (size == 0) break;
        }
    }
    return request;
}

std::string http1_answer(ScriptedAnswer const& answer) {
    auto text = head_of(answer);
    // 1xx, 204 and 304 have no body by definition, so they carry no length either.
    if (answer.status >= 200 && answer.status != 204 && answer.status != 304) {
        text += "Content-Length: " + std::to_string(answer.body.size()) + "\r\n";
    }
    return text + "\r\n" + answer.body;
}

std::string http1_chunked_answer(ScriptedAnswer const& answer, std::size_t size) {
    auto text = head_of(answer) + "Transfer-Encoding: chunked\r\n\r\n";
    for (std::size_t at = 0; at < answer.body.size(); at += size) {
        auto const piece = answer.body.substr(at, size);
        char line[32];
        std::snprintf(line, sizeof line, "%zx\r\n", piece.size());
        text += line + piece + "\r\n";
    }
    return text + "0\r\n\r\n";
}

ScriptServer::Script always_answer(std::string text) {
    return [text = std::move(text)](Wire& wire) {
        while (read_request(wire)) wire.send(text);
    };
}

std::string pattern(std::size_t size, unsigned seed) {
    std::string text(size, '\0');
    std::uint32_t state = seed * 2654435761U + 12345U;
    for (auto& byte : text) {
        state = state * 1664525U + 1013904223U;
        byte = static_cast<char>(state >> 24U);
    }
    return text;
}

std::string gzip(std::string_view plain) {
    z_stream stream{};
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        throw std::runtime_error{"deflateInit2"};
    }
    std::string packed(deflateBound(&stream, static_cast<uLong>(plain.size())), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
    stream.avail_in = static_cast<uInt>(plain.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    auto const result = deflate(&stream, Z_FINISH);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    if (result != Z_STREAM_END) throw std::runtime_error{"deflate"};
    return packed;
}

std::string zstd(std::string_view plain) {
    std::string packed(ZSTD_compressBound(plain.size()), '\0');
    auto const size = ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3);
    if (ZSTD_isError(size) != 0U) throw std::runtime_error{"ZSTD_compress"};
    packed.resize(size);
    return packed;
}

}  // namespace tinkxx::test
