#include <tinkxx/tokenizer.hpp>

#include "base/common/invalid.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

namespace tinkxx {

std::vector<Token> ByteTokenizer::encode(std::string_view text) const {
    std::vector<Token> tokens(text.size());
    std::ranges::transform(text, tokens.begin(),
                           [](char c) { return static_cast<unsigned char>(c); });
    return tokens;
}

std::string ByteTokenizer::decode(std::span<Token const> tokens) const {
    std::string text;
    text.reserve(tokens.size());
    for (auto const token : tokens) {
        if (token >= 0 && token <= 0xff) text += static_cast<char>(token);
    }
    return text;
}

class Tokenizers::Impl {
public:
    Impl(TokenizerLoader loader, std::size_t capacity)
        : loader_{std::move(loader)}, capacity_{capacity} {
        if (loader_) return;
        base::refuse("Tokenizers", "loader", "",
                     "loader is empty; give a function that loads a tokenizer");
    }

    std::shared_ptr<Tokenizer const> get(TokenizerId const& id) {
        if (auto found = find(id)) return found;
        auto loaded = loader_(id);  // without the lock: it may take long, or come back here
        if (!loaded) {
            base::refuse("Tokenizers", "id", id.repository,
                         "the loader gave no tokenizer for " + id.repository);
        }
        if (auto other = find(id)) return other;
        std::scoped_lock const lock{mutex_};
        kept_.push_front({id, loaded});
        if (kept_.size() > capacity_) kept_.pop_back();
        return loaded;
    }

private:
    struct Kept {
        TokenizerId id{};
        std::shared_ptr<Tokenizer const> tokenizer{};
    };

    /// And is now the one that was asked for last.
    std::shared_ptr<Tokenizer const> find(TokenizerId const& id) {
        std::scoped_lock const lock{mutex_};
        auto const found = std::ranges::find(kept_, id, &Kept::id);
        if (found == kept_.end()) return nullptr;
        kept_.splice(kept_.begin(), kept_, found);
        return found->tokenizer;
    }

    TokenizerLoader const loader_;
    std::size_t const capacity_;
    std::mutex mutex_{};
    std::list<Kept> kept_{};  // guarded by mutex_; asked for last, first
};

Tokenizers::Tokenizers(TokenizerLoader loader) : Tokenizers{std::move(loader), default_capacity} {}

Tokenizers::Tokenizers(TokenizerLoader loader, std::size_t capacity)
    : impl_{std::make_shared<Impl>(std::move(loader), capacity)} {}

std::shared_ptr<Tokenizer const> Tokenizers::get(TokenizerId const& id) const {
    return impl_->get(id);
}

}  // namespace tinkxx
