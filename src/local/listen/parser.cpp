#include "local/listen/parser.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/status.hpp>

#include <algorithm>
#include <utility>

namespace tinkxx::local {
namespace {

namespace beast_http = boost::beast::http;
using boost::beast::iequals;
using boost::beast::string_view;
using ErrorCode = boost::beast::error_code;

// What the end of a chunked body has at least. Beast's parser wants no less when it looks again.
constexpr std::size_t shortest_chunk_end = 5;

}  // namespace

class RequestParser::Impl final : public beast_http::basic_parser<true> {
public:
    explicit Impl(ListenerLimits const& limits) : limits_{limits} {
        eager(true);
        header_limit(
            static_cast<std::uint32_t>(std::min<std::size_t>(limits.max_header_bytes, UINT32_MAX)));
        body_limit(limits.max_request_bytes);
    }

    std::size_t take(std::span<char const> bytes) {
        if (state == State::head_done || state == State::complete || state == State::refused)
            return 0;
        if (state == State::body && chunked() && bytes.size() < shortest_chunk_end) return 0;
        ErrorCode error;
        bool const in_head = state == State::head;
        auto const taken = put(boost::asio::buffer(bytes.data(), bytes.size()), error);
        // Beast limits what is looked at in one go, which is not all if lines come one by one.
        if (in_head) head_bytes += taken;
        if (in_head && head_bytes > limits_.max_header_bytes && state == State::head) {
            refuse_length();
            return taken;
        }
        if (stopped_) {
            // Left by an error of our own, after the head; nothing of the body is taken yet.
            stopped_ = false;
            return taken;
        }
        if (error == beast_http::error::need_more) {
            // Of the head, with what is taken of it; behind a chunk, what is not taken only.
            auto const before = state == State::head ? head_bytes : 0;
            if (bytes.size() - taken > limits_.max_header_bytes - before) refuse_length();
        } else if (error) {
            refuse_for(error);
        }
        return taken;
    }

    ServerRequest request;
    Refusal refusal;
    State state{State::head};
    std::size_t head_bytes{0};
    bool expects_continue{false};
    int version{11};

private:
    void on_request_impl(beast_http::verb, string_view method, string_view target, int http,
                         ErrorCode&) override {
        request.method.assign(method.data(), method.size());
        request.target.assign(target.data(), target.size());
        version = http;
    }
    void on_response_impl(int, string_view, int, ErrorCode&) override {}
    void on_field_impl(beast_http::field, string_view name, string_view value,
                       ErrorCode& error) override {
        // What stands behind a chunked body is no part of the head.
        if (state != State::head) return;
        if (request.headers.size() == limits_.max_header_lines) {
            refuse(431, "A request must not have more than " +
                            std::to_string(limits_.max_header_lines) + " header lines.");
            error = beast_http::error::header_limit;
            return;
        }
        request.headers.add(std::string{name}, std::string{value});
    }
    void on_header_impl(ErrorCode& error) override {
        check_head();
        if (state == State::head) state = State::head_done;
        if (is_done()) return;
        stopped_ = true;
        error = beast_http::error::need_buffer;
    }
    void on_body_init_impl(boost::optional<std::uint64_t> const& length, ErrorCode&) override {
        // The peer can say anything, so memory for it is taken only as the body comes.
        if (length && *length < body_most_) body_most_ = static_cast<std::size_t>(*length);
    }
    std::size_t on_body_impl(string_view body, ErrorCode&) override {
        request.body.append({body.data(), body.size()}, body_most_);
        return body.size();
    }
    void on_chunk_header_impl(std::uint64_t, string_view, ErrorCode&) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, string_view body, ErrorCode&) override {
        request.body.append({body.data(), body.size()}, body_most_);
        return body.size();
    }
    void on_finish_impl(ErrorCode&) override {
        if (state == State::body) state = State::complete;
    }

    void refuse(int status, std::string detail) {
        state = State::refused;
        refusal = {.status = status, .detail = std::move(detail)};
    }
    void refuse_length() {
        refuse(431, "The header lines of a request must not be longer than " +
                        quantity(limits_.max_header_bytes) + ".");
    }

    void check_head() {
        int hosts = 0;
        for (auto const& [name, value] : request.headers) {
            if (iequals(name, "Host")) ++hosts;
            if (iequals(name, "Expect")) {
                expects_continue = iequals(value, "100-continue") && version >= 11;
                if (!iequals(value, "100-continue")) {
                    refuse(417, "Only 100-continue can be expected, not " + printable(value) + ".");
                }
            }
            // Whoever stands between here and the peer may read other codings as another length.
            if (iequals(name, "Transfer-Encoding") &&
                (!iequals(value, "chunked") || version < 11)) {
                refuse(501, "The transfer coding " + printable(value) +
                                " is not known here; send chunked, or a Content-Length.");
            }
        }
        if (hosts > 1 || (hosts == 0 && version >= 11)) {
            refuse(400, "A request has one Host line; this one has " + std::to_string(hosts) + ".");
        }
        check_target();
    }

    void check_target() {
        auto& target = request.target;
        for (std::string_view scheme : {"http://", "https://"}) {
            if (!target.starts_with(scheme)) continue;
            auto const path = std::min(target.find_first_of("/?", scheme.size()), target.size());
            request.headers.set("Host", target.substr(scheme.size(), path - scheme.size()));
            target.erase(0, path);
            if (!target.starts_with('/')) target.insert(0, 1, '/');
        }
        if (!target.starts_with('/') && !(target == "*" && request.method == "OPTIONS")) {
            refuse(400, "A request is for a path, and " + printable(target) + " is none.");
        }
    }

    void refuse_for(ErrorCode const& error) {
        if (state == State::refused) return;  // and told why
        if (error == beast_http::error::header_limit) return refuse_length();
        if (error == beast_http::error::body_limit) {
            return refuse(413, "The body of a request must not be longer than " +
                                   quantity(limits_.max_request_bytes) + "; send less at a time.");
        }
        if (error == beast_http::error::bad_version) {
            return refuse(505, "This server speaks HTTP/1.1 and HTTP/1.0.");
        }
        refuse(400, "This is no HTTP request: " + error.message() + ".");
    }

    ListenerLimits const& limits_;
    std::size_t body_most_{limits_.max_request_bytes};
    bool stopped_{false};
};

std::string quantity(std::size_t bytes) {
    if (bytes >= (std::size_t{1} << 20U)) return std::to_string(bytes >> 20U) + " MiB";
    if (bytes >= (std::size_t{1} << 10U)) return std::to_string(bytes >> 10U) + " KiB";
    return std::to_string(bytes) + " bytes";
}

std::string printable(std::string_view text, std::size_t most) {
    std::string clean{text.substr(0, most)};
    for (auto& c : clean) {
        if (c < ' ' || c > '~') c = '?';
    }
    if (text.size() > most) clean += "...";
    return clean;
}

RequestParser::RequestParser(ListenerLimits const& limits)
    : impl_{std::make_unique<Impl>(limits)} {}
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;
RequestParser::~RequestParser() = default;

std::size_t RequestParser::feed(std::span<char const> bytes) { return impl_->take(bytes); }
void RequestParser::go_on() noexcept {
    if (impl_->state == State::head_done) {
        impl_->state = impl_->is_done() ? State::complete : State::body;
    }
}
RequestParser::State RequestParser::state() const noexcept { return impl_->state; }
Refusal const& RequestParser::refusal() const noexcept { return impl_->refusal; }
ServerRequest const& RequestParser::request() const noexcept { return impl_->request; }
ServerRequest RequestParser::take_request() noexcept {
    impl_->head_bytes = 0;
    return std::exchange(impl_->request, {});
}
std::size_t RequestParser::held() const noexcept {
    auto const& request = impl_->request;
    // Each line twice, for its strings and for the room that a list has beyond its end.
    return impl_->head_bytes + request.headers.size() * 2 * sizeof(Header) + request.body.memory();
}
bool RequestParser::has_body() const noexcept { return !impl_->is_done(); }
bool RequestParser::expects_continue() const noexcept { return impl_->expects_continue; }
bool RequestParser::keep_alive() const noexcept { return impl_->keep_alive(); }
bool RequestParser::http_1_0() const noexcept { return impl_->version < 11; }
std::optional<std::uint64_t> RequestParser::content_length() const noexcept {
    if (auto const length = impl_->content_length()) return *length;
    return std::nullopt;
}

std::string_view reason_of(int status) noexcept {
    auto const known = beast_http::int_to_status(static_cast<unsigned>(status));
    auto const text = beast_http::obsolete_reason(known);
    return {text.data(), text.size()};
}

}  // namespace tinkxx::local
