#include <tinkxx/text/load.hpp>

#include "text/files/disk/failure.hpp"
#include "text/files/disk/text_file.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace tinkxx::text {

namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::string_view reading = "read_tokenizer_config";

[[noreturn]] void wrong(fs::path const& file, std::string const& member, std::string const& what) {
    files::refuse_whole(std::string{reading} + ": " + file.string() + ": " + what +
                            "; save the tokenizer again, or take its files from where it came from",
                        member, file.string());
}

json::object object_in(fs::path const& file) {
    auto const text = files::read_text(file, files::largest_config, reading);
    json::error_code failed;
    auto value = json::parse(text, failed);
    if (failed) wrong(file, "", "it is not JSON (" + failed.message() + ")");
    if (!value.is_object()) wrong(file, "", "it is not a JSON object");
    return std::move(value.get_object());
}

/// Strings, and objects that say how a token is found. Null and absence are nothing.
std::string token_text(json::object const& object, std::string_view member, fs::path const& file) {
    auto const* value = object.if_contains(member);
    if (value == nullptr || value->is_null()) return {};
    if (auto const* token = value->if_object()) value = token->if_contains("content");
    if (value == nullptr || !value->is_string()) {
        wrong(file, std::string{member},
              std::string{member} + " is neither a string nor a token with its content");
    }
    return std::string{value->get_string()};
}

bool flag(json::object const& object, std::string_view member) {
    auto const* const value = object.if_contains(member);
    return value != nullptr && value->is_bool() && value->get_bool();
}

std::vector<AddedToken> added_tokens_of(json::object const& config, fs::path const& file) {
    std::vector<AddedToken> tokens;
    auto const* const value = config.if_contains("added_tokens_decoder");
    if (value == nullptr || !value->is_object()) return tokens;
    for (auto const& [key, entry] : value->get_object()) {
        Token id = 0;
        auto const* const end = key.data() + key.size();
        auto const [rest, failed] = std::from_chars(key.data(), end, id);
        auto const* const object = entry.if_object();
        if (failed != std::errc{} || rest != end || id < 0 || object == nullptr) {
            wrong(file, "added_tokens_decoder",
                  "added_tokens_decoder has an entry '" + std::string{key} +
                      "', which is not the id of a token");
        }
        tokens.push_back({.id = id,
                          .text = token_text(*object, "content", file),
                          .special = flag(*object, "special"),
                          .lstrip = flag(*object, "lstrip"),
                          .rstrip = flag(*object, "rstrip"),
                          .single_word = flag(*object, "single_word"),
                          .normalized = flag(*object, "normalized")});
    }
    std::ranges::sort(tokens, {}, &AddedToken::id);
    return tokens;
}

/// One template, or several with names.
void add_templates(TokenizerConfig& to, json::object const& object, fs::path const& file) {
    auto const* const value = object.if_contains("chat_template");
    if (value == nullptr || value->is_null()) return;
    if (value->is_string()) {
        to.chat_template = std::string{value->get_string()};
        return;
    }
    auto const* const list = value->if_array();
    if (list == nullptr) wrong(file, "chat_template", "chat_template is neither text nor a list");
    for (auto const& entry : *list) {
        auto const* const named = entry.if_object();
        auto const* const name = named == nullptr ? nullptr : named->if_contains("name");
        auto const* const text = named == nullptr ? nullptr : named->if_contains("template");
        if (name == nullptr || !name->is_string() || text == nullptr || !text->is_string()) {
            wrong(file, "chat_template", "an entry of chat_template has no name and template");
        }
        to.chat_templates[std::string{name->get_string()}] = std::string{text->get_string()};
    }
    auto const found = to.chat_templates.find("default");
    if (found != to.chat_templates.end()) to.chat_template = found->second;
}

void add_tokens(TokenizerConfig& to, json::object const& object, fs::path const& file) {
    auto const add = [&](std::string& token, std::string_view member) {
        if (token.empty()) token = token_text(object, member, file);
    };
    add(to.named.bos, "bos_token");
    add(to.named.eos, "eos_token");
    add(to.named.pad, "pad_token");
    add(to.unk, "unk_token");
}

/// Those that newer versions of transformers keep in files of their own.
void add_template_files(TokenizerConfig& to, TokenizerFiles const& from) {
    if (from.chat_template.empty()) return;
    if (from.chat_template.extension() == ".json") {
        if (!to.chat_template) add_templates(to, object_in(from.chat_template), from.chat_template);
        return;
    }
    to.chat_template = files::read_text(from.chat_template, files::largest_config, reading);
    std::error_code failed;
    auto const folder = from.chat_template.parent_path() / "additional_chat_templates";
    for (fs::directory_iterator entry{folder, failed}, end; !failed && entry != end;
         entry.increment(failed)) {
        if (entry->path().extension() != ".jinja") continue;
        to.chat_templates[entry->path().stem().string()] =
            files::read_text(entry->path(), files::largest_config, reading);
    }
}

}  // namespace

TokenizerConfig read_tokenizer_config(TokenizerFiles const& from) {
    TokenizerConfig config;
    if (!from.config.empty()) {
        auto const object = object_in(from.config);
        add_tokens(config, object, from.config);
        add_templates(config, object, from.config);
        config.tokenizer_class = token_text(object, "tokenizer_class", from.config);
        config.added_tokens = added_tokens_of(object, from.config);
    }
    if (!from.special_tokens_map.empty()) {
        add_tokens(config, object_in(from.special_tokens_map), from.special_tokens_map);
    }
    add_template_files(config, from);
    return config;
}

}  // namespace tinkxx::text
