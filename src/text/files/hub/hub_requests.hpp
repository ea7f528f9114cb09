#pragma once

#include <tinkxx/text/hub.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx::text::files {

/// The operation that messages begin with.
inline constexpr std::string_view fetching = "TokenizerHub::fetch";

/// What the hub says about a file before it is fetched.
struct HubFile {
    std::string name{};
    std::string commit{};
    std::string checksum{};
    std::optional<std::uint64_t> size{};
};

/// An answer whose redirects were followed.
struct HubAnswer {
    int status{0};
    /// Of a part: where it begins, and how long the whole file is.
    std::uint64_t begin{0};
    std::optional<std::uint64_t> size{};
};

/// Makes requests to one hub, with the token where it may go.
class HubRequests {
public:
    HubRequests(std::shared_ptr<HubConnection> connection, std::string endpoint, std::string token);

    /// Empty if the repository has no such file. Throws as `TokenizerHub::fetch`.
    [[nodiscard]] std::optional<HubFile> look(TokenizerId const& id, std::string_view revision,
                                              std::string_view file) const;

    /// Asks for the bytes from `begin` to before `end`; a server that knows no ranges sends all.
    /// `on_begin` is given the answer before the first data, unless it is an error.
    void get(TokenizerId const& id, HubFile const& file, std::uint64_t begin, std::uint64_t end,
             std::function<void(HubAnswer const&)> const& on_begin,
             std::function<void(std::string_view)> const& on_data) const;

private:
    [[nodiscard]] std::string url_of(TokenizerId const& id, std::string_view revision,
                                     std::string_view file) const;
    [[nodiscard]] HubRequest request(std::string method, std::string const& url) const;

    std::shared_ptr<HubConnection> connection_;
    std::string endpoint_;
    std::string origin_;
    std::string token_;
};

}  // namespace tinkxx::text::files
