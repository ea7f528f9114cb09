#pragma once

#include <tinkxx/query.hpp>
#include <tinkxx/result.hpp>

#include <string>
#include <string_view>

namespace tinkxx::service {

/// How the path of a checkpoint begins.
inline constexpr std::string_view path_scheme = "tinker://";

/// Where a service lives: the root that paths are appended to.
class Endpoint {
public:
    /// Needs scheme http or https and a host; refuses credentials, a query and a fragment.
    [[nodiscard]] static Result<Endpoint> parse(std::string_view base_url);

    /// As given, without trailing slashes.
    [[nodiscard]] std::string const& base_url() const noexcept { return base_url_; }
    /// Scheme, lower-case host, port if not the default, path without trailing slash: equal for
    /// clients that talk to the same service (R-CONF-11).
    [[nodiscard]] std::string const& key() const noexcept { return key_; }

    /// The URL of `path`, which is appended to the base path whether or not it begins with a
    /// slash and may carry a query. Characters that a URL cannot hold are percent-encoded; a `%`
    /// stays as it is. An absolute http or https URL is taken as it stands.
    [[nodiscard]] std::string url(std::string_view path, Query const& defaults,
                                  Query const& query) const;
    /// False for an absolute URL that leads to another scheme, host or port: what belongs to
    /// this service, above all its key, must not be sent there.
    [[nodiscard]] bool owns(std::string_view url) const;

private:
    Endpoint() = default;

    std::string base_url_{};
    std::string key_{};
    std::string origin_{};
};

[[nodiscard]] bool is_absolute_url(std::string_view path) noexcept;

}  // namespace tinkxx::service
