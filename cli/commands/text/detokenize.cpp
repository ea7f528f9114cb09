#include "commands/text/detokenize.hpp"

#include "commands/text/json_lines.hpp"
#include "commands/text/text_command.hpp"
#include "frame/values.hpp"

#include <tinkxx/error.hpp>
#include <tinkxx/log.hpp>
#include <tinkxx/text/tokenizer.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

namespace tinkxx::cli {

namespace {

constexpr char const* about_detokenize =
    "Turns tokens into text: ids on the command line, or on stdin with blanks or commas in\n"
    "between. The text goes to stdout as it is, without a newline behind it.";

constexpr char const* detokenize_examples =
    "Examples:\n"
    "  tinkxx detokenize --tokenizer models/Qwen3-8B 9707 11 1879\n"
    "  tinkxx detokenize --tokenizer tokenizer.json --jsonl <ids.jsonl >texts.jsonl\n\n"
    "With --jsonl each line of stdin is a JSON list of ids, and each line of stdout their text, "
    "a\n"
    "JSON string. Bytes that form no character become U+FFFD.\n\n"
    "Exit codes: as of tinkxx tokenize.";

void add_detokenize_options(CLI::App& app, DetokenizeArguments& to) {
    app.add_option("ids", to.ids, "The ids; by default stdin")
        ->type_name("ID")
        ->check(CLI::NonNegativeNumber);
    add_tokenizer(app, to.tokenizer);
    app.add_flag("--jsonl", to.jsonl, "A JSON list of ids in each line, a JSON string out")
        ->excludes("ids");
    app.add_flag("--skip-special", to.skip_special, "Leave special tokens out");
    add_threads(app, to.threads);
}

/// Ids with anything but digits in between, read as they come.
class IdReader {
public:
    /// Calls `use` with the ids of the next part of stdin.
    template <class Use>
    void read_all_of(int file, Use const& use) {
        std::vector<Token> ids;
        char buffer[1U << 16U];
        while (true) {
            auto const got = ::read(file, buffer, sizeof buffer);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) throw std::system_error{errno, std::generic_category(), "stdin"};
            if (got == 0) break;
            for (auto const c : std::span{buffer, static_cast<std::size_t>(got)}) take(c, ids);
            use(ids);
            ids.clear();
        }
        take(' ', ids);
        use(ids);
    }

private:
    void take(char c, std::vector<Token>& ids) {
        if (c >= '0' && c <= '9') {
            value_ = value_.value_or(0) * 10 + (c - '0');
            if (*value_ > std::numeric_limits<Token>::max()) refuse("is larger than any id");
            return;
        }
        constexpr std::string_view between = " \t\r\n,[]";
        if (between.find(c) == std::string_view::npos) {
            refuse("is followed by '" + one_line({&c, 1}) + "'");
        }
        if (!value_) return;
        ids.push_back(static_cast<Token>(*value_));
        value_.reset();
        ++count_;
    }

    [[noreturn]] void refuse(std::string const& why) const {
        Error{{.kind = ErrorKind::validation,
               .message = "detokenize: id " + std::to_string(count_ + 1) + " " + why +
                          "; give ids with blanks or commas in between"}}
            .raise();
    }

    std::optional<std::int64_t> value_{};
    std::size_t count_{0};
};

void print_text(DetokenizeArguments const& arguments, text::TextTokenizer const& tokenizer,
                Context& context) {
    auto& terminal = context.terminal;
    auto decoder =
        tokenizer.stream_decoder(text::DecodeOptions{.skip_special = arguments.skip_special});
    auto const write = [&](std::vector<Token> const& ids) {
        terminal.out() << printable(decoder.push(ids), terminal) << std::flush;
    };
    if (arguments.ids.empty()) {
        IdReader{}.read_all_of(context.in, write);
    } else {
        write(arguments.ids);
    }
    terminal.out() << printable(decoder.finish(), terminal);
    if (terminal.screen().out) terminal.out() << '\n';
}

}  // namespace

Exit detokenize(DetokenizeArguments const& arguments, Context& context) {
    auto& terminal = context.terminal;
    return guard("detokenize", "the tokens cannot be decoded", terminal, [&] {
        auto const loaded = choose_tokenizer(arguments.tokenizer);
        if (!arguments.jsonl) {
            print_text(arguments, loaded.tokenizer, context);
            return Exit::success;
        }
        text::DecodeOptions const options{.skip_special = arguments.skip_special};
        auto const bad = answer_lines(
            context.in, terminal.out(), arguments.threads,
            [&](std::string_view line, std::string& answer) {
                append_json(answer, loaded.tokenizer.decode(json_tokens_of(line), options));
            });
        return bad ? complain_of_line(*bad, "one JSON list of ids in each line, such as [1, 2]",
                                      terminal)
                   : Exit::success;
    });
}

Command detokenize_command() {
    return {.path = "detokenize",
            .summary = "The text of tokens",
            .about = about_detokenize,
            .examples = detokenize_examples,
            .declare = declare<DetokenizeArguments>(&add_detokenize_options, &detokenize)};
}

}  // namespace tinkxx::cli
