#include "text/errors/refuse.hpp"
#include "text/tokenizer/load/json_reader.hpp"
#include "text/tokenizer/load/parts.hpp"
#include "text/tokenizer/models/bpe_model.hpp"
#include "text/tokenizer/models/unigram_model.hpp"
#include "text/tokenizer/models/word_models.hpp"
#include "text/unicode/aligned_text.hpp"
#include "text/unicode/utf8.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tinkxx::text {
namespace {

bool take_null(JsonReader& reader) {
    if (reader.peek() != 'n') return false;
    if (reader.skip() != "null") reader.fail("expected null");
    return true;
}

bool read_flag(JsonReader& reader) {
    auto const text = reader.skip();
    if (text != "true" && text != "false" && text != "null") reader.fail("expected true or false");
    return text == "true";
}

/// A file without a type is older than types are.
std::string type_of(ModelSection const& options) {
    if (!options.type.empty()) return options.type;
    if (!options.merges.empty()) return "BPE";
    if (options.vocabulary.starts_with('[')) return "Unigram";
    return options.prefix.empty() ? "WordLevel" : "WordPiece";
}

/// The bytes that the characters of a byte-level token stand for; false if one stands for none.
bool to_bytes(std::string_view text, std::string& bytes) {
    bytes.resize(text.size());
    std::size_t count = 0;
    for (char const *p = text.data(), *end = p + text.size(); p < end;) {
        auto const lead = static_cast<unsigned char>(*p);
        if (lead > ' ' && lead < 0x7f) {
            bytes[count++] = *p++;
            continue;
        }
        if (lead >= 0x80 && (end - p < 2 || lead < 0xc2 || lead > 0xc5)) return false;
        auto const byte = byte_of_character(next_character(p));
        if (byte < 0) return false;
        bytes[count++] = static_cast<char>(byte);
    }
    bytes.resize(count);
    return true;
}

struct VocabularyRead {
    Vocabulary vocabulary;
    std::unordered_map<std::string, std::uint32_t> odd;
};

VocabularyRead read_vocabulary(std::string_view json, bool byte_level) {
    VocabularyRead read;
    // A token takes some thirty bytes of the file.
    read.vocabulary.reserve(json.size() / 24, json.size() / 3);
    JsonReader reader{json, "model.vocab"};
    std::string bytes;
    if (reader.peek() != '{') refuse_file("model.vocab", "has to be an object of tokens and ids");
    reader.object([&](std::string_view text) {
        auto const id = reader.unsigned_number();
        if (id >= token_limit) {
            refuse_file("model.vocab", "has the id " + std::to_string(id) + " for \"" +
                                           std::string{text.substr(0, 40)} +
                                           "\"; ids have to be below 16777216");
        }
        if (byte_level && !to_bytes(text, bytes)) {
            read.odd.insert_or_assign(std::string{text}, id);
            return;
        }
        auto const added = read.vocabulary.add(byte_level ? std::string_view{bytes} : text, id);
        if (added == Vocabulary::Added::yes) return;
        refuse_file("model.vocab",
                    (added == Vocabulary::Added::same_id
                         ? "has the id " + std::to_string(id) + " twice, the second time for \""
                         : std::string{"has a token twice: \""}) +
                        std::string{text.substr(0, 40)} + "\"; each token needs an id of its own");
    });
    if (!byte_level) {
        for (std::uint32_t id = 0; id < read.vocabulary.limit(); ++id) {
            if (!read.vocabulary.contains(id)) continue;
            auto const text = read.vocabulary.text(id);
            if (find_invalid_utf8(text) != text.size()) {
                refuse_file("model.vocab", "has a token that is not UTF-8, of the id " +
                                               std::to_string(id) + "; the file is damaged");
            }
        }
    }
    return read;
}

/// Reads merges, "a b" or ["a", "b"], into pairs of ids.
class MergeReader {
public:
    MergeReader(ModelSection const& options, VocabularyRead const& vocabulary, bool byte_level)
        : prefix_{options.prefix}, vocabulary_{vocabulary}, byte_level_{byte_level} {}

    PairTable read(std::string_view json) {
        pairs_.reserve(json.size() / 22);
        JsonReader reader{json, "model.merges"};
        if (reader.peek() != '[') refuse_file("model.merges", "has to be a list of pairs");
        reader.array([&] {
            if (reader.peek() == '[') {
                read_pair(reader);
            } else {
                read_line(reader.string());
            }
        });
        look_up();
        return std::move(pairs_);
    }

private:
    void read_pair(JsonReader& reader) {
        std::size_t count = 0;
        auto& one = pending_[pending_count_];
        reader.array([&] {
            if (count == 0) {
                one.left_hash = prepare(reader.string(), one.left);
            } else {
                one.right_hash = prepare(reader.string(), one.right);
            }
            ++count;
        });
        if (count != 2) {
            rank_ += static_cast<std::uint32_t>(pending_count_);
            refuse_merge("has " + std::to_string(count) + " parts instead of two");
        }
        if (++pending_count_ == pending_.size()) look_up();
    }

    void read_line(std::string_view line) {
        if (line.starts_with("#version")) return;
        auto const space = line.find(' ');
        if (space == std::string_view::npos ||
            line.find(' ', space + 1) != std::string_view::npos) {
            rank_ += static_cast<std::uint32_t>(pending_count_);
            refuse_merge("is \"" + std::string{line.substr(0, 40)} +
                         "\" instead of two tokens with a space between them");
        }
        add(line.substr(0, space), line.substr(space + 1));
    }

    /// A merge whose tokens are not looked up yet. Looking up is waiting for memory, so it is done
    /// for several at once.
    struct Pending {
        std::string left;
        std::string right;
        std::size_t left_hash{};
        std::size_t right_hash{};
        std::uint32_t left_id{};
        std::uint32_t right_id{};
        std::uint32_t merged{};
    };

    void add(std::string_view left, std::string_view right) {
        auto& one = pending_[pending_count_];
        one.left_hash = prepare(left, one.left);
        one.right_hash = prepare(right, one.right);
        if (++pending_count_ == pending_.size()) look_up();
    }

    std::size_t prepare(std::string_view text, std::string& bytes) {
        if (!byte_level_) {
            bytes = text;
        } else if (!to_bytes(text, bytes)) {
            rank_ += static_cast<std::uint32_t>(pending_count_);
            refuse_merge("has \"" + std::string{text.substr(0, 40)} +
                         "\", which is not spelled as bytes are");
        }
        return vocabulary_.vocabulary.prepare(bytes);
    }

    void look_up() {
        auto const all = std::span{pending_}.first(pending_count_);
        pending_count_ = 0;
        auto const first = rank_;
        for (auto& one : all) {
            one.left_id = id_of(one.left, one.left_hash);
            one.right_id = id_of(one.right, one.right_hash);
            pairs_.prepare(one.left_id, one.right_id);
            if (one.right.size() < prefix_.size()) {
                refuse_merge("has a second part without model.continuing_subword_prefix");
            }
            one.left.append(one.right, prefix_.size());
            one.merged = merged_id(one.left);
            if (one.merged == no_token) refuse_merge("makes a token that is not in model.vocab");
            ++rank_;
        }
        rank_ = first;
        for (auto const& one : all) pairs_.add(one.left_id, one.right_id, rank_++, one.merged);
    }

    /// Mostly the token after the last one, or the last one again: tokens are numbered as they were
    /// made. That is looked at first, since finding one by its text costs more.
    std::uint32_t merged_id(std::string_view text) {
        auto const& vocabulary = vocabulary_.vocabulary;
        for (auto const id : {last_merged_ + 1, last_merged_}) {
            if (vocabulary.contains(id) && vocabulary.text(id) == text) return last_merged_ = id;
        }
        auto const found = vocabulary.find(text);
        if (found != no_token) last_merged_ = found;
        return found;
    }

    std::uint32_t id_of(std::string const& bytes, std::size_t hash) const {
        auto const id = vocabulary_.vocabulary.find(bytes, hash);
        if (id != no_token) return id;
        refuse_merge("has \"" + bytes.substr(0, 40) + "\", which is not in model.vocab");
    }

    [[noreturn]] void refuse_merge(std::string const& what) const {
        refuse_file("model.merges[" + std::to_string(rank_) + "]", what + "; the file is damaged");
    }

    std::string const& prefix_;
    VocabularyRead const& vocabulary_;
    bool byte_level_;
    PairTable pairs_;
    std::uint32_t rank_{0};
    std::uint32_t last_merged_{0};
    std::array<Pending, 32> pending_{};
    std::size_t pending_count_{0};
};

bool has_all_bytes(Vocabulary const& vocabulary) {
    for (unsigned byte = 0; byte < 256; ++byte) {
        auto const c = static_cast<char>(byte);
        if (vocabulary.find({&c, 1}) == no_token) return false;
    }
    return true;
}

std::unique_ptr<Model const> read_bpe(ModelSection const& options, bool& byte_level) {
    if (options.dropout != 0) {
        refuse_file("model.dropout",
                    "is not 0, so that encoding would be random; set it to null to encode");
    }
    if (options.merges.empty()) refuse_file("model.merges", "is missing; give a list of pairs");
    byte_level =
        byte_level && options.prefix.empty() && options.suffix.empty() && !options.byte_fallback;
    auto read = read_vocabulary(options.vocabulary, byte_level);
    if (byte_level && !options.unknown.empty() && !has_all_bytes(read.vocabulary)) {
        byte_level = false;  // some bytes become the unknown token
        read = read_vocabulary(options.vocabulary, byte_level);
    }
    auto pairs = MergeReader{options, read, byte_level}.read(options.merges);
    BpeOptions bpe{.byte_level = byte_level,
                   .fuse_unknown = options.fuse_unknown,
                   .byte_fallback = options.byte_fallback,
                   .ignore_merges = options.ignore_merges,
                   .prefix = options.prefix,
                   .suffix = options.suffix};
    if (!byte_level && !options.unknown.empty()) {
        bpe.unknown = read.vocabulary.find(options.unknown);
        if (bpe.unknown == no_token) {
            refuse_file("model.unk_token",
                        "is \"" + options.unknown + "\", which is not in model.vocab; add it",
                        options.unknown);
        }
    }
    return std::make_unique<BpeModel>(std::move(bpe), std::move(read.vocabulary),
                                      std::move(read.odd), std::move(pairs));
}

std::unique_ptr<Model const> read_unigram(ModelSection const& options) {
    std::vector<UnigramModel::Piece> pieces;
    JsonReader reader{options.vocabulary, "model.vocab"};
    if (reader.peek() != '[') refuse_file("model.vocab", "has to be a list of tokens and scores");
    reader.array([&] {
        UnigramModel::Piece piece;
        std::size_t count = 0;
        reader.array([&] {
            if (count++ == 0) {
                piece.text = reader.string();
            } else {
                piece.score = reader.number();
            }
        });
        if (count != 2 || find_invalid_utf8(piece.text) != piece.text.size() ||
            pieces.size() >= token_limit) {
            refuse_file("model.vocab[" + std::to_string(pieces.size()) + "]",
                        "has to be a token and its score");
        }
        pieces.push_back(std::move(piece));
    });
    if (options.unknown_id != no_token && options.unknown_id >= pieces.size()) {
        refuse_file("model.unk_id", "is " + std::to_string(options.unknown_id) +
                                        ", but there are " + std::to_string(pieces.size()) +
                                        " tokens");
    }
    return std::make_unique<UnigramModel>(std::move(pieces), options.unknown_id,
                                          options.byte_fallback);
}

}  // namespace

ModelSection read_model_section(JsonReader& reader) {
    ModelSection options;
    if (reader.peek() != '{') refuse_file("model", "has to be an object");
    reader.object([&](std::string_view key) {
        auto const text = [&](std::string& target) {
            if (!take_null(reader)) target = reader.string();
        };
        if (key == "type") return text(options.type);
        if (key == "unk_token") return text(options.unknown);
        if (key == "continuing_subword_prefix") return text(options.prefix);
        if (key == "end_of_word_suffix") return text(options.suffix);
        if (key == "fuse_unk") {
            options.fuse_unknown = read_flag(reader);
        } else if (key == "byte_fallback") {
            options.byte_fallback = read_flag(reader);
        } else if (key == "ignore_merges") {
            options.ignore_merges = read_flag(reader);
        } else if (key == "dropout") {
            if (!take_null(reader)) options.dropout = reader.number();
        } else if (key == "unk_id") {
            if (!take_null(reader)) options.unknown_id = reader.unsigned_number();
        } else if (key == "max_input_chars_per_word") {
            options.longest_word = reader.unsigned_number();
        } else if (key == "vocab") {
            options.vocabulary = reader.skip();
        } else if (key == "merges") {
            options.merges = reader.skip();
        } else {
            (void)reader.skip();
        }
    });
    return options;
}

std::unique_ptr<Model const> make_model(ModelSection const& options, bool& byte_level) {
    auto const type = type_of(options);
    if (options.vocabulary.empty()) refuse_file("model.vocab", "is missing; give all tokens");
    if (type == "BPE") return read_bpe(options, byte_level);
    byte_level = false;
    if (type == "Unigram") return read_unigram(options);
    if (type != "WordPiece" && type != "WordLevel") {
        refuse_file("model.type", "is \"" + type + "\"; use BPE, Unigram, WordPiece or WordLevel",
                    type);
    }
    auto read = read_vocabulary(options.vocabulary, false);
    if (type == "WordLevel") {
        return std::make_unique<WordLevelModel>(std::move(read.vocabulary), options.unknown);
    }
    return std::make_unique<WordPieceModel>(std::move(read.vocabulary), options.unknown,
                                            options.prefix, options.longest_word);
}

}  // namespace tinkxx::text
