#include "text/tokenizer/load/parts.hpp"
#include "text/tokenizer/load/section.hpp"
#include "text/unicode/properties.hpp"
#include "text/unicode/utf8.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::text {
namespace {

[[noreturn]] void refuse_type(Section const& section) {
    refuse_file(section.path_of("type"),
                "is \"" + section.type() + "\", which is not known; use a newer version of tinkxx",
                section.type());
}

/// A member "pattern": {"String": …} or {"Regex": …}.
struct PatternText {
    std::string text;
    bool regex{};
    std::string path;
};

PatternText pattern_text(Section const& section) {
    auto const pattern = section.section("pattern");
    auto const regex = pattern.find("Regex") != nullptr;
    auto const* const key = regex ? "Regex" : "String";
    return {.text = pattern.text(key), .regex = regex, .path = pattern.path_of(key)};
}

Pattern compiled(PatternText const& pattern) {
    if (!pattern.regex && !pattern.text.empty()) return Pattern::literal(pattern.text);
    return Pattern{pattern.text, Dialect::ruby, pattern.path};
}

/// A member that is one character.
char32_t character(Section const& section, std::string_view key) {
    auto const text = section.text(key);
    if (text.empty() || utf8_length(static_cast<unsigned char>(text[0])) != text.size()) {
        refuse_file(section.path_of(key), "has to be one character", text);
    }
    auto const* p = text.data();
    return next_character(p);
}

std::string decoded_base64(std::string_view text, std::string const& field) {
    std::string out;
    unsigned bits = 0;
    int count = 0;
    while (!text.empty() && text.back() == '=') text.remove_suffix(1);
    for (auto const c : text) {
        constexpr std::string_view alphabet =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        auto const digit = alphabet.find(c);
        if (digit == std::string_view::npos) refuse_file(field, "is not base64");
        bits = (bits << 6U | static_cast<unsigned>(digit)) & 0xffffffU;
        count += 6;
        if (count < 8) continue;
        count -= 8;
        out += static_cast<char>(bits >> static_cast<unsigned>(count) & 0xffU);
    }
    return out;
}

std::unique_ptr<Normalizer const> make_bert_normalizer(Section const& section) {
    BertNormalizerOptions options;
    options.clean_text = section.flag("clean_text", true);
    options.space_ideographs = section.flag("handle_chinese_chars", true);
    options.lowercase = section.flag("lowercase", true);
    options.strip_accents = section.flag("strip_accents", options.lowercase);
    return std::make_unique<BertNormalizer>(options);
}

std::unique_ptr<Normalizer const> make_normalizer(Section const& section) {
    auto const type = section.type();
    if (type == "NFC") return std::make_unique<NormalFormNormalizer>(NormalForm::nfc);
    if (type == "NFD") return std::make_unique<NormalFormNormalizer>(NormalForm::nfd);
    if (type == "NFKC") return std::make_unique<NormalFormNormalizer>(NormalForm::nfkc);
    if (type == "NFKD") return std::make_unique<NormalFormNormalizer>(NormalForm::nfkd);
    if (type == "Lowercase") return std::make_unique<LowercaseNormalizer>();
    if (type == "StripAccents") return std::make_unique<StripAccentsNormalizer>();
    if (type == "Nmt") return std::make_unique<NmtNormalizer>();
    if (type == "ByteLevel") return std::make_unique<ByteLevelNormalizer>();
    if (type == "BertNormalizer") return make_bert_normalizer(section);
    if (type == "Prepend") return std::make_unique<PrependNormalizer>(section.text("prepend"));
    if (type == "Strip") {
        return std::make_unique<StripNormalizer>(section.flag("strip_left"),
                                                 section.flag("strip_right"));
    }
    if (type == "Replace") {
        return std::make_unique<ReplaceNormalizer>(compiled(pattern_text(section)),
                                                   section.text("content"));
    }
    if (type == "Precompiled") {
        auto const field = section.path_of("precompiled_charsmap");
        return std::make_unique<PrecompiledNormalizer>(
            decoded_base64(section.text("precompiled_charsmap"), field), field);
    }
    refuse_type(section);
}

SplitBehavior behavior_of(Section const& section, std::string_view otherwise) {
    constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> names{{
        {"Removed", SplitBehavior::removed},
        {"Isolated", SplitBehavior::isolated},
        {"MergedWithPrevious", SplitBehavior::merged_with_previous},
        {"MergedWithNext", SplitBehavior::merged_with_next},
        {"Contiguous", SplitBehavior::contiguous},
    }};
    auto const text = section.text("behavior", otherwise);
    for (auto const& [name, behavior] : names) {
        if (name == text) return behavior;
    }
    refuse_file(section.path_of("behavior"),
                "is \"" + text +
                    "\"; use Removed, Isolated, MergedWithPrevious, MergedWithNext or "
                    "Contiguous",
                text);
}

PrependScheme prepend_scheme(Section const& section) {
    auto const text = section.text("prepend_scheme", "always");
    auto const adds = section.flag("add_prefix_space", true);
    if (!adds && section.find("prepend_scheme") != nullptr && text != "never") {
        refuse_file(section.path_of("add_prefix_space"),
                    "is false, but prepend_scheme is \"" + text + "\"; make it \"never\"");
    }
    if (!adds || text == "never") return PrependScheme::never;
    if (text == "first") return PrependScheme::first;
    if (text == "always") return PrependScheme::always;
    refuse_file(section.path_of("prepend_scheme"), "has to be first, never or always", text);
}

std::unique_ptr<PreTokenizer const> of_characters(CharacterPreTokenizer::Predicate predicate,
                                                  SplitBehavior behavior, char32_t parameter = 0) {
    return std::make_unique<CharacterPreTokenizer>(predicate, parameter, behavior);
}

bool is_space_of(char32_t c, char32_t /*unused*/) { return is_space(c); }
bool is_punctuation_of(char32_t c, char32_t /*unused*/) { return is_punctuation(c); }
bool is_numeric_of(char32_t c, char32_t /*unused*/) { return is_numeric(c); }
bool is_same(char32_t c, char32_t wanted) { return c == wanted; }

/// Whether a split does no more than to cut between words and what is around them.
bool only_cuts(Section const& section) {
    auto const behavior = behavior_of(section, "Isolated");
    auto const inverted = section.flag("invert", false);
    return behavior == (inverted ? SplitBehavior::removed : SplitBehavior::isolated);
}

void add_split(Section const& section, PreTokenizersRead& read) {
    auto const pattern = pattern_text(section);
    auto const known = pattern.regex ? known_pattern(pattern.text) : std::nullopt;
    auto const inverted = section.flag("invert", false);
    // What DeepSeek's pattern leaves out is not removed by the code that knows it.
    if (known && only_cuts(section) && !(inverted && *known == KnownPattern::deepseek)) {
        read.steps.push_back(std::make_unique<KnownPreTokenizer>(*known));
        return;
    }
    read.steps.push_back(std::make_unique<SplitPreTokenizer>(
        compiled(pattern), behavior_of(section, "Isolated"), inverted));
}

void add_metaspace(Section const& section, PreTokenizersRead& read) {
    std::string replacement;
    append_utf8(replacement, character(section, "replacement"));
    auto const scheme = prepend_scheme(section);
    read.has_first_metaspace = read.has_first_metaspace || scheme == PrependScheme::first;
    read.steps.push_back(std::make_unique<MetaspacePreTokenizer>(std::move(replacement), scheme,
                                                                 section.flag("split", true)));
}

void add_byte_level(Section const& section, bool last, PreTokenizersRead& read) {
    if (section.flag("add_prefix_space", true)) {
        read.steps.push_back(std::make_unique<PrefixSpacePreTokenizer>());
    }
    if (section.flag("use_regex", true)) {
        read.steps.push_back(std::make_unique<KnownPreTokenizer>(KnownPattern::gpt2));
    }
    if (last) {
        read.ends_with_bytes = true;
    } else {
        read.steps.push_back(std::make_unique<MapBytesPreTokenizer>());
    }
}

void add_pre_tokenizer(Section const& section, bool last, PreTokenizersRead& read) {
    auto const type = section.type();
    auto& steps = read.steps;
    if (type == "Split") {
        add_split(section, read);
    } else if (type == "ByteLevel") {
        add_byte_level(section, last, read);
    } else if (type == "Metaspace") {
        add_metaspace(section, read);
    } else if (type == "Whitespace") {
        steps.push_back(std::make_unique<WhitespacePreTokenizer>());
    } else if (type == "WhitespaceSplit") {
        steps.push_back(of_characters(is_space_of, SplitBehavior::removed));
    } else if (type == "BertPreTokenizer") {
        steps.push_back(of_characters(is_space_of, SplitBehavior::removed));
        steps.push_back(of_characters(is_punctuation_of, SplitBehavior::isolated));
    } else if (type == "Punctuation") {
        steps.push_back(of_characters(is_punctuation_of, behavior_of(section, "Isolated")));
    } else if (type == "Digits") {
        steps.push_back(of_characters(is_numeric_of, section.flag("individual_digits", false)
                                                         ? SplitBehavior::isolated
                                                         : SplitBehavior::contiguous));
    } else if (type == "CharDelimiterSplit") {
        steps.push_back(
            of_characters(is_same, SplitBehavior::removed, character(section, "delimiter")));
    } else if (type == "FixedLength") {
        auto const length = section.count("length", 5);
        if (length == 0) refuse_file(section.path_of("length"), "is 0; it has to be at least 1");
        steps.push_back(std::make_unique<FixedLengthPreTokenizer>(length));
    } else if (type == "UnicodeScripts") {
        steps.push_back(std::make_unique<UnicodeScriptsPreTokenizer>());
    } else {
        refuse_type(section);
    }
}

/// The one pattern that a chain of splits is, behind which bytes may be written as characters.
std::optional<KnownPattern> sequence_pattern(std::vector<Section> const& sections) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < sections.size(); ++i) {
        auto const& section = sections[i];
        if (section.type() == "ByteLevel" && i + 1 == sections.size() && !texts.empty() &&
            !section.flag("add_prefix_space", true) && !section.flag("use_regex", true)) {
            break;
        }
        if (section.type() != "Split" || !only_cuts(section)) return std::nullopt;
        auto pattern = pattern_text(section);
        if (!pattern.regex) return std::nullopt;
        texts.push_back(std::move(pattern.text));
    }
    std::vector<std::string_view> const views{texts.begin(), texts.end()};
    if (views.size() < 2) return std::nullopt;  // single splits are known for themselves
    return known_sequence(views);
}

std::vector<Token> token_list(Section const& special) {
    std::vector<Token> tokens;
    auto const* const ids = special.find("ids");
    if (ids == nullptr || !ids->is_array()) refuse_file(special.path_of("ids"), "has to be a list");
    for (auto const& id : ids->get_array()) {
        if (!id.is_int64() || id.get_int64() < 0 || id.get_int64() >= token_limit) {
            refuse_file(special.path_of("ids"), "has to be a list of token ids");
        }
        tokens.push_back(static_cast<Token>(id.get_int64()));
    }
    return tokens;
}

PostStep template_step(Section const& section) {
    PostStep step{.around = {{}}};
    for (auto const& piece : section.sections("single")) {
        if (piece.find("Sequence") != nullptr) {
            auto const sequence = piece.section("Sequence");
            if (sequence.text("id") != "A") {
                refuse_file(sequence.path_of("id"), "is not \"A\", the only text there is",
                            sequence.text("id"));
            }
            step.around.emplace_back();
            continue;
        }
        auto const id = piece.section("SpecialToken").text("id");
        auto const tokens = token_list(section.section("special_tokens").section(id));
        step.around.back().insert(step.around.back().end(), tokens.begin(), tokens.end());
    }
    return step;
}

/// A member like ["[SEP]", 102].
Token named_token(Section const& section, std::string_view key) {
    auto const* const found = section.find(key);
    if (found != nullptr && found->is_array() && found->get_array().size() == 2) {
        auto const& id = found->get_array()[1];
        if (id.is_int64() && id.get_int64() >= 0 && id.get_int64() < token_limit) {
            return static_cast<Token>(id.get_int64());
        }
    }
    refuse_file(section.path_of(key), "has to be a token and its id");
}

void add_post_steps(Section const& section, PostSteps& steps) {
    auto const type = section.type();
    if ((type == "ByteLevel" || type == "RobertaProcessing") &&
        section.flag("trim_offsets", true)) {
        steps.push_back({.kind = PostStep::Kind::trim,
                         .add_prefix_space = section.flag("add_prefix_space", true)});
    }
    if (type == "BertProcessing" || type == "RobertaProcessing") {
        steps.push_back({.around = {{named_token(section, "cls")}, {named_token(section, "sep")}}});
    } else if (type == "TemplateProcessing") {
        steps.push_back(template_step(section));
    } else if (type != "ByteLevel") {
        refuse_type(section);
    }
}

std::unique_ptr<Decoder const> make_decoder(Section const& section, bool fused) {
    auto const type = section.type();
    if (type == "ByteLevel") return std::make_unique<ByteLevelDecoder>();
    if (type == "ByteFallback") return std::make_unique<ByteFallbackDecoder>();
    if (type == "BPEDecoder") return std::make_unique<BpeDecoder>(section.text("suffix"));
    if (type == "Strip") {
        std::string content;
        append_utf8(content, character(section, "content"));
        return std::make_unique<StripDecoder>(std::move(content), section.count("start"),
                                              section.count("stop"), fused);
    }
    if (type == "Replace") {
        return std::make_unique<ReplaceDecoder>(compiled(pattern_text(section)),
                                                section.text("content"));
    }
    if (type == "Metaspace") {
        std::string replacement;
        append_utf8(replacement, character(section, "replacement"));
        return std::make_unique<MetaspaceDecoder>(std::move(replacement),
                                                  prepend_scheme(section) != PrependScheme::never);
    }
    if (type == "WordPiece") {
        return std::make_unique<WordPieceDecoder>(section.text("prefix"),
                                                  section.flag("cleanup", true));
    }
    if (type == "CTC") {
        return std::make_unique<CtcDecoder>(section.text("pad_token"),
                                            section.text("word_delimiter_token"),
                                            section.flag("cleanup", true));
    }
    refuse_type(section);
}

}  // namespace

Normalizers read_normalizers(std::string_view json) {
    Normalizers normalizers;
    with_section(json, "normalizer", [&](Section const& section) {
        for (auto const& one : flattened(section, "normalizers")) {
            normalizers.push_back(make_normalizer(one));
        }
    });
    return normalizers;
}

PreTokenizersRead read_pre_tokenizers(std::string_view json) {
    PreTokenizersRead read;
    with_section(json, "pre_tokenizer", [&](Section const& section) {
        auto const sections = flattened(section, "pretokenizers");
        if (auto const pattern = sequence_pattern(sections)) {
            read.pattern = pattern;
            read.ends_with_bytes = sections.back().type() == "ByteLevel";
            read.steps.push_back(std::make_unique<KnownPreTokenizer>(*pattern));
            return;
        }
        for (auto const& one : sections) add_pre_tokenizer(one, &one == &sections.back(), read);
        if (read.steps.size() != 1) return;
        if (auto const* const known =
                dynamic_cast<KnownPreTokenizer const*>(read.steps.front().get())) {
            read.pattern = known->pattern();
        }
    });
    return read;
}

PostSteps read_post_steps(std::string_view json) {
    PostSteps steps;
    with_section(json, "post_processor", [&](Section const& section) {
        for (auto const& one : flattened(section, "processors")) add_post_steps(one, steps);
    });
    return steps;
}

DecodersRead read_decoders(std::string_view json) {
    DecodersRead read;
    auto found = false;
    with_section(json, "decoder", [&](Section const& section) {
        found = true;
        auto fused = false;  // what follows sees all tokens as one
        auto whole = false;  // and is given them as one
        auto const sections = flattened(section, "decoders");
        for (auto const& one : sections) {
            auto const type = one.type();
            if (type == "Fuse") {
                fused = true;
                continue;
            }
            if (fused && !whole && type != "Strip") {
                read.decoders.push_back(std::make_unique<FuseDecoder>());
                whole = true;
            }
            read.decoders.push_back(make_decoder(one, fused && !whole));
            if (type == "ByteLevel") fused = true;
        }
        read.only_bytes = sections.size() == 1 && sections[0].type() == "ByteLevel";
    });
    if (!found) read.decoders.push_back(std::make_unique<SpaceDecoder>());
    return read;
}

}  // namespace tinkxx::text
