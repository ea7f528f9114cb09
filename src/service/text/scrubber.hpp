#pragma once

#include <tinkxx/transport.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::service {

/// Removes known secrets from text that is about to be shown: error bodies, dumps, messages
/// (R-ERR-04). A value.
class Scrubber {
public:
    /// Also in the forms it takes in JSON, in a URL and in Basic credentials. Secrets of fewer
    /// than four characters are ignored: they would tear ordinary words apart.
    void add(std::string_view secret);
    /// Adds the values of secret headers.
    void add_secrets_of(Headers const& headers);

    [[nodiscard]] std::string scrub(std::string_view text) const;
    /// Values of secret headers replaced, the others scrubbed.
    [[nodiscard]] Headers scrub(Headers const& headers) const;

private:
    void add_form(std::string form);

    std::vector<std::string> secrets_{};  // longest first
};

/// Standard base64, with padding.
[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace tinkxx::service
