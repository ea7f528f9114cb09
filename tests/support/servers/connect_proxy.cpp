#include "support/servers/connect_proxy.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>

namespace tinkxx::test {

ConnectProxy::ConnectProxy() : ConnectProxy{ConnectProxyOptions{}} {}

ConnectProxy::ConnectProxy(ConnectProxyOptions options)
    : options_{std::move(options)},
      server_{[this](Wire& client) { serve(client); },
              ScriptServerOptions{.family = options_.family, .tls = options_.tls}} {}

std::string ConnectProxy::url(std::string const& credentials) const {
    return (options_.tls ? "https://" : "http://") +
           (credentials.empty() ? std::string{} : credentials + "@") +
           loopback_authority(options_.family, server_.port());
}

std::vector<ReceivedRequest> ConnectProxy::requests() const {
    std::lock_guard const lock{mutex_};
    return requests_;
}

void ConnectProxy::serve(Wire& client) {
    auto const request = read_request(client);
    if (!request) return;
    {
        std::lock_guard const lock{mutex_};
        requests_.push_back(*request);
    }
    if (request->method != "CONNECT") {
        client.send(http1_answer({.status = 405}));
        return;
    }
    if (!options_.authorization.empty() &&
        request->header("Proxy-Authorization") != options_.authorization) {
        client.send(http1_answer(
            {.status = 407, .headers = {{"Proxy-Authenticate", "Basic realm=\"test\""}}}));
        return;
    }
    if (options_.refuse_with != 0) {
        client.send(http1_answer({.status = options_.refuse_with}));
        return;
    }
    auto const port = request->target.substr(request->target.rfind(':') + 1);
    auto const upstream =
        connect_to_loopback(Family::ipv4, static_cast<std::uint16_t>(std::stoi(port)));
    if (!upstream) {
        client.send(http1_answer({.status = 502}));
        return;
    }
    client.send("HTTP/1.1 200 Connected\r\n\r\n");
    // One thread per direction: neither waits for the other.
    std::thread back{[&] {
        block_sigpipe_in_this_thread();
        std::array<char, 65536> chunk;
        try {
            for (;;) {
                auto const got = ::recv(upstream.get(), chunk.data(), chunk.size(), 0);
                if (got <= 0) break;
                client.send({chunk.data(), static_cast<std::size_t>(got)});
            }
            client.finish();
        } catch (PeerGone const&) {
            ::shutdown(upstream.get(), SHUT_RDWR);
        }
    }};
    try {
        for (;;) {
            auto const bytes = client.receive_some();
            if (bytes.empty()) break;
            for (std::size_t at = 0; at < bytes.size();) {
                auto const sent =
                    ::send(upstream.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
                if (sent <= 0) break;
                at += static_cast<std::size_t>(sent);
            }
        }
    } catch (PeerGone const&) {
        // The other direction ends with the shutdown below.
    }
    ::shutdown(upstream.get(), SHUT_RDWR);
    back.join();
}

}  // namespace tinkxx::test
