#pragma once

#include "support/servers/http1_script.hpp"
#include "support/servers/script_server.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tinkxx::test {

struct ConnectProxyOptions {
    /// What `Proxy-Authorization` must be, e.g. "Basic dTpw"; without it the answer is 407.
    std::string authorization{};
    /// Set: clients speak TLS to the proxy itself.
    std::shared_ptr<SSL_CTX> tls{};
    Family family{Family::ipv4};
    /// Answers every CONNECT with this in place of doing it. 0: does it.
    int refuse_with{0};
};

/// A proxy that knows CONNECT and nothing else. Whatever name it is asked for, it connects to
/// that port of 127.0.0.1.
class ConnectProxy {
public:
    ConnectProxy();
    explicit ConnectProxy(ConnectProxyOptions options);

    /// "http://127.0.0.1:1234", with "user:password@" if given.
    [[nodiscard]] std::string url(std::string const& credentials = {}) const;
    /// The CONNECT requests so far.
    [[nodiscard]] std::vector<ReceivedRequest> requests() const;

private:
    void serve(Wire& client);

    ConnectProxyOptions options_;
    mutable std::mutex mutex_;
    std::vector<ReceivedRequest> requests_;
    ScriptServer server_;  ///< last: its threads use the members above
};

}  // namespace tinkxx::test
