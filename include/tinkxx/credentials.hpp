#pragma once

#include <tinkxx/result.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx {

struct ClientOptions;

/// Whether a client would find a credential: a key in the options or in the environment, a command
/// (which is not run), or a stored key. Makes no request. Throws `ValidationError` for invalid
/// options, and for a credentials file that is needed and cannot be read. Any thread.
[[nodiscard]] bool has_credentials();
[[nodiscard]] bool has_credentials(ClientOptions const& options);

/// The credential that is available without running a command: in the options, in
/// `$TINKER_API_KEY`, or stored. Empty if there is none. A secret. Makes no request. Throws as
/// above. Any thread.
[[nodiscard]] std::optional<std::string> static_token();
[[nodiscard]] std::optional<std::string> static_token(ClientOptions const& options);

/// One key of the credentials file.
struct StoredKey {
    enum class Type : std::uint8_t {
        manual,     ///< pasted by the user
        generated,  ///< created by an earlier version of the service's command line tool
    };
    Type type{Type::manual};
    /// The credential itself. A secret.
    std::string key{};
    std::string name{};
    std::optional<std::string> note{};
    /// Its owner, if the service reported one.
    std::optional<std::string> organization{};
    std::optional<std::string> email{};

    bool operator==(StoredKey const&) const = default;
};

/// The contents of a credentials file.
struct StoredCredentials {
    /// The id of the default key; empty if there is none.
    std::optional<std::string> default_id{};
    std::map<std::string, StoredKey> keys{};

    /// The default key, or null.
    [[nodiscard]] StoredKey const* default_key() const noexcept;

    bool operator==(StoredCredentials const&) const = default;
};

/// The file of stored credentials, which is shared with the official tools.
///
/// Every call reads or atomically replaces the whole file, and keeps members that this library does
/// not know. Errors are of kind `validation` and never contain a key. Any thread.
class CredentialStore {
public:
    /// Empty: `~/.tinker/credentials.json`.
    explicit CredentialStore(std::string path = {});

    [[nodiscard]] std::string const& path() const noexcept { return path_; }
    /// A missing file is an empty store. A file that cannot be read, or has a version other than 1,
    /// is an error.
    [[nodiscard]] Result<StoredCredentials> read() const;
    /// Adds a key, or replaces the key with the same id.
    [[nodiscard]] Result<void> put(std::string_view id, StoredKey const& key) const;
    /// Removes a key, if there is one with this id. If it was the default, there is no default
    /// afterwards.
    [[nodiscard]] Result<void> remove(std::string_view id) const;
    /// Sets the default key. Empty: none. Fails if there is no key with this id.
    [[nodiscard]] Result<void> set_default(std::optional<std::string> const& id) const;

private:
    std::string path_;
};

}  // namespace tinkxx
