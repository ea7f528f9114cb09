#include <tinkxx/text/load.hpp>

#include "text/files/disk/environment.hpp"
#include "text/files/disk/failure.hpp"
#include "text/files/disk/text_file.hpp"
#include "text/files/hub/hub_cache.hpp"

#include <algorithm>
#include <array>
#include <memory>

namespace tinkxx::text {

namespace {

namespace fs = std::filesystem;

/// Looks at one place after the other, and remembers why each was not it.
class TokenizerSearch {
public:
    TokenizerSearch(TokenizerId const& id, TokenizerPlaces const& places)
        : id_{id}, places_{places} {}

    std::optional<fs::path> on_this_machine() {
        if (auto const* place = places_.table.place_of(id_.repository)) return *place;
        files::check_id(id_, "find_tokenizer");
        if (!id_.revision) {
            for (auto const& folder : places_.folders) {
                if (found_in(folder / id_.repository)) return found_;
                auto const name = fs::path{id_.repository}.filename();
                if (name != id_.repository && found_in(folder / name)) return found_;
            }
        }
        return in_cache() ? std::optional{found_} : std::nullopt;
    }

    [[noreturn]] void fail() const {
        std::string looked;
        for (auto const& place : looked_) looked += (looked.empty() ? "" : ", ") + place;
        files::refuse_whole(
            "find_tokenizer: there is no tokenizer.json of " + id_.repository +
                (id_.revision ? " at revision " + *id_.revision : std::string{}) +
                " on this machine (looked at " + looked +
                "); put it there, name its file or folder, or run: huggingface-cli download " +
                id_.repository + (id_.revision ? " --revision " + *id_.revision : std::string{}) +
                " tokenizer.json tokenizer_config.json",
            "tokenizer", id_.repository);
    }

private:
    bool found_in(fs::path const& folder) {
        constexpr std::array wanted{"tokenizer.json", "tiktoken.model", "tokenizer.model"};
        if (std::ranges::any_of(wanted,
                                [&](auto const* name) { return files::is_file(folder / name); })) {
            found_ = folder;
            return true;
        }
        looked_.push_back((folder / wanted.front()).string());
        return false;
    }

    bool in_cache() {
        auto const environment = places_.environment ? places_.environment : process_environment();
        auto const cache = places_.cache.empty() ? hub_cache_folder(environment) : places_.cache;
        if (cache.empty()) {
            looked_.emplace_back("no cache, since neither HF_HOME nor HOME is set");
            return false;
        }
        files::CachedRepository const repository{cache, id_};
        auto const commit = repository.commit();
        if (commit) return found_in(repository.snapshot(*commit));
        looked_.push_back(repository.reference().string());
        return false;
    }

    TokenizerId const& id_;
    TokenizerPlaces const& places_;
    fs::path found_{};
    std::vector<std::string> looked_{};
};

}  // namespace

TokenizerTable& TokenizerTable::add(std::string model, TokenizerId id) {
    ids_.insert_or_assign(std::move(model), std::move(id));
    return *this;
}

TokenizerTable& TokenizerTable::add(std::string model_or_repository, fs::path file_or_folder) {
    places_.insert_or_assign(std::move(model_or_repository), std::move(file_or_folder));
    return *this;
}

TokenizerId TokenizerTable::id_of(std::string_view model) const {
    return id_of(model, std::nullopt);
}

TokenizerId TokenizerTable::id_of(std::string_view model,
                                  std::optional<std::string_view> explicit_id) const {
    if (explicit_id && !explicit_id->empty()) return tokenizer_id(model, explicit_id);
    auto const found = ids_.find(model);
    if (found != ids_.end()) return found->second;
    // Whoever has told where its tokenizer is needs no other name for it.
    if (places_.contains(model)) return {.repository = std::string{model}};
    return tokenizer_id(model);
}

fs::path const* TokenizerTable::place_of(std::string_view name) const {
    auto const found = places_.find(name);
    return found == places_.end() ? nullptr : &found->second;
}

fs::path find_tokenizer(TokenizerId const& id, TokenizerPlaces const& places) {
    TokenizerSearch search{id, places};
    if (auto found = search.on_this_machine()) return *std::move(found);
    if (places.download) return places.download(id);
    search.fail();
}

fs::path find_tokenizer(std::string_view model, TokenizerPlaces const& places) {
    return find_tokenizer(places.table.id_of(model), places);
}

TokenizerLoader tokenizer_loader(TokenizerPlaces places) {
    if (!places.environment) places.environment = process_environment();
    return [places = std::move(places)](TokenizerId const& id) -> std::shared_ptr<Tokenizer const> {
        return std::make_shared<TextTokenizer>(
            load_tokenizer(find_tokenizer(id, places)).tokenizer);
    };
}

}  // namespace tinkxx::text
