#pragma once

#include <tinkxx/local/server.hpp>
#include <tinkxx/service_client.hpp>

#include <string>
#include <utility>

namespace tinkxx::local {

/// A client of this server. Options of `client` that select another server, such as its URL, are
/// ignored.
[[nodiscard]] inline ServiceClient service_client(Server const& server, ClientOptions client) {
    client.base_url = Server::base_url();
    if (client.api_key.empty()) client.api_key = "tml-local";
    client.transport = server.transport();
    client.runtime = server.runtime();
    return ServiceClient{std::move(client)};
}

/// A server inside this process and its client, without a port, a key or the network. The server
/// ends with the last handle made from the client and the last pending call.
///
///     auto service = tinkxx::local::service_client(
///         {.models = {{.name = "tinkxx/tiny", .folder = "models/tiny", .byte_level = true}}});
///     auto trainer = service.create_lora_training_client("tinkxx/tiny").get();
///
/// Throws as `Server` and `ServiceClient`.
[[nodiscard]] inline ServiceClient service_client(ServerOptions options, ClientOptions client) {
    // The key of the server is for those who come over a network.
    if (client.api_key.empty()) client.api_key = options.api_key;
    Server const server =
        client.runtime ? Server{std::move(options), *client.runtime} : Server{std::move(options)};
    return service_client(server, std::move(client));
}
[[nodiscard]] inline ServiceClient service_client(ServerOptions options) {
    return service_client(std::move(options), ClientOptions{});
}

}  // namespace tinkxx::local
