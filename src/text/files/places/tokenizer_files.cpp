#include <tinkxx/text/load.hpp>

#include "text/files/disk/failure.hpp"
#include "text/files/disk/text_file.hpp"

#include <algorithm>
#include <fstream>
#include <system_error>
#include <vector>

namespace tinkxx::text {

namespace {

namespace fs = std::filesystem;

/// The beginning of a file; empty if it cannot be read.
std::string beginning(fs::path const& path) {
    std::string text(256, '\0');
    std::ifstream file{path, std::ios::binary};
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return text;
}

/// A token in base64, a blank and a number.
bool looks_like_ranks(std::string_view text) {
    auto const line = text.substr(0, text.find('\n'));
    auto const blank = line.find(' ');
    if (blank == std::string_view::npos || blank == 0 || blank + 1 == line.size()) return false;
    auto const base64 = [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
               c == '+' || c == '/' || c == '=';
    };
    auto const digit = [](char c) { return (c >= '0' && c <= '9') || c == '\r'; };
    return std::ranges::all_of(line.substr(0, blank), base64) &&
           std::ranges::all_of(line.substr(blank + 1), digit);
}

bool looks_like_json(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    auto const first = text.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && text[first] == '{';
}

[[noreturn]] void refuse_sentencepiece(fs::path const& file) {
    auto const folder = file.parent_path().empty() ? fs::path{"."} : file.parent_path();
    files::refuse_whole(
        "find_tokenizer_files: " + file.string() +
            " is a SentencePiece model, and only tokenizer.json is read; make one with "
            "Hugging Face's transformers: python3 -c \"from transformers import "
            "AutoTokenizer as A; A.from_pretrained('" +
            folder.string() + "').save_pretrained('" + folder.string() + "')\"",
        "tokenizer", file.string());
}

TokenizerFormat format_of(fs::path const& file) {
    auto const begin = beginning(file);
    if (looks_like_json(begin)) return TokenizerFormat::json;
    if (looks_like_ranks(begin)) return TokenizerFormat::tiktoken;
    if (file.extension() == ".model") refuse_sentencepiece(file);
    files::refuse_whole(
        "find_tokenizer_files: " + file.string() +
            " is neither a tokenizer.json nor a list of ranks as tiktoken has them; "
            "name another file, or the folder of a model",
        "tokenizer", file.string());
}

/// Null if there is none, the only one otherwise.
std::optional<fs::path> only_tiktoken_file(fs::path const& folder) {
    std::vector<fs::path> found;
    std::error_code failed;
    for (fs::directory_iterator entry{folder, failed}, end; !failed && entry != end;
         entry.increment(failed)) {
        if (entry->path().extension() == ".tiktoken" && files::is_file(entry->path())) {
            found.push_back(entry->path());
        }
    }
    if (found.empty()) return std::nullopt;
    if (found.size() > 1) {
        std::ranges::sort(found);
        files::refuse_whole("find_tokenizer_files: " + folder.string() +
                                " has several *.tiktoken files (" + found[0].filename().string() +
                                ", " + found[1].filename().string() + "); name one of them",
                            "tokenizer", folder.string());
    }
    return found.front();
}

fs::path tokenizer_in(fs::path const& folder) {
    if (auto file = folder / "tokenizer.json"; files::is_file(file)) return file;
    if (auto file = folder / "tiktoken.model"; files::is_file(file)) return file;
    if (auto file = only_tiktoken_file(folder)) return *file;
    if (auto file = folder / "tokenizer.model"; files::is_file(file)) return file;
    files::refuse_whole(
        "find_tokenizer_files: there is no tokenizer.json, tiktoken.model or *.tiktoken in " +
            folder.string() + "; name the folder or file of a tokenizer",
        "tokenizer", folder.string());
}

}  // namespace

TokenizerFiles find_tokenizer_files(fs::path const& file_or_folder) {
    bool const folder = files::is_folder(file_or_folder);
    if (!folder && !files::is_file(file_or_folder)) {
        files::refuse_whole("find_tokenizer_files: there is no file or folder " +
                                file_or_folder.string() +
                                "; name a tokenizer.json or the folder of a model",
                            "tokenizer", file_or_folder.string());
    }
    TokenizerFiles found;
    found.tokenizer = folder ? tokenizer_in(file_or_folder) : file_or_folder;
    found.format = format_of(found.tokenizer);
    // Of a file with another name nobody knows whether its neighbours belong to it.
    auto const name = found.tokenizer.filename();
    if (!folder && name != "tokenizer.json" && name != "tiktoken.model" &&
        name != "tokenizer.model") {
        return found;
    }
    auto const beside = [&](char const* file) {
        auto path = found.tokenizer.parent_path() / file;
        return files::is_file(path) ? path : fs::path{};
    };
    found.config = beside("tokenizer_config.json");
    found.special_tokens_map = beside("special_tokens_map.json");
    found.chat_template = beside("chat_template.jinja");
    if (found.chat_template.empty()) found.chat_template = beside("chat_template.json");
    return found;
}

}  // namespace tinkxx::text
