#include "local/base_models/token_texts.hpp"

#include <tinkxx/error.hpp>

#include <system_error>
#include <utility>

namespace tinkxx::local {

Result<std::shared_ptr<TokenTexts const>> TokenTexts::of_folder(
    std::filesystem::path const& folder) {
    auto const path = folder / "tokenizer.json";
    std::error_code unknown;
    if (!std::filesystem::is_regular_file(path, unknown)) {
        return std::shared_ptr<TokenTexts const>{};
    }
    try {
        return std::make_shared<TokenTexts const>(text::TextTokenizer::from_file(path));
    } catch (Error const& error) {
        return error;
    }
}

TokenTexts::TokenTexts(text::TextTokenizer tokenizer) : tokenizer_{std::move(tokenizer)} {
    auto const count = tokenizer_.id_limit();
    begins_.reserve(count + 1);
    for (std::size_t id = 0; id < count; ++id) {
        all_ += tokenizer_.bytes_of(static_cast<Token>(id)).value_or(std::string{});
        begins_.push_back(static_cast<std::uint32_t>(all_.size()));
    }
}

std::string_view TokenTexts::bytes(std::int32_t token) const noexcept {
    if (token < 0) return {};
    auto const id = static_cast<std::size_t>(token);
    if (id + 1 >= begins_.size()) return {};
    return std::string_view{all_}.substr(begins_[id], begins_[id + 1] - begins_[id]);
}

}  // namespace tinkxx::local
