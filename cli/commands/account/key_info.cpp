#include "commands/account/key_info.hpp"

#include "commands/text/json_lines.hpp"

#include <tinkxx/http_client.hpp>

#include <chrono>
#include <map>
#include <utility>

namespace tinkxx::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 30s;
constexpr char const* path = "/api/v1/auth/apikey/me";

std::string ask(std::string method, std::string const& key, Context const& context) {
    auto options = context.client_options();
    options.api_key = key;
    options.deadline = patience;
    HttpClient const http{options};
    HttpRequest request;
    request.method = std::move(method);
    request.path = path;
    auto pending = http.send(std::move(request));
    return pending.get().body;
}

using Members = std::map<std::string, std::string_view>;

Members members_of(std::string_view json) {
    Members members;
    for (auto const& [name, value] : json_members_of(json)) members[name] = value;
    return members;
}

std::string_view value_of(Members const& members, std::string const& name) {
    auto const found = members.find(name);
    return found == members.end() || found->second == "null" ? std::string_view{} : found->second;
}

std::optional<std::string> text_of(Members const& members, std::string const& name) {
    auto const value = value_of(members, name);
    if (value.empty()) return std::nullopt;
    return json_string_of(value, true);
}

/// `{"details": {"org_details": {"name": …}}}`, step by step.
std::optional<std::string> detail_of(Members const& details, std::string const& whose,
                                     std::string const& name) {
    auto const part = value_of(details, whose);
    if (part.empty()) return std::nullopt;
    return text_of(members_of(part), name);
}

}  // namespace

KeyInfo read_key_info(std::string_view json) try {
    auto const members = members_of(json);
    auto id = std::string{value_of(members, "key_id")};
    if (id.starts_with('"')) id = json_string_of(id, true);
    KeyInfo info{.id = std::move(id)};
    if (info.id.empty()) {
        Error{{.kind = ErrorKind::validation, .message = "key_id is missing"}}.raise();
    }
    info.key.name = text_of(members, "name").value_or(std::string{});
    info.key.note = text_of(members, "note");
    if (auto const details = value_of(members, "details"); !details.empty()) {
        auto const all = members_of(details);
        info.key.organization = detail_of(all, "org_details", "name");
        info.key.email = detail_of(all, "user_details", "email");
    }
    return info;
} catch (Error const& error) {
    Error{
        {.kind = ErrorKind::validation,
         .message = "auth: the answer about the key cannot be read (" + std::string{error.what()} +
                    "); see that --base-url or TINKER_BASE_URL is the address of a Tinker server"}}
        .raise();
}

KeyInfo key_info(std::string const& key, Context const& context) {
    auto info = read_key_info(ask("GET", key, context));
    info.key.key = key;
    return info;
}

void revoke(std::string const& key, Context const& context) { (void)ask("DELETE", key, context); }

}  // namespace tinkxx::cli
