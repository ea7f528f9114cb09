#include "commands/account/account.hpp"
#include "commands/account/key_info.hpp"
#include "dialog/question.hpp"
#include "frame/troubles.hpp"
#include "output/interrupt.hpp"
#include "output/json_writer.hpp"
#include "output/table.hpp"

#include <tinkxx/console.hpp>
#include <tinkxx/credentials.hpp>
#include <tinkxx/rest_client.hpp>

#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tinkxx::cli {
namespace {

CredentialStore store_of(Context const& context) {
    return CredentialStore{context.client.credentials_file};
}

template <class T>
T checked(Result<T> result) {
    if (!result) result.error().raise();
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Where keys are made and deleted.
std::string console_page() { return "the console, " + std::string{console::default_host}; }

std::string host_name() {
    char name[256]{};
    return ::gethostname(name, sizeof name - 1) == 0 ? std::string{name} : std::string{"host"};
}

std::string trimmed(std::string const& text) {
    constexpr std::string_view blanks = " \t\r\n";
    auto const first = text.find_first_not_of(blanks);
    if (first == std::string::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// From a terminal without showing it, else a line of stdin.
std::string read_key(Context& context) {
    bool const typed = context.terminal.screen().in;
    std::optional<std::string> line;
    {
        std::optional<HiddenInput> hidden;
        if (typed) {
            context.err() << "Key: " << std::flush;
            hidden.emplace(context.in);
        }
        line = read_line(context.in);
    }
    if (typed) context.err() << '\n';
    auto key = trimmed(line.value_or(std::string{}));
    if (key.empty())
        throw BadUsage{"no key was given", "paste the key, or pipe it into the command"};
    if (!key.starts_with("tml-") && !key.starts_with("eyJ")) {
        throw BadUsage{"this is not a key: keys begin with tml-", "make one in " + console_page()};
    }
    return key;
}

std::string owner_words(StoredKey const& key) {
    auto words = key.name.empty() ? std::string{"a key"} : key.name;
    if (key.email) words += ", " + *key.email;
    if (key.organization) words += ", " + *key.organization;
    return words;
}

Exit login(Context& context) {
    auto const store = store_of(context);
    if (auto const stored = checked(store.read()); stored.default_key() != nullptr) {
        context.terminal.complain(
            {.headline = "a key is stored already",
             .reason = owner_words(*stored.default_key()) + ", in " + store.path(),
             .way_out = "tinkxx auth logout, and then log in again"});
        return Exit::failure;
    }
    context.terminal.note("make a key named tinker-cli-" + host_name() + " in " + console_page());
    auto const info = key_info(read_key(context), context);
    checked(store.put(info.id, info.key));
    checked(store.set_default(info.id));
    if (context.json()) {
        JsonWriter json{context.out()};
        json.begin_object();
        json.member("key_id", info.id);
        json.member("name", info.key.name);
        json.member("organization", info.key.organization);
        json.member("email", info.key.email);
        json.member("path", store.path());
        json.end_object();
    } else {
        context.terminal.note("logged in: " + owner_words(info.key) + ", stored in " +
                              store.path());
    }
    return Exit::success;
}

Exit logout(Context& context) {
    auto const store = store_of(context);
    auto const stored = checked(store.read());
    auto const* const key = stored.default_key();
    if (key == nullptr) {
        context.terminal.note("no key is stored in " + store.path());
        return Exit::success;
    }
    std::optional<Error> failed;
    if (key->type == StoredKey::Type::generated) {
        try {
            revoke(key->key, context);
        } catch (Error const& error) {
            failed = error;
        }
    }
    checked(store.remove(*stored.default_id));
    context.terminal.note("the key is removed from " + store.path());
    if (key->type == StoredKey::Type::manual) {
        context.terminal.note("it still works elsewhere; delete it in " + console_page());
    }
    if (!failed) return Exit::success;
    auto trouble = trouble_of(*failed);
    trouble.headline = "the service still takes the key";
    trouble.way_out = "delete it in " + console_page();
    context.terminal.complain(trouble);
    return Exit::failure;
}

/// Where the credential comes from; empty if there is none.
std::string source_of(ClientOptions const& options, Context const& context) {
    if (!context.globals.api_key.empty()) return "--api-key";
    if (!options.api_key.empty()) return "options";
    if (context.environment("TINKER_API_KEY")) return "TINKER_API_KEY";
    if (context.environment("TINKER_CREDENTIAL_CMD")) return "TINKER_CREDENTIAL_CMD";
    return has_credentials(options) ? store_of(context).path() : std::string{};
}

Exit status(Context& context) {
    auto const options = context.client_options();
    auto const source = source_of(options, context);
    std::optional<Error> refused;
    if (!source.empty()) {
        RestClient const rest{options};
        auto pending = rest.check_access();
        if (auto const done = pending.result(); !done) refused = done.error();
    }
    bool const accepted = !source.empty() && !refused;
    if (context.json()) {
        JsonWriter json{context.out()};
        json.begin_object();
        json.member("credentials", !source.empty());
        json.member("source", source.empty() ? std::nullopt : std::optional{source});
        json.member("accepted", accepted);
        json.member("error", refused ? std::optional<std::string>{refused->what()} : std::nullopt);
        json.end_object();
    } else {
        print_properties(context.terminal,
                         {{"Credentials", source.empty() ? "none" : "from " + source},
                          {"Accepted", accepted ? "Yes" : "No"}});
    }
    if (refused) context.terminal.complain(trouble_of(*refused));
    if (source.empty()) {
        context.terminal.complain({.headline = "there are no credentials",
                                   .way_out = "tinkxx auth login, or set TINKER_API_KEY"});
    }
    return accepted ? Exit::success : Exit::failure;
}

Exit whoami(Context& context) {
    RestClient const rest{context.client_options()};
    auto pending = rest.whoami();
    auto const who = pending.get();
    if (context.json()) {
        JsonWriter json{context.out()};
        json.begin_object();
        json.member("user_urn", who.user_urn);
        json.member("org_urn", who.organization_urn);
        json.member("email", who.email);
        json.end_object();
        return Exit::success;
    }
    std::vector<std::pair<std::string, std::string>> lines;
    if (who.email) lines.emplace_back("Email", *who.email);
    lines.emplace_back("User", who.user_urn);
    if (who.organization_urn) lines.emplace_back("Organization", *who.organization_urn);
    print_properties(context.terminal, lines);
    return Exit::success;
}

}  // namespace

Command auth_login_command() {
    return {.path = "auth login",
            .summary = "Store a key, for this program and the official tools",
            .about =
                "Asks for a key, checks it, and stores it in ~/.tinker/credentials.json, which "
                "the official\ntools read too. Without a terminal the key is a line of stdin.",
            .examples =
                "Examples:\n"
                "  tinkxx auth login\n"
                "  tinkxx auth login <key.txt\n\n"
                "With --json: {\"key_id\":\"...\",\"name\":\"...\",\"organization\":\"...\","
                "\"email\":\"...\",\n\"path\":\"...\"}.",
            .takes = Takes::client,
            .declare = declare(&login)};
}

Command auth_logout_command() {
    return {.path = "auth logout",
            .summary = "Remove the stored key",
            .about =
                "Removes the stored key. One that an official tool has made is revoked; one "
                "that was pasted\nstays valid until you delete it in the console.",
            .examples = "Example:\n  tinkxx auth logout",
            .takes = Takes::client,
            .declare = declare(&logout)};
}

Command auth_status_command() {
    return {.path = "auth status",
            .summary = "Whether there is a key, and whether the service takes it",
            .examples =
                "Example:\n  tinkxx auth status && tinkxx run list\n\n"
                "With --json: {\"credentials\":true,\"source\":\"TINKER_API_KEY\","
                "\"accepted\":true,\"error\":null}.\nExit code 1 if the service does not "
                "take it.",
            .takes = Takes::client,
            .declare = declare(&status)};
}

Command auth_whoami_command() {
    return {.path = "auth whoami",
            .summary = "Whose key it is",
            .examples =
                "Example:\n  tinkxx auth whoami --json\n\n"
                "With --json: {\"user_urn\":\"...\",\"org_urn\":\"...\",\"email\":\"...\"}. "
                "Fails if the server\nhas no tokens that say so.",
            .takes = Takes::client,
            .declare = declare(&whoami)};
}

}  // namespace tinkxx::cli
