#pragma once

#include <tinkxx/text/tokenizer.hpp>
#include <tinkxx/tokenizer.hpp>
#include <tinkxx/types/training.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::text {

/// Looks a variable of the environment up; none if it is not set.
using Environment = std::function<std::optional<std::string>(char const* name)>;
/// That of this process.
[[nodiscard]] Environment process_environment();

// One tokenizer on disk -------------------------------------------------------------------------

enum class TokenizerFormat : std::uint8_t {
    json,      ///< a `tokenizer.json`
    tiktoken,  ///< lines of a token in base64 and its rank
};

/// The files of one tokenizer. Empty paths: there is no such file.
struct TokenizerFiles {
    std::filesystem::path tokenizer{};
    TokenizerFormat format{TokenizerFormat::json};
    std::filesystem::path config{};              ///< tokenizer_config.json
    std::filesystem::path special_tokens_map{};  ///< special_tokens_map.json
    std::filesystem::path chat_template{};       ///< chat_template.jinja, or chat_template.json

    bool operator==(TokenizerFiles const&) const = default;
};

/// Finds the files of a tokenizer in a model's folder, or beside a file of one: `tokenizer.json`,
/// else `tiktoken.model` or the only `*.tiktoken`, else a `tokenizer.model` in the format of
/// tiktoken. Throws `ValidationError` if there is none, and for a SentencePiece `tokenizer.model`
/// alone; the message says how to make a `tokenizer.json` of it.
[[nodiscard]] TokenizerFiles find_tokenizer_files(std::filesystem::path const& file_or_folder);

/// What the files beside a tokenizer say about it. Empty: nothing.
struct TokenizerConfig {
    NamedTokens named{};
    std::string unk{};
    /// The Python class that Hugging Face's libraries would use.
    std::string tokenizer_class{};
    /// The template for conversations: `chat_template.jinja`, else that of the configuration (the
    /// one called "default" if there are several).
    std::optional<std::string> chat_template{};
    /// All templates that have names, by name.
    std::map<std::string, std::string, std::less<>> chat_templates{};
    /// Those of the configuration, in the order of their ids. A `tokenizer.json` has its own, and
    /// these say nothing then.
    std::vector<AddedToken> added_tokens{};
};

/// Throws `ValidationError` for a file that cannot be read or is not what its name says.
[[nodiscard]] TokenizerConfig read_tokenizer_config(TokenizerFiles const& files);

struct LoadOptions {
    /// For files in the format of tiktoken: the regular expression that cuts a text into words.
    /// Empty: known from the file's name (`cl100k_base.tiktoken`, `o200k_base.tiktoken`, ...) or
    /// the class in `tokenizer_config.json`.
    std::string tiktoken_pattern{};
    /// Likewise. Empty: known in the same way, else those of `tokenizer_config.json`.
    std::vector<std::pair<std::string, Token>> tiktoken_special_tokens{};
};

struct LoadedTokenizer {
    TextTokenizer tokenizer;
    TokenizerConfig config{};
    TokenizerFiles files{};
};

/// Loads the tokenizer of a file or folder, as `find_tokenizer_files` finds it.
///
///     auto loaded = load_tokenizer("models/Qwen3-8B");
///     auto tokens = loaded.tokenizer.encode("Hello");
///
/// Throws `ValidationError`, naming the file and what is wrong with it.
[[nodiscard]] LoadedTokenizer load_tokenizer(std::filesystem::path const& file_or_folder);
[[nodiscard]] LoadedTokenizer load_tokenizer(std::filesystem::path const& file_or_folder,
                                             LoadOptions const& options);

// Tokenizers by the names of models -------------------------------------------------------------

/// Which tokenizer belongs to which model, beyond what `tokenizer_id` knows.
class TokenizerTable {
public:
    /// The model of this name uses the tokenizer of a repository.
    TokenizerTable& add(std::string model, TokenizerId id);
    /// The tokenizer of this model or repository is in a file or folder of this machine.
    TokenizerTable& add(std::string model_or_repository, std::filesystem::path file_or_folder);

    /// An explicit id wins, then this table, then the rules of `tokenizer_id`, which throws
    /// `ValidationError` for models without a tokenizer.
    [[nodiscard]] TokenizerId id_of(std::string_view model) const;
    [[nodiscard]] TokenizerId id_of(std::string_view model,
                                    std::optional<std::string_view> explicit_id) const;
    /// Null if it was not told.
    [[nodiscard]] std::filesystem::path const* place_of(std::string_view name) const;

private:
    std::map<std::string, TokenizerId, std::less<>> ids_{};
    std::map<std::string, std::filesystem::path, std::less<>> places_{};
};

/// Where tokenizers are looked for, in the order of the members.
struct TokenizerPlaces {
    TokenizerTable table{};
    /// Folders that hold models: `FOLDER/org/name`, then `FOLDER/name`. For repositories without a
    /// pinned revision only.
    std::vector<std::filesystem::path> folders{};
    /// In the layout of Hugging Face: `models--org--name/snapshots/...`. Empty: as
    /// `hub_cache_folder` says.
    std::filesystem::path cache{};
    /// Called for what is nowhere, with the id: gives a file or folder, such as
    /// `TokenizerHub::fetch` does, or throws. Empty: nothing is downloaded.
    std::function<std::filesystem::path(TokenizerId const& id)> download{};
    /// Empty: that of the process.
    Environment environment{};
};

/// `$HF_HUB_CACHE`, else `$HUGGINGFACE_HUB_CACHE`, else `hub` in `$HF_HOME`, else
/// `huggingface/hub` in `$XDG_CACHE_HOME` or `~/.cache`. Empty if none of them and no `$HOME` is
/// set.
[[nodiscard]] std::filesystem::path hub_cache_folder(Environment const& environment);

/// The file or folder of a tokenizer. Throws `ValidationError`, naming the file that is missing and
/// every place that was looked at, if there is none.
[[nodiscard]] std::filesystem::path find_tokenizer(TokenizerId const& id,
                                                   TokenizerPlaces const& places);
/// By the name of a model, as `TokenizerTable::id_of` says.
[[nodiscard]] std::filesystem::path find_tokenizer(std::string_view model,
                                                   TokenizerPlaces const& places);

/// For `Tokenizers`: finds and loads. Any thread, if `download` may be called from any.
[[nodiscard]] TokenizerLoader tokenizer_loader(TokenizerPlaces places);

}  // namespace tinkxx::text
