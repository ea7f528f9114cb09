#include "commands/text/tokenize.hpp"

#include "commands/text/json_lines.hpp"
#include "commands/text/text_command.hpp"
#include "frame/values.hpp"

#include <tinkxx/log.hpp>
#include <tinkxx/text/tokenizer.hpp>

#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

namespace tinkxx::cli {

namespace {

constexpr char const* about_tokenize =
    "Turns text into the tokens of a model. Reads stdin, all of it, newline at the end included,\n"
    "unless there is a TEXT.";

constexpr char const* tokenize_examples =
    "Examples:\n"
    "  tinkxx tokenize --tokenizer models/Qwen3-8B 'Hello, world'   a line for each token\n"
    "  tinkxx tokenize --tokenizer Qwen/Qwen3-8B <prompt.txt        from the cache of Hugging "
    "Face\n"
    "  tinkxx tokenize --tokenizer tokenizer.json --count <book.txt\n"
    "  tinkxx tokenize --tokenizer tokenizer.json --jsonl <texts.jsonl >ids.jsonl\n\n"
    "With --jsonl each line of stdin is a JSON string, and each line of stdout its ids, a JSON\n"
    "list: [9707,11,1879]. Answers come in the order of the lines and as soon as they are asked\n"
    "for, so that a program can write a line and read one.\n\n"
    "Exit codes: 0 done; 1 there is no such tokenizer, or a line or text cannot be used, and "
    "stderr\n"
    "says which; 2 the command line is wrong.\n\n"
    "Environment: HF_HUB_CACHE, HF_HOME, and with --download HF_ENDPOINT, HF_TOKEN, "
    "HF_HUB_OFFLINE.";

void add_tokenize_options(CLI::App& app, TokenizeArguments& to) {
    app.add_option("text", to.text, "The text; by default stdin")->type_name("TEXT");
    add_tokenizer(app, to.tokenizer);
    auto* const jsonl =
        app.add_flag("--jsonl", to.jsonl, "A JSON string in each line, a list of ids out");
    jsonl->excludes("text");
    app.add_flag("--ids", to.ids, "The ids alone, in one line");
    app.add_flag("--count", to.count, "How many tokens there are");
    app.add_flag("--offsets", to.offsets,
                 "Also from which bytes of the text each token is; with --jsonl "
                 "{\"ids\":[...],\"offsets\":[[0,5],...]}");
    app.add_flag("--no-special", to.no_special,
                 "Without the tokens that are put around a text, such as <s>");
    app.add_option("--special-text", to.special_text,
                   "What a special token that is spelt in the text becomes: that token "
                   "(parse), text like other text (text), or an error (forbid)")
        ->type_name("POLICY")
        ->check(CLI::IsMember({"parse", "text", "forbid"}))
        ->capture_default_str();
    app.add_flag("--lossy", to.lossy,
                 "Take bytes that are not UTF-8 for U+FFFD instead of refusing them");
    add_threads(app, to.threads);
}

text::EncodeOptions encode_options(TokenizeArguments const& arguments) {
    text::EncodeOptions options;
    options.add_special = !arguments.no_special;
    if (arguments.special_text == "text") options.special_text = text::SpecialText::as_text;
    if (arguments.special_text == "forbid") options.special_text = text::SpecialText::forbid;
    if (arguments.lossy) options.invalid_utf8 = text::InvalidUtf8::replace;
    return options;
}

void append_offsets(std::string& to, text::Encoding const& encoding) {
    to += "{\"ids\":";
    append_json(to, encoding.tokens);
    to += ",\"offsets\":[";
    for (auto const& [begin, end] : encoding.ranges) {
        to += to.back() == '[' ? "[" : ",[";
        append_number(to, begin);
        to += ',';
        append_number(to, end);
        to += ']';
    }
    to += "]}";
}

/// What a line of --jsonl is answered with.
void append_answer(std::string& to, std::string const& given, text::TextTokenizer const& tokenizer,
                   TokenizeArguments const& arguments, text::EncodeOptions const& options) {
    if (arguments.count) {
        append_number(to, tokenizer.count(given, options));
    } else if (arguments.offsets) {
        append_offsets(to, tokenizer.encode_with_offsets(given, options));
    } else {
        // One for each thread, since it keeps its memory from line to line.
        thread_local std::vector<Token> tokens;
        tokens.clear();
        tokenizer.encode_to(tokens, given, options);
        append_json(to, tokens);
    }
}

/// Bytes as they can be shown: what is no character, or steers a terminal, by its number.
std::string shown(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string out;
    while (!bytes.empty()) {
        auto const first = static_cast<unsigned char>(bytes[0]);
        auto const size =
            first < 0xc0 ? std::size_t{1} : static_cast<std::size_t>(std::countl_one(first));
        auto const character = bytes.substr(0, size);
        bool const plain = first >= 0x20 && one_line(character) == character;
        if (first == '\n') {
            out += "\\n";
        } else if (first == '\t') {
            out += "\\t";
        } else if (plain) {
            out += character;
        } else {
            ((out += "<0x") += digits[first >> 4U]) += digits[first & 15U];
            out += '>';
        }
        bytes.remove_prefix(plain ? character.size() : 1);
    }
    return out;
}

/// A line for each token: id, text, and where it was in the text.
void print_tokens(std::string const& given, text::TextTokenizer const& tokenizer,
                  TokenizeArguments const& arguments, text::EncodeOptions const& options,
                  Terminal& terminal) {
    auto const [tokens, ranges] = tokenizer.encode_with_offsets(given, options);
    auto const largest = tokens.empty() ? 0 : *std::ranges::max_element(tokens);
    auto const width = std::to_string(largest).size();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        auto const id = std::to_string(tokens[i]);
        auto const bytes = tokenizer.bytes_of(tokens[i]);
        auto const text = shown(bytes.value_or(std::string{}));
        bool const special = tokenizer.is_special(tokens[i]);
        terminal.out() << std::string(width - id.size(), ' ') << terminal.data("36", id) << "  ";
        if (arguments.offsets) {
            auto const range =
                std::to_string(ranges[i].begin) + "-" + std::to_string(ranges[i].end);
            terminal.out() << terminal.data("2", range) << std::string(2, ' ');
        }
        // Where one token ends and the next one begins shows even if they are blanks.
        auto const* const style = special ? "33;1" : i % 2 == 0 ? "30;47" : "30;106";
        terminal.out() << (terminal.colours_data() ? terminal.data(style, text)
                                                   : "\"" + text + "\"")
                       << '\n';
    }
    terminal.err() << terminal.dim(std::to_string(tokens.size()) + " tokens, " +
                                   std::to_string(given.size()) + " bytes\n");
}

void print(std::string const& given, text::TextTokenizer const& tokenizer,
           TokenizeArguments const& arguments, Terminal& terminal) {
    auto const options = encode_options(arguments);
    if (arguments.count) {
        terminal.out() << tokenizer.count(given, options) << '\n';
        return;
    }
    if (!arguments.ids) {
        print_tokens(given, tokenizer, arguments, options, terminal);
        return;
    }
    std::string line;
    for (auto const token : tokenizer.encode(given, options)) {
        if (!line.empty()) line += ' ';
        append_number(line, static_cast<std::size_t>(token));
    }
    terminal.out() << line << '\n';
}

}  // namespace

Exit tokenize(TokenizeArguments const& arguments, Context& context) {
    auto& terminal = context.terminal;
    return guard("tokenize", "the text cannot be tokenized", terminal, [&] {
        auto const loaded = choose_tokenizer(arguments.tokenizer);
        if (!arguments.jsonl) {
            print(arguments.text ? *arguments.text : read_all(context.in), loaded.tokenizer,
                  arguments, terminal);
            return Exit::success;
        }
        auto const options = encode_options(arguments);
        auto const bad =
            answer_lines(context.in, terminal.out(), arguments.threads,
                         [&](std::string_view line, std::string& answer) {
                             append_answer(answer, json_string_of(line, arguments.lossy),
                                           loaded.tokenizer, arguments, options);
                         });
        return bad ? complain_of_line(*bad, "one JSON string in each line, such as \"Hello\"",
                                      terminal)
                   : Exit::success;
    });
}

Command tokenize_command() {
    return {.path = "tokenize",
            .summary = "The tokens of a text, for any model",
            .about = about_tokenize,
            .examples = tokenize_examples,
            .declare = declare<TokenizeArguments>(&add_tokenize_options, &tokenize)};
}

}  // namespace tinkxx::cli
