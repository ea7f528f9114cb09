#include "commands/text_options.hpp"

#include <string>

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

constexpr char const* about_render =
    "Turns conversations into the tokens that a model was trained with, and shows what of them\n"
    "counts in the loss. Reads one conversation from stdin, or with --jsonl one in each line: a\n"
    "JSON list of messages, or an object with messages, tools and variables of the template.";

constexpr char const* render_examples =
    "Examples:\n"
    "  echo "
    "'[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"Hello!\"}]' |\n"
    "    tinkxx render --tokenizer models/Qwen3-8B --renderer qwen3\n"
    "  tinkxx render --tokenizer models/Qwen3-8B --renderer qwen3 --jsonl <chats.jsonl\n"
    "  tinkxx render --tokenizer models/Qwen3-8B --template --prompt --jsonl <chats.jsonl\n\n"
    "With --jsonl each line of stdout is {\"tokens\":[...],\"weights\":[...]}, with --prompt\n"
    "{\"tokens\":[...]}, and with --template a JSON string.\n\n"
    "Exit codes: as of tinkxx tokenize.";

/// An empty value is mostly a variable of a script that was never set.
CLI::Validator not_empty_text() {
    return {[](std::string& text) {
                return text.empty() ? std::string{"the value is empty"} : std::string{};
            },
            ""};
}

void add_tokenizer(CLI::App& command, TokenizerArguments& arguments) {
    command
        .add_option("--tokenizer", arguments.tokenizer,
                    "A tokenizer.json or *.tiktoken file, the folder of a model, or the name of "
                    "one in the cache of Hugging Face")
        ->type_name("FILE_OR_FOLDER")
        ->check(not_empty_text())
        ->required();
    command
        .add_option("--pattern", arguments.pattern,
                    "The regular expression that cuts a text into words, for *.tiktoken files "
                    "whose name does not tell it")
        ->type_name("REGEX")
        ->check(not_empty_text());
    command.add_flag("--download", arguments.download,
                     "Fetch the files of a name that is not on this machine from the hub");
}

void add_threads(CLI::App& command, unsigned& threads) {
    command.add_option("--threads", threads, "Threads for --jsonl; 0 is one for each CPU")
        ->type_name("N")
        ->check(CLI::Range(0U, 4096U))
        ->capture_default_str();
}

}  // namespace

TextCommands::TextCommands(CLI::App& app) {
    add_tokenize(app);
    add_detokenize(app);
    add_render(app);
}

void TextCommands::add_tokenize(CLI::App& app) {
    auto& to = tokenize_arguments_;
    tokenize_ = app.add_subcommand("tokenize", about_tokenize);
    tokenize_->footer(tokenize_examples);
    tokenize_->add_option("text", to.text, "The text; by default stdin")->type_name("TEXT");
    add_tokenizer(*tokenize_, to.tokenizer);
    auto* const jsonl =
        tokenize_->add_flag("--jsonl", to.jsonl, "A JSON string in each line, a list of ids out");
    jsonl->excludes("text");
    tokenize_->add_flag("--ids", to.ids, "The ids alone, in one line");
    tokenize_->add_flag("--count", to.count, "How many tokens there are");
    tokenize_->add_flag("--offsets", to.offsets,
                        "Also from which bytes of the text each token is; with --jsonl "
                        "{\"ids\":[...],\"offsets\":[[0,5],...]}");
    tokenize_->add_flag("--no-special", to.no_special,
                        "Without the tokens that are put around a text, such as <s>");
    tokenize_
        ->add_option("--special-text", to.special_text,
                     "What a special token that is spelt in the text becomes: that token "
                     "(parse), text like other text (text), or an error (forbid)")
        ->type_name("POLICY")
        ->check(CLI::IsMember({"parse", "text", "forbid"}))
        ->capture_default_str();
    tokenize_->add_flag("--lossy", to.lossy,
                        "Take bytes that are not UTF-8 for U+FFFD instead of refusing them");
    add_threads(*tokenize_, to.threads);
}

void TextCommands::add_detokenize(CLI::App& app) {
    auto& to = detokenize_arguments_;
    detokenize_ = app.add_subcommand("detokenize", about_detokenize);
    detokenize_->footer(detokenize_examples);
    detokenize_->add_option("ids", to.ids, "The ids; by default stdin")
        ->type_name("ID")
        ->check(CLI::NonNegativeNumber);
    add_tokenizer(*detokenize_, to.tokenizer);
    detokenize_->add_flag("--jsonl", to.jsonl, "A JSON list of ids in each line, a JSON string out")
        ->excludes("ids");
    detokenize_->add_flag("--skip-special", to.skip_special, "Leave special tokens out");
    add_threads(*detokenize_, to.threads);
}

void TextCommands::add_render(CLI::App& app) {
    auto& to = render_arguments_;
    render_ = app.add_subcommand("render", about_render);
    render_->footer(render_examples);
    add_tokenizer(*render_, to.tokenizer);
    auto* const renderer =
        render_->add_option("--renderer", to.renderer, "Such as qwen3, llama3 or role_colon")
            ->type_name("NAME")
            ->check(not_empty_text());
    auto* const with_template = render_->add_flag(
        "--template", to.use_template, "The chat template of the folder instead: text, no tokens");
    with_template->excludes(renderer);
    auto* const how = render_->add_option_group("how");
    how->add_options(renderer, with_template);
    how->require_option(1);
    auto* const prompt = render_->add_flag(
        "--prompt", to.prompt, "What the model is given to answer, in place of what it learns");
    render_->add_flag("--jsonl", to.jsonl, "A conversation in each line; JSON out");
    render_
        ->add_option("--train-on", to.train_on,
                     "What counts in the loss: last_assistant_message, last_assistant_turn, "
                     "all_assistant_messages, all_messages, all_tokens, "
                     "all_user_and_system_messages or customized")
        ->type_name("WHAT")
        ->check(not_empty_text())
        ->excludes(prompt)
        ->excludes(with_template)
        ->capture_default_str();
    render_
        ->add_option("--date", to.date, "For prompts that tell it, as 2025-11-30; by default today")
        ->type_name("DATE")
        ->check(not_empty_text());
    add_threads(*render_, to.threads);
}

bool TextCommands::parsed() const {
    return tokenize_->parsed() || detokenize_->parsed() || render_->parsed();
}

Exit TextCommands::run(Terminal& terminal) const {
    if (tokenize_->parsed()) return tokenize(tokenize_arguments_, terminal);
    if (detokenize_->parsed()) return detokenize(detokenize_arguments_, terminal);
    return render(render_arguments_, terminal);
}

}  // namespace tinkxx::cli
