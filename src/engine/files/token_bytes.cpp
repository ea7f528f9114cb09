#include "engine/files/token_bytes.hpp"

#include "engine/common/failure.hpp"
#include "engine/files/mapped_file.hpp"

#include <boost/json.hpp>

#include <array>

namespace tinkxx::engine {

std::string_view bytes_of_byte_token(std::int32_t token) {
    static constexpr auto bytes = [] {
        std::array<char, 256> all{};
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i);
        return all;
    }();
    if (token < 0 || token >= 256) return {};
    return {bytes.data() + token, 1};
}

Result<TokenBytes> read_token_bytes(std::filesystem::path const& folder) {
    auto const path = folder / "tinkxx.json";
    if (!is_named(path)) return TokenBytes{};
    auto const text = read_text(path, 1U << 20U);
    if (!text) return text.error();
    boost::json::error_code wrong;
    auto const root = boost::json::parse(*text, wrong);
    if (wrong || !root.is_object()) {
        return invalid(path.string() + " is not a JSON object", "tinkxx.json");
    }
    auto const* const tokens = root.get_object().if_contains("tokens");
    if (tokens == nullptr || !tokens->is_string() || tokens->get_string() != "bytes") {
        return invalid(path.string() + R"(: tokens must be "bytes", where each token is a byte; )"
                                       "leave the file out for a model with other tokens",
                       "tokens");
    }
    return TokenBytes{&bytes_of_byte_token};
}

}  // namespace tinkxx::engine
