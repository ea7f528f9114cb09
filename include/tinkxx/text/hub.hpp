#pragma once

#include <tinkxx/text/load.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::text {

using HubHeaders = std::vector<std::pair<std::string, std::string>>;

/// A request that has no body.
struct HubRequest {
    std::string method{"GET"};  ///< or "HEAD"
    std::string url{};
    HubHeaders headers{};
};

/// The beginning of an answer, whatever its status.
struct HubHead {
    int status{0};
    HubHeaders headers{};

    /// The value of the first line of that name, in any case; null if there is none.
    [[nodiscard]] std::string const* find(std::string_view name) const noexcept;
};

/// Sends requests for `TokenizerHub`. One over HTTP is in `hub_http.hpp`.
class HubConnection {
public:
    virtual ~HubConnection() = default;

    /// Sends the request and returns after the end of the answer: gives its head to `on_head`, and
    /// then its body in pieces to `on_data`, on this thread. Follows no redirects and undoes no
    /// content encoding. Throws an `Error` if there is no whole answer; what the two functions
    /// throw passes through.
    virtual void send(HubRequest const& request,
                      std::function<void(HubHead const& head)> const& on_head,
                      std::function<void(std::string_view data)> const& on_data) = 0;
};

struct HubOptions {
    /// Must be set.
    std::shared_ptr<HubConnection> connection{};
    /// Empty: `$HF_ENDPOINT`, then `https://huggingface.co`.
    std::string endpoint{};
    /// Empty: `$HF_TOKEN`, then the file `$HF_TOKEN_PATH`, `$HF_HOME/token` or
    /// `~/.cache/huggingface/token`, else none. Sent to the endpoint's own origin alone, and only
    /// over TLS or within this machine; never part of a message.
    std::string token{};
    /// Empty: as `hub_cache_folder` says.
    std::filesystem::path cache{};
    /// Asks nobody. Empty: `$HF_HUB_OFFLINE`, then no.
    std::optional<bool> offline{};
    /// A larger file is refused.
    std::uint64_t max_file_bytes{std::uint64_t{256} << 20U};
    /// How much of a file is asked for at once. What came is kept, so that a download that was
    /// interrupted goes on there.
    std::uint64_t piece_bytes{std::uint64_t{8} << 20U};
    /// Empty: that of the process. Read once, by the constructor.
    Environment environment{};
};

/// Fetches the files of tokenizers from a hub into the cache that Hugging Face's own programs use,
/// in the same layout and with the same locks. Each file is checked against its checksum and
/// appears whole or not at all.
///
///     TokenizerHub hub{{.connection = std::make_shared<HttpHubConnection>()}};
///     Tokenizers all{tokenizer_loader(
///         {.download = [hub](TokenizerId const& id) { return hub.fetch(id); }})};
///
/// A cheap handle. Any thread and any process may fetch at the same time.
class TokenizerHub {
public:
    /// Throws `ValidationError` for options that cannot work.
    explicit TokenizerHub(HubOptions options);

    /// Fetches what a tokenizer needs and gives the folder with it. Asks the hub for the newest
    /// commit, but not for files of it that are in the cache.
    ///
    /// Throws `ValidationError` for a repository that does not exist, has no tokenizer or may not
    /// be read, if it is offline, and for files that are too large; `ConnectionError` for an answer
    /// that breaks off or does not have the checksum; what the connection throws passes through.
    [[nodiscard]] std::filesystem::path fetch(TokenizerId const& id) const;

private:
    class Impl;
    std::shared_ptr<Impl const> impl_;
};

}  // namespace tinkxx::text
