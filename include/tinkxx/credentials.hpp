#pragma once

#include <tinkxx/result.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tinkxx {

struct ClientOptions;

/// Whether a client would find a credential: a key that is given or in the environment, a command
/// (which is not run), or a stored key. Makes no request. Throws `ValidationError` for options that
/// cannot work, and for a credentials file that is needed and cannot be read. Any thread.
[[nodiscard]] bool has_credentials();
[[nodiscard]] bool has_credentials(ClientOptions const& options);

/// The credential that is there without running a command: given, in `$TINKER_API_KEY`, or stored.
/// Empty if there is none. A secret. Makes no request. Throws as above. Any thread.
[[nodiscard]] std::optional<std::string> static_token();
[[nodiscard]] std::optional<std::string> static_token(ClientOptions const& options);

/// One key of the credentials file.
struct StoredKey {
    enum class Type : std::uint8_t {
        manual,     ///< pasted by the user
        generated,  ///< minted by a command line tool of the service, earlier
    };
    Type type{Type::manual};
    /// The credential itself. A secret.
    std::string key{};
    std::string name{};
    std::optional<std::string> note{};
    /// Whose it is, where the service said so.
    std::optional<std::string> organization{};
    std::optional<std::string> email{};

    bool operator==(StoredKey const&) const = default;
};

/// What a credentials file says.
struct StoredCredentials {
    /// The id of the key that clients use; empty if none is chosen.
    std::optional<std::string> default_id{};
    std::map<std::string, StoredKey> keys{};

    /// The key that clients use, or null.
    [[nodiscard]] StoredKey const* default_key() const noexcept;

    bool operator==(StoredCredentials const&) const = default;
};

/// The file of stored credentials, which the service's own tools share.
///
/// Every call reads or replaces the file as a whole, so that nobody ever sees half of it; members
/// that this library does not know survive. Errors are of kind `validation` and hold no key. Any
/// thread.
class CredentialStore {
public:
    /// Empty: `~/.tinker/credentials.json`.
    explicit CredentialStore(std::string path = {});

    [[nodiscard]] std::string const& path() const noexcept { return path_; }
    /// A file that is not there is an empty store; one that cannot be read, or is of a version
    /// other than 1, is an error.
    [[nodiscard]] Result<StoredCredentials> read() const;
    /// Adds a key, or replaces the one of that id.
    [[nodiscard]] Result<void> put(std::string_view id, StoredKey const& key) const;
    /// Harmless if there is no such key. Chooses no other default in place of a removed one.
    [[nodiscard]] Result<void> remove(std::string_view id) const;
    /// Empty: none. Fails if there is no such key.
    [[nodiscard]] Result<void> set_default(std::optional<std::string> const& id) const;

private:
    std::string path_;
};

}  // namespace tinkxx
