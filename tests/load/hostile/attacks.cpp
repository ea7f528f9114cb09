#include "load/hostile/attacks.hpp"

#include "load/hostile/raw_socket.hpp"
#include "load/users/questions.hpp"

#include <zstd.h>

#include <sys/resource.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>

namespace tinkxx::load {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Until an answer counts as lost. Far more than any may take.
constexpr auto patience = 90s;
constexpr std::size_t mebibyte = std::size_t{1} << 20U;
/// The tiny model has 2048 positions and 257 tokens.
constexpr int most_new_tokens = 2046;

// --- bodies -------------------------------------------------------------------------------------

std::string repeated(std::string_view piece, std::size_t count) {
    std::string text;
    text.reserve(piece.size() * count);
    for (std::size_t i = 0; i < count; ++i) text += piece;
    return text;
}

/// `piece` again and again as JSON elements, about `bytes` long.
std::string elements(std::string const& piece, std::size_t bytes) {
    return repeated(piece + ",", bytes / (piece.size() + 1)) + piece;
}

/// A zstd frame of `head`, `piece` again and again for `bytes`, and `tail`.
std::string compressed(std::string_view head, std::string_view piece, std::size_t bytes,
                       std::string_view tail) {
    std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> const context{ZSTD_createCCtx(),
                                                                       &ZSTD_freeCCtx};
    std::string out;
    std::string room(ZSTD_CStreamOutSize(), '\0');
    auto const add = [&](std::string_view text, ZSTD_EndDirective how) {
        ZSTD_inBuffer in{text.data(), text.size(), 0};
        std::size_t left = 0;
        do {
            ZSTD_outBuffer to{room.data(), room.size(), 0};
            left = ZSTD_compressStream2(context.get(), &to, &in, how);
            if (ZSTD_isError(left) != 0) throw std::runtime_error{ZSTD_getErrorName(left)};
            out.append(room.data(), to.pos);
        } while (in.pos < in.size || (how == ZSTD_e_end && left > 0));
    };
    add(head, ZSTD_e_continue);
    auto const block = repeated(piece, mebibyte / piece.size());
    for (std::size_t done = 0; done < bytes; done += block.size()) add(block, ZSTD_e_continue);
    add(tail, ZSTD_e_end);
    return out;
}

std::string session_body(std::string const& more) {
    return R"({"tags":[],"sdk_version":"0.36.0")" + more + "}";
}

std::string sample_body(std::string const& sampler, std::uint64_t number,
                        std::string const& prompt_tokens, std::string const& params,
                        std::string const& more = {}) {
    return R"({"sampling_session_id":")" + sampler + R"(","seq_id":)" + std::to_string(number) +
           R"(,"prompt":{"chunks":[{"type":"encoded_text","tokens":[)" + prompt_tokens +
           R"(]}]},"sampling_params":)" + params + more + "}";
}

constexpr std::int64_t most_columns = 65'536;

/// A matrix of which the body holds next to nothing.
std::string sparse_json(std::string const& dtype, std::size_t rows) {
    return R"({"data":[],"dtype":")" + dtype + R"(","shape":[)" + std::to_string(rows) + "," +
           std::to_string(most_columns) + R"(],"sparse_crow_indices":[)" + elements("0", 2 * rows) +
           R"(],"sparse_col_indices":[]})";
}

std::string sparse_pass_json(std::string const& model, std::uint64_t number, std::size_t tokens) {
    return R"({"forward_backward_input":{"data":[{"model_input":{"chunks":[{"type":"encoded_text",)"
           R"("tokens":[)" +
           elements("97", 3 * (tokens - 1)) + R"(]}]},"loss_fn_inputs":{"target_tokens":)" +
           sparse_json("int64", tokens) + R"(,"weights":)" + sparse_json("float32", tokens) +
           R"(}}],"loss_fn":"cross_entropy"},"model_id":")" + model + R"(","seq_id":)" +
           std::to_string(number) + "}";
}

// Protobuf, as proto/ has it.
std::string varint(std::uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7U) out += static_cast<char>((value & 0x7fU) | 0x80U);
    return out += static_cast<char>(value);
}
std::string field(unsigned number, std::uint64_t value) {
    return varint(number << 3U) + varint(value);
}
std::string field(unsigned number, std::string const& bytes) {
    return varint((number << 3U) | 2U) + varint(bytes.size()) + bytes;
}

std::string sparse_proto(unsigned dtype, std::size_t rows) {
    auto const shape = varint(rows) + varint(static_cast<std::uint64_t>(most_columns));
    return field(2, field(2, std::string((rows + 1) * 8, '\0'))) + field(3, dtype) +
           field(4, shape);
}

std::string sparse_pass_proto(std::string const& model, std::uint64_t number, std::size_t tokens) {
    auto const input = [](std::string const& name, std::string const& tensor) {
        return field(2, field(1, name) + field(2, tensor));
    };
    auto const datum =
        field(1, field(1, field(1, repeated(std::string_view{"a\0\0\0", 4}, tokens)))) +
        input("target_tokens", sparse_proto(2, tokens)) + input("weights", sparse_proto(1, tokens));
    return field(1, model) + field(2, number) + field(3, datum) +
           field(4, std::string{"cross_entropy"});
}

// --- asking -------------------------------------------------------------------------------------

/// The text member `name` of a JSON answer; empty if it has none.
std::string member(std::string const& json, std::string_view name) {
    auto const head = "\"" + std::string{name} + "\":\"";
    auto const at = json.find(head);
    if (at == std::string::npos) return {};
    auto const begin = at + head.size();
    return json.substr(begin, json.find('"', begin) - begin);
}

/// A client that knows the API, and means ill.
class Client {
public:
    Client(Target const& target, Outcomes& outcomes) : target_{target}, outcomes_{outcomes} {}

    [[nodiscard]] bool time_left() const { return Clock::now() < target_.end; }

    /// One request on a kept connection; counted.
    std::string post(std::string_view path, std::string_view body, std::string const& more = {}) {
        return send("POST", "/api/v1/" + std::string{path}, body, more);
    }
    /// Asks for results on a connection of its own and does not wait for them, since there may be
    /// none for long.
    void leave_poll(std::string const& body) {
        RawSocket{target_.port}.send(
            request_head("POST", "/api/v1/retrieve_futures", body.size(), target_.key) + body,
            Clock::now() + patience);
        ++outcomes_["left"];
    }
    std::string get(std::string const& path) { return send("GET", path, {}, {}); }

    std::string session() { return member(post("create_session", session_body("")), "session_id"); }
    std::string model() {
        auto const pending =
            post("create_model", R"({"session_id":")" + session() +
                                     R"(","model_seq_id":0,"base_model":")" + model_name +
                                     R"(","lora_config":{"rank":1,"seed":1}})");
        auto const id = member(pending, "request_id");
        std::string made;
        for (int i = 0; i < 3 && made.empty(); ++i) {
            made = member(post("retrieve_future", R"({"request_id":")" + id + R"("})"), "model_id");
        }
        return made;
    }
    std::string sampler() {
        return member(post("create_sampling_session", R"({"session_id":")" + session() +
                                                          R"(","sampling_session_seq_id":0,)"
                                                          R"("base_model":")" +
                                                          model_name + R"("})"),
                      "sampling_session_id");
    }
    /// Ends the sessions that it began, and so frees what they hold.
    void finish() {
        for (auto const& id : std::exchange(sessions_, {})) {
            post("sessions/" + id + "/finish", R"({"reason":{"type":"success"}})");
        }
    }
    /// They go on without it.
    void leave() { sessions_.clear(); }
    ~Client() { finish(); }
    Client(Client const&) = delete;
    Client& operator=(Client const&) = delete;

private:
    std::string send(std::string_view method, std::string const& path, std::string_view body,
                     std::string const& more) {
        if (!socket_) socket_ = std::make_unique<RawSocket>(target_.port);
        std::string answer;
        auto const status =
            socket_->ask(request_head(method, path, body.size(), target_.key + more), body,
                         Clock::now() + patience, &answer);
        ++outcomes_[status];
        // The server may end a connection whose request it has refused.
        if (status != "200") socket_.reset();
        if (path == "/api/v1/create_session" && status == "200") {
            sessions_.push_back(member(answer, "session_id"));
        }
        return answer;
    }

    Target const& target_;
    Outcomes& outcomes_;
    std::unique_ptr<RawSocket> socket_{};
    std::vector<std::string> sessions_{};
};

/// So many connections a second are more than one machine makes over a network. Without a limit the
/// attackers would take the processors away from the server that they share them with.
class Pace {
public:
    void keep() {
        std::this_thread::sleep_until(next_);
        next_ = std::max(next_ + 400us, Clock::now() - 5ms);
    }

private:
    Clock::time_point next_{Clock::now()};
};

/// Sends one body again and again, made from the number of the request.
template <class Body>
void flood(Client& client, std::string_view path, int most, std::string const& more, Body body) {
    for (int i = 0; i < most; ++i) {
        client.post(path, body(static_cast<std::uint64_t>(i) + 1), more);
        if (!client.time_left()) return;
    }
}

constexpr char const* as_protobuf = "Content-Type: application/x-protobuf\r\n";
constexpr char const* as_zstd = "Content-Encoding: zstd\r\n";
constexpr int most_large = 20;

// --- the kinds ----------------------------------------------------------------------------------

constexpr std::size_t sparse_tokens = 4'000;

void sparse_as_json(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    auto const model = client.model();
    flood(client, "forward_backward", most_large, "", [&](std::uint64_t number) {
        return sparse_pass_json(model, number, target.scaled(sparse_tokens));
    });
}

void sparse_as_protobuf(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    auto const model = client.model();
    flood(client, "forward_backward", most_large, as_protobuf, [&](std::uint64_t number) {
        return sparse_pass_proto(model, number, target.scaled(sparse_tokens));
    });
}

void sparse_as_zstd(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    auto const model = client.model();
    flood(client, "forward_backward", most_large, std::string{as_protobuf} + as_zstd,
          [&](std::uint64_t number) {
              auto const plain = sparse_pass_proto(model, number, target.scaled(sparse_tokens));
              return compressed(plain, " ", 0, {});
          });
}

void long_prompt(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    auto const body =
        sample_body(client.sampler(), 0, elements("97", target.scaled(100) * mebibyte), R"({})");
    flood(client, "asample", most_large, "", [&](std::uint64_t) { return std::string_view{body}; });
}

void zeros_in_zstd(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    auto const body = compressed({}, std::string_view{"\0", 1}, target.scaled(250) * mebibyte, {});
    flood(client, "forward_backward", most_large, std::string{as_protobuf} + as_zstd,
          [&](std::uint64_t) { return std::string_view{body}; });
}

void json_in_zstd(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    auto const whole = sample_body(client.sampler(), 0, "97", R"({})");
    auto const cut = whole.find("97") + 2;
    auto const body = compressed(whole.substr(0, cut), ",97,98", target.scaled(250) * mebibyte,
                                 whole.substr(cut));
    flood(client, "asample", most_large, as_zstd,
          [&](std::uint64_t) { return std::string_view{body}; });
}

void nested(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    auto const depth = target.scaled(2'000'000);
    auto const lists =
        session_body(R"(,"user_metadata":)" + std::string(depth, '[') + std::string(depth, ']'));
    auto const objects = session_body(R"(,"user_metadata":)" + repeated(R"({"a":)", depth) + "1" +
                                      std::string(depth, '}'));
    flood(client, "create_session", 2 * most_large, "", [&](std::uint64_t number) {
        return std::string_view{number % 2 == 0 ? lists : objects};
    });
}

void empty_chunks(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    std::string const chunk = R"({"type":"encoded_text","tokens":[]})";
    auto const body = R"({"sampling_session_id":")" + client.sampler() +
                      R"(","seq_id":0,"prompt":{"chunks":[)" +
                      elements(chunk, target.scaled(2'000'000) * (chunk.size() + 1)) +
                      R"(]},"sampling_params":{}})";
    flood(client, "asample", most_large, "", [&](std::uint64_t) { return std::string_view{body}; });
}

void whitespace(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    std::string const blanks(target.scaled(30) * mebibyte, ' ');
    auto const body = blanks + session_body("") + blanks;
    flood(client, "create_session", most_large, "",
          [&](std::uint64_t) { return std::string_view{body}; });
}

void top_of_a_prompt(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    auto const sampler = client.sampler();
    for (std::uint64_t i = 0; i < most_large && client.time_left(); ++i) {
        auto const pending =
            client.post("asample", sample_body(sampler, i, elements("97", 3 * target.scaled(2000)),
                                               R"({"max_tokens":1,"stop":[]})",
                                               R"(,"prompt_logprobs":true,)"
                                               R"("topk_prompt_logprobs":257)"));
        auto const id = member(pending, "request_id");
        if (!id.empty()) client.post("retrieve_future", R"({"request_id":")" + id + R"("})");
    }
}

void many_samples(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    auto const sampler = client.sampler();
    std::vector<std::string> pending;
    for (std::uint64_t i = 0; i < most_large && client.time_left(); ++i) {
        pending.push_back(
            member(client.post("asample",
                               sample_body(sampler, i, "97,98",
                                           R"({"max_tokens":)" + std::to_string(most_new_tokens) +
                                               R"(,"stop":[]})",
                                           R"(,"num_samples":1024)")),
                   "request_id"));
        std::this_thread::sleep_for(20ms);
    }
    std::this_thread::sleep_until(target.end);
    // Or all the other kinds would be tried on a server that has enough to do for hours.
    for (auto const& id : pending) {
        if (!id.empty()) client.post("cancel_future", R"({"request_id":")" + id + R"("})");
    }
}

void large_metadata(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    auto const bytes = target.scaled(50) * mebibyte;
    auto const one = session_body(R"(,"user_metadata":{"a":")" + std::string(bytes, 'x') + R"("})");
    std::string many = R"(,"user_metadata":{"a":"b")";
    for (std::size_t i = 0; many.size() < bytes; ++i) many += ",\"" + std::to_string(i) + "\":1";
    many = session_body(many + "}");
    flood(client, "create_session", 4, "",
          [&](std::uint64_t number) { return std::string_view{number % 2 == 0 ? one : many}; });
}

void many_sessions(Target const& target, Outcomes& outcomes) {
    // Not finished: that is what is wrong with them.
    RawSocket socket{target.port};
    auto const body = session_body("");
    auto const head = request_head("POST", "/api/v1/create_session", body.size(), target.key);
    for (std::size_t i = 0; i < target.scaled(50'000) && Clock::now() < target.end; ++i) {
        auto const status = socket.ask(head, body, Clock::now() + patience);
        ++outcomes[status];
        if (status != "200") socket = RawSocket{target.port};
    }
}

void long_lists(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    auto const body =
        session_body(R"(,"user_metadata":{"a":")" + std::string(32'000, '\\') + R"("})");
    auto const room = std::min<std::size_t>(1000, target.scaled(1000));
    for (std::size_t i = 0; i < room && client.time_left(); ++i) {
        client.post("create_session", body);
    }
    while (client.time_left()) {
        client.get("/api/v1/sessions?limit=10000");
        client.post("sessions/search", R"({"limit":200})");
        client.get("/api/v1/training_runs?limit=10000");
        client.get("/api/v1/checkpoints?limit=10000");
    }
}

void odd_numbers(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    auto const sampler = client.sampler();
    auto const model = client.model();
    std::string const step = R"({"adam_params":{},"model_id":")" + model + R"(","seq_id":)";
    while (client.time_left()) {
        for (std::string const number :
             {"9223372036854775807", "-1", "-9223372036854775808", "9223372036854775808", "1e300",
              "4611686018427387904", "1.5"}) {
            client.get("/api/v1/training_runs?limit=" + number + "&offset=" + number);
            client.get("/api/v1/checkpoints?limit=" + number + "&offset=" + number);
            client.get("/api/v1/sessions?limit=" + number + "&offset=" + number);
            client.get("/api/v1/audit?date=" + number + "&cursor=" + number);
            client.get("/api/v1/billing/usage/events?start=" + number + "&cursor=" + number);
            client.post("sessions/search", R"({"limit":)" + number + "}");
            client.post("asample", R"({"sampling_session_id":")" + sampler + R"(","seq_id":)" +
                                       number +
                                       R"(,"prompt":{"chunks":[{"tokens":[97]}]},)"
                                       R"("sampling_params":{"max_tokens":1}})");
            client.post("asample", sample_body(sampler, 1, "97", R"({"max_tokens":)" + number + "}",
                                               R"(,"num_samples":)" + number));
            client.post("asample", sample_body(sampler, 2, number, R"({"top_k":)" + number + "}",
                                               R"(,"topk_prompt_logprobs":)" + number +
                                                   R"(,"prompt_logprobs_last_n":)" + number));
            client.post("optim_step", step + number + "}");
            client.leave_poll(R"({"target":{"type":"sampling_session","sampling_session_id":")" +
                              sampler + R"("},"prev_cursor":)" + number + "}");
            client.post("create_sampling_session", R"({"session_id":"x","base_model":"y",)"
                                                   R"("sampling_session_seq_id":)" +
                                                       number + "}");
            client.post("create_model", R"({"session_id":"x","base_model":"y","model_seq_id":)" +
                                            number + R"(,"lora_config":{"rank":)" + number + "}}");
            if (!client.time_left()) return;
        }
    }
}

void odd_clones(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    auto const sampler = client.sampler();
    std::mt19937_64 chance{target.seed};
    std::deque<RawSocket> waiting;
    Pace pace;
    for (std::size_t i = 0; i < target.scaled(20'000) && client.time_left(); ++i) {
        pace.keep();
        auto const id = static_cast<std::int64_t>(chance() >> (chance() % 64));
        auto const body = R"({"target":{"type":"sampling_session","sampling_session_id":")" +
                          sampler + R"(","cloned_sampler_id":)" + std::to_string(id) +
                          R"(},"prev_cursor":0})";
        // They wait for results, so nobody waits for them.
        RawSocket socket{target.port};
        socket.send(
            request_head("POST", "/api/v1/retrieve_futures", body.size(), target.key) + body,
            Clock::now() + patience);
        ++outcomes["left"];
        waiting.push_back(std::move(socket));
        if (waiting.size() > 200) waiting.pop_front();
    }
}

void left_polls(Target const& target, Outcomes& outcomes) {
    Client client{target, outcomes};
    auto const pending = member(
        client.post("asample", sample_body(client.sampler(), 0, "97",
                                           R"({"max_tokens":)" + std::to_string(most_new_tokens) +
                                               R"(,"stop":[]})",
                                           R"(,"num_samples":64)")),
        "request_id");
    auto const body = R"({"request_id":")" + pending + R"("})";
    auto const text =
        request_head("POST", "/api/v1/retrieve_future", body.size(), target.key) + body;
    Pace pace;
    for (std::size_t i = 0; i < target.scaled(20'000) && client.time_left(); ++i) {
        pace.keep();
        RawSocket{target.port}.send(text, Clock::now() + patience);
        ++outcomes["left"];
    }
    client.post("cancel_future", body);
}

void pipelines_without_reading(Target const& target, Outcomes& outcomes) {
    auto const requests =
        repeated(request_head("GET", "/metrics", 0, target.key), target.scaled(10'000));
    std::vector<std::unique_ptr<RawSocket>> sockets;
    for (int i = 0; i < 20; ++i) {
        sockets.push_back(std::make_unique<RawSocket>(target.port));
        // The server may stop to read, which is its right.
        sockets.back()->send(requests, std::min(target.end, Clock::now() + 200ms));
        outcomes["left"] += target.scaled(10'000);
    }
    std::this_thread::sleep_until(target.end);
    // Not before the server has come to them, however busy it is.
    for (int i = 0; i < 2; ++i) {
        (void)RawSocket{target.port}.ask(request_head("GET", "/api/v1/healthz", 0), {},
                                         Clock::now() + patience);
    }
}

void byte_by_byte(Target const& target, Outcomes& outcomes) {
    std::vector<std::unique_ptr<RawSocket>> sockets;
    auto const body = session_body("");
    auto const text =
        request_head("POST", "/api/v1/create_session", body.size(), target.key) + body;
    for (std::size_t i = 0; i < target.scaled(200); ++i) {
        sockets.push_back(std::make_unique<RawSocket>(target.port));
    }
    for (std::size_t sent = 0; sent < text.size(); ++sent) {
        for (auto& socket : sockets) socket->send({&text[sent], 1}, Clock::now() + 1s);
        if (Clock::now() + 1s > target.end) break;
        std::this_thread::sleep_for(1s);
    }
    std::this_thread::sleep_until(target.end);
    for (auto& socket : sockets) ++outcomes[socket->state()];
}

void idle(Target const& target, Outcomes& outcomes) {
    std::vector<std::unique_ptr<RawSocket>> sockets;
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    auto const most = std::min<std::size_t>(target.scaled(4'000), files.rlim_cur / 4);
    Pace pace;
    for (std::size_t i = 0; i < most && Clock::now() < target.end; ++i) {
        pace.keep();
        sockets.push_back(std::make_unique<RawSocket>(target.port));
    }
    std::this_thread::sleep_until(target.end);
    for (auto& socket : sockets) ++outcomes[socket->state()];
}

void half_closed(Target const& target, Outcomes& outcomes) {
    auto const whole = request_head("GET", "/metrics", 0, target.key);
    auto const cut = request_head("POST", "/api/v1/create_session", 1000, target.key) + "{";
    for (std::size_t i = 0; i < target.scaled(5'000) && Clock::now() < target.end; ++i) {
        RawSocket socket{target.port};
        bool const all = i % 2 == 0;
        socket.send(all ? whole : std::string_view{cut}, Clock::now() + patience);
        socket.end_sending();
        ++outcomes[socket.ask({}, {}, Clock::now() + patience)];
    }
}

void wrong_keys(Target const& target, Outcomes& outcomes) {
    std::mt19937_64 chance{target.seed};
    std::string const body(target.scaled(10) * mebibyte, ' ');
    for (std::size_t i = 0; i < target.scaled(20'000) && Clock::now() < target.end; ++i) {
        RawSocket socket{target.port};
        auto const key =
            i % 10 == 0 ? std::string{} : "X-API-Key: tml-" + std::to_string(chance()) + "\r\n";
        // Some with a body, which is not worth reading.
        auto const size = i % 50 == 0 ? body.size() : 0;
        ++outcomes[socket.ask(request_head("POST", "/api/v1/create_session", size, key),
                              std::string_view{body}.substr(0, size), Clock::now() + patience)];
    }
}

void broken_http(Target const& target, Outcomes& outcomes) {
    std::mt19937_64 chance{target.seed};
    auto const chunked = "POST /api/v1/create_session HTTP/1.1\r\nHost: 127.0.0.1\r\n" +
                         target.key + "Transfer-Encoding: chunked\r\n\r\n";
    std::vector<std::string> const texts{
        "GET / HTTP/1.1\r\nX: " + std::string(target.scaled(10) * mebibyte, 'x') + "\r\n\r\n",
        "GET /" + std::string(mebibyte, 'x') + " HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\n" + repeated("a:b\r\n", 20'000) + "\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        chunked + "ffffffffffffffff\r\n",
        chunked + repeated("1\r\nx\r\n", target.scaled(1'000'000)) + "0\r\n\r\n",
        chunked + "1;" + std::string(mebibyte, 'x') + "\r\n",
        std::string(mebibyte, '\0'),
        std::string(mebibyte, '\n'),
    };
    for (std::size_t i = 0; i < 1'000 && Clock::now() < target.end; ++i) {
        RawSocket socket{target.port};
        auto text = texts[i % texts.size()];
        if (i >= texts.size()) text[chance() % std::min<std::size_t>(text.size(), 200)] ^= 1U;
        // One that waits for more of a request is as good as an answer.
        ++outcomes[socket.ask(text, {}, Clock::now() + 1s)];
    }
}

}  // namespace

std::vector<Attack> const& attacks() {
    static std::vector<Attack> const all{
        // Memory that was once taken is not always given back, so the largest come last.
        {"pipelines without reading", pipelines_without_reading, false},
        {"a byte a second", byte_by_byte, false},
        {"idle connections", idle, false},
        {"half-closed connections", half_closed},
        {"wrong keys", wrong_keys},
        {"broken HTTP", broken_http, false},
        {"nested JSON", nested},
        {"top logprobs of a prompt", top_of_a_prompt},
        {"1024 samples of 2046 tokens", many_samples},
        {"many sessions", many_sessions},
        {"long lists", long_lists},
        {"odd numbers", odd_numbers},
        {"odd clones", odd_clones, false},
        {"abandoned polls", left_polls, false},
        {"sparse targets, JSON", sparse_as_json},
        {"sparse targets, protobuf", sparse_as_protobuf},
        {"sparse targets, zstd", sparse_as_zstd},
        {"prompt of 100 MB", long_prompt},
        {"zstd of 250 MB of zeros", zeros_in_zstd},
        {"zstd of 250 MB of JSON", json_in_zstd},
        {"millions of empty chunks", empty_chunks},
        {"60 MB of whitespace", whitespace},
        {"metadata of 50 MB", large_metadata},
    };
    return all;
}

void leave_work(Target const& target) {
    Outcomes ignored;
    Client client{target, ignored};
    auto const sampler = client.sampler();
    client.leave();
    for (std::uint64_t i = 0; i < 4; ++i) {
        client.post("asample", sample_body(sampler, i, "97",
                                           R"({"max_tokens":)" + std::to_string(most_new_tokens) +
                                               R"(,"stop":[]})",
                                           R"(,"num_samples":1024)"));
    }
}

}  // namespace tinkxx::load
