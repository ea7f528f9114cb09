#pragma once

#include <tinkxx/http_client.hpp>
#include <tinkxx/text/hub.hpp>

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace tinkxx::text {

/// Sends the requests of a `TokenizerHub` over HTTP, with the retries, proxy and timeouts of an
/// `HttpClient`. The API key of the service stays with the service: it goes to the client's base
/// URL alone.
///
/// Any thread but those of the SDK, since it waits. Each piece of a file is in memory at once.
class HttpHubConnection final : public HubConnection {
public:
    HttpHubConnection() = default;
    explicit HttpHubConnection(HttpClient client) : client_{std::move(client)} {}

    void send(HubRequest const& request, std::function<void(HubHead const& head)> const& on_head,
              std::function<void(std::string_view data)> const& on_data) override {
        HttpRequest made;
        made.method = request.method;
        made.path = request.url;
        for (auto const& [name, value] : request.headers) made.headers.add(name, value);
        made.redirects = Redirects::none;
        made.fail_on_status = false;
        made.max_response_bytes = most_bytes;
        auto pending = client_.send(std::move(made));
        auto const answer = pending.get();
        HubHead head{.status = answer.status};
        for (auto const& [name, value] : answer.headers) head.headers.emplace_back(name, value);
        on_head(head);
        if (!answer.body.empty()) on_data(answer.body);
    }

private:
    /// Of one answer, even from a server that sends the whole file for a part of it.
    static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 29U;

    HttpClient client_{};
};

}  // namespace tinkxx::text
