#include <tinkxx/text/hub.hpp>

#include "text/files/disk/environment.hpp"
#include "text/files/disk/failure.hpp"
#include "text/files/disk/text_file.hpp"
#include "text/files/hub/checksum.hpp"
#include "text/files/hub/hub_address.hpp"
#include "text/files/hub/hub_cache.hpp"
#include "text/files/hub/hub_requests.hpp"
#include "text/files/hub/partial_file.hpp"

#include <algorithm>
#include <array>
#include <system_error>

namespace tinkxx::text {

namespace {

namespace fs = std::filesystem;
using files::refuse_whole;

constexpr std::string_view public_hub = "https://huggingface.co";
constexpr std::string_view fetch_operation = "TokenizerHub::fetch";

bool is_set(std::string_view word) {
    std::string lower{word};
    std::ranges::transform(lower, lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return lower == "1" || lower == "on" || lower == "yes" || lower == "true";
}

std::string stripped(std::string_view text) {
    auto const first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return {};
    return std::string{text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1)};
}

std::string token_of(HubOptions const& options, Environment const& environment) {
    if (!options.token.empty()) return stripped(options.token);
    auto token = stripped(files::variable(environment, "HF_TOKEN"));
    if (!token.empty()) return token;
    auto path = files::path_of(files::variable(environment, "HF_TOKEN_PATH"), environment);
    if (auto const home = files::hub_home(environment); path.empty() && !home.empty()) {
        path = home / "token";
    }
    return files::is_file(path) ? stripped(files::read_text(path, 4096, "TokenizerHub"))
                                : std::string{};
}

void create_folders(fs::path const& folder) {
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (!failed) return;
    refuse_whole(std::string{fetch_operation} + ": cannot create " + folder.string() + " (" +
                     failed.message() + "); make the cache writable, or set HF_HUB_CACHE",
                 "cache", folder.string());
}

}  // namespace

class TokenizerHub::Impl {
public:
    explicit Impl(HubOptions const& options) {
        auto const environment = options.environment ? options.environment : process_environment();
        if (!options.connection) {
            refuse_whole("TokenizerHub: connection is null; give one, e.g. an HttpHubConnection",
                         "connection", "");
        }
        auto endpoint = options.endpoint.empty() ? files::variable(environment, "HF_ENDPOINT")
                                                 : options.endpoint;
        if (endpoint.empty()) endpoint = public_hub;
        while (endpoint.ends_with('/')) endpoint.pop_back();
        if (files::origin_of(endpoint).empty() ||
            endpoint.find_first_of("?#") != std::string::npos) {
            refuse_whole("TokenizerHub: '" + endpoint +
                             "' is not the address of a hub; use one like " +
                             std::string{public_hub},
                         "endpoint", endpoint);
        }
        auto token = token_of(options, environment);
        auto const unsendable = [](unsigned char c) { return c <= ' ' || c >= 0x7f; };
        if (std::ranges::any_of(token, unsendable)) {
            refuse_whole(
                "TokenizerHub: the token holds a character that cannot be sent; copy it again",
                "token", "");
        }
        if (options.piece_bytes == 0 || options.max_file_bytes == 0) {
            refuse_whole("TokenizerHub: piece_bytes and max_file_bytes must be 1 or more",
                         "piece_bytes", std::to_string(options.piece_bytes));
        }
        cache_ = options.cache.empty() ? hub_cache_folder(environment) : options.cache;
        if (cache_.empty()) {
            refuse_whole("TokenizerHub: there is no folder for the cache; set HF_HOME or HOME",
                         "cache", "");
        }
        offline_ = options.offline.value_or(is_set(files::variable(environment, "HF_HUB_OFFLINE")));
        limits_ = {.most = options.max_file_bytes, .piece = options.piece_bytes};
        requests_.emplace(options.connection, std::move(endpoint), std::move(token));
    }

    [[nodiscard]] fs::path fetch_tokenizer(TokenizerId const& id) const {
        files::check_id(id, fetch_operation);
        if (offline_) {
            refuse_whole(
                std::string{fetch_operation} + ": " + id.repository +
                    " is not in the cache, and HF_HUB_OFFLINE forbids to ask for it; unset "
                    "it, or put the files there",
                "repository", id.repository);
        }
        files::CachedRepository const repository{cache_, id};
        std::string commit;
        for (auto const* name : {"tokenizer.json", "tiktoken.model"}) {
            commit = fetch_file(id, repository, repository.revision(), name);
            if (!commit.empty()) break;
        }
        if (commit.empty()) {
            refuse_whole(
                std::string{fetch_operation} + ": " + id.repository +
                    " has neither tokenizer.json nor tiktoken.model; name the repository of "
                    "its tokenizer, or make a tokenizer.json and name that",
                "repository", id.repository);
        }
        // The rest of that very commit, even if there is a newer one by now.
        for (auto const* name :
             {"tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"}) {
            (void)fetch_file(id, repository, commit, name);
        }
        if (!files::is_commit(repository.revision())) {
            create_folders(repository.reference().parent_path());
            files::write_text(repository.reference(), commit, fetch_operation);
        }
        return repository.snapshot(commit);
    }

private:
    /// The commit that the file is of; empty if there is no such file.
    [[nodiscard]] std::string fetch_file(TokenizerId const& id,
                                         files::CachedRepository const& repository,
                                         std::string_view revision, std::string_view name) const {
        if (files::is_commit(revision) && files::is_file(repository.snapshot(revision) / name)) {
            return std::string{revision};
        }
        auto const file = requests_->look(id, revision, name);
        if (!file) return {};
        auto const blob = repository.blob(file->checksum);
        create_folders(blob.parent_path());
        auto const lock = repository.lock(file->checksum);
        create_folders(lock.parent_path());
        {
            files::FileLock const only_writer{lock};
            if (!files::is_file(blob)) {
                files::download(*requests_, id, *file, blob, limits_);
            }
        }
        auto const link = repository.snapshot(file->commit) / name;
        create_folders(link.parent_path());
        files::place_link(fs::path{"../../blobs"} / file->checksum, blob, link);
        return file->commit;
    }

    fs::path cache_{};
    bool offline_{false};
    files::DownloadLimits limits_{};
    std::optional<files::HubRequests> requests_{};
};

TokenizerHub::TokenizerHub(HubOptions options) : impl_{std::make_shared<Impl const>(options)} {}

fs::path TokenizerHub::fetch(TokenizerId const& id) const { return impl_->fetch_tokenizer(id); }

}  // namespace tinkxx::text
