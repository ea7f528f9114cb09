#include <tinkxx/credentials.hpp>

#include "base/common/descriptor.hpp"
#include "wire/json/json.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace tinkxx {

namespace {

namespace json = boost::json;

constexpr std::int64_t known_version = 1;
constexpr std::size_t most_bytes = std::size_t{1} << 20U;

std::string home() {
    auto const* variable = std::getenv("HOME");
    if (variable != nullptr && *variable != '\0') return variable;
    passwd entry{};
    passwd* found = nullptr;
    std::array<char, 4096> space{};
    ::getpwuid_r(::getuid(), &entry, space.data(), space.size(), &found);
    return found != nullptr ? found->pw_dir : ".";
}

ErrorDetails refused(std::string const& path, std::string what) {
    ErrorDetails details;
    details.kind = ErrorKind::validation;
    details.category = ErrorCategory::user;
    details.field = "credentials_file";
    details.value = path;
    details.message = "credentials file " + path + ": " + std::move(what);
    return details;
}

ErrorDetails refused(std::string const& path, std::string_view action, int code) {
    return refused(path, std::string{action} + ": " + std::generic_category().message(code));
}

/// The document; empty if there is no file.
Result<json::object> load(std::string const& path) {
    base::Descriptor const file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (file.get() < 0) {
        if (errno == ENOENT || errno == ENOTDIR) return json::object{};
        return refused(path, "cannot be opened", errno);
    }
    std::string text;
    std::array<char, 4096> buffer{};
    for (;;) {
        auto const got = ::read(file.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return refused(path, "cannot be read", errno);
        if (got == 0) break;
        text.append(buffer.data(), static_cast<std::size_t>(got));
        if (text.size() > most_bytes) return refused(path, "is too large to be one");
    }
    auto parsed = wire::parse_json("credentials file", text);
    // Nothing of what it says: a key may stand anywhere.
    if (!parsed || !parsed->is_object()) {
        return refused(path, "is no JSON object; mend or remove it");
    }
    auto& document = parsed->get_object();
    auto const* version = document.if_contains("version");
    if (version == nullptr || !version->is_int64() || version->get_int64() != known_version) {
        return refused(path,
                       "is not of version 1, the only one that is known; update this tool, "
                       "or remove the file");
    }
    return std::move(document);
}

std::optional<std::string> text_of(json::object const& object, char const* name) {
    auto const* value = object.if_contains(name);
    if (value == nullptr || !value->is_string()) return std::nullopt;
    return std::string{value->get_string()};
}

json::object const* object_of(json::object const& object, char const* name) {
    auto const* value = object.if_contains(name);
    return value != nullptr ? value->if_object() : nullptr;
}

std::optional<std::string> text_in(json::object const& object, char const* outer,
                                   char const* name) {
    auto const* details = object_of(object, "details");
    auto const* part = details != nullptr ? object_of(*details, outer) : nullptr;
    return part != nullptr ? text_of(*part, name) : std::nullopt;
}

/// As the official tools write it: two spaces, one member a line, no nulls.
void write(std::string& out, json::value const& value, std::string const& indent) {
    auto const deeper = indent + "  ";
    auto const* object = value.if_object();
    auto const* array = value.if_array();
    bool first = true;
    auto const begin = [&] {
        out += first ? "\n" : ",\n";
        out += deeper;
        first = false;
    };
    if (object != nullptr) {
        out += '{';
        for (auto const& member : *object) {
            if (member.value().is_null()) continue;
            begin();
            out += json::serialize(json::value(member.key())) + ": ";
            write(out, member.value(), deeper);
        }
        out += first ? "}" : '\n' + indent + '}';
    } else if (array != nullptr) {
        out += '[';
        for (auto const& item : *array) {
            begin();
            write(out, item, deeper);
        }
        out += first ? "]" : '\n' + indent + ']';
    } else {
        out += json::serialize(value);
    }
}

Result<void> write_all(int fd, std::string const& path, std::string_view text) {
    while (!text.empty()) {
        auto const done = ::write(fd, text.data(), text.size());
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return refused(path, "cannot be written", errno);
        text.remove_prefix(static_cast<std::size_t>(done));
    }
    if (::fsync(fd) != 0) return refused(path, "cannot be written", errno);
    return {};
}

Result<void> save(std::string const& path, json::object document) {
    json::object ordered;
    ordered["version"] = known_version;
    for (auto const* name : {"default", "keys"}) {
        if (auto* value = document.if_contains(name)) ordered[name] = std::move(*value);
        document.erase(name);
    }
    if (!ordered.contains("keys")) ordered["keys"].emplace_object();
    document.erase("version");
    for (auto& rest : document) ordered[rest.key()] = std::move(rest.value());
    std::string text;
    write(text, std::move(ordered), "");
    text += '\n';

    auto const folder = std::filesystem::path{path}.parent_path();
    if (!folder.empty()) {
        std::error_code failed;
        std::filesystem::create_directories(folder.parent_path(), failed);
        if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
            return refused(path, "its folder cannot be made", errno);
        }
    }
    auto temporary = path + ".XXXXXX";
    base::Descriptor const file{::mkostemp(temporary.data(), O_CLOEXEC)};  // mode 0600
    if (file.get() < 0) return refused(path, "cannot be written", errno);
    auto written = write_all(file.get(), path, text);
    if (written && ::rename(temporary.c_str(), path.c_str()) != 0) {
        written = refused(path, "cannot be replaced", errno);
    }
    if (!written) ::unlink(temporary.c_str());
    return written;
}

json::object& keys_of(json::object& document) {
    auto& keys = document["keys"];
    if (!keys.is_object()) keys.emplace_object();
    return keys.get_object();
}

void set(json::object& object, char const* name, std::optional<std::string> const& text) {
    if (text) {
        object[name] = *text;
    } else {
        object.erase(name);
    }
}

}  // namespace

StoredKey const* StoredCredentials::default_key() const noexcept {
    auto const found = default_id ? keys.find(*default_id) : keys.end();
    return found != keys.end() ? &found->second : nullptr;
}

CredentialStore::CredentialStore(std::string path)
    : path_{path.empty() ? home() + "/.tinker/credentials.json" : std::move(path)} {}

Result<StoredCredentials> CredentialStore::read() const {
    auto const document = load(path_);
    if (!document) return document.error();
    StoredCredentials all;
    if (document->empty()) return all;
    all.default_id = text_of(*document, "default");
    auto const* keys = object_of(*document, "keys");
    if (keys == nullptr) return all;
    for (auto const& entry : *keys) {
        std::string const id{entry.key()};
        auto const* record = entry.value().if_object();
        auto key = record != nullptr ? text_of(*record, "key") : std::nullopt;
        if (!key || key->empty()) return refused(path_, "entry \"" + id + "\" has no key");
        auto& stored = all.keys[id];
        stored.key = std::move(*key);
        stored.type = text_of(*record, "type") == "generated" ? StoredKey::Type::generated
                                                              : StoredKey::Type::manual;
        stored.name = text_of(*record, "name").value_or("");
        stored.note = text_of(*record, "note");
        stored.organization = text_in(*record, "org_details", "name");
        stored.email = text_in(*record, "user_details", "email");
    }
    return all;
}

Result<void> CredentialStore::put(std::string_view id, StoredKey const& key) const {
    if (id.empty()) return refused(path_, "a key needs an id");
    if (key.key.empty()) return refused(path_, "entry \"" + std::string{id} + "\" has no key");
    auto document = load(path_);
    if (!document) return document.error();
    auto& record = keys_of(*document)[{id.data(), id.size()}];
    if (!record.is_object()) record.emplace_object();
    auto& members = record.get_object();
    members["type"] = key.type == StoredKey::Type::generated ? "generated" : "manual";
    members["key"] = key.key;
    members["name"] = key.name;
    set(members, "note", key.note);
    if (key.organization || key.email) {
        auto& details = members["details"];
        if (!details.is_object()) details.emplace_object();
        auto const part = [&details](char const* outer, char const* name, auto const& text) {
            auto& object = details.get_object()[outer];
            if (!object.is_object()) object.emplace_object();
            set(object.get_object(), name, text);
        };
        part("org_details", "name", key.organization);
        part("user_details", "email", key.email);
    } else {
        members.erase("details");
    }
    return save(path_, std::move(*document));
}

Result<void> CredentialStore::remove(std::string_view id) const {
    auto document = load(path_);
    if (!document) return document.error();
    if (document->empty()) return {};
    keys_of(*document).erase({id.data(), id.size()});
    if (text_of(*document, "default") == id) document->erase("default");
    return save(path_, std::move(*document));
}

Result<void> CredentialStore::set_default(std::optional<std::string> const& id) const {
    auto document = load(path_);
    if (!document) return document.error();
    if (id && !keys_of(*document).contains(*id)) {
        return refused(path_, "has no key \"" + *id + "\" to be the default");
    }
    set(*document, "default", id);
    return save(path_, std::move(*document));
}

}  // namespace tinkxx
