#include "commands/sample/prompt.hpp"
#include "commands/sample/sample.hpp"
#include "commands/text/json_lines.hpp"
#include "commands/text/text_command.hpp"
#include "frame/troubles.hpp"
#include "frame/values.hpp"
#include "output/json_writer.hpp"
#include "output/words.hpp"

#include <cstdint>
#include <fstream>
#include <ios>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::cli {
namespace {

struct SampleArguments {
    PromptArguments prompt{};
    std::int64_t num_samples{1};
    std::int64_t max_tokens{256};
    double temperature{1};
    std::int64_t top_k{-1};
    double top_p{1};
    std::optional<std::uint64_t> seed{};
    std::vector<std::string> stop{};
    std::string output{};
};

SamplingParams params_of(SampleArguments const& arguments) {
    SamplingParams params{.max_tokens = arguments.max_tokens,
                          .seed = arguments.seed,
                          .temperature = arguments.temperature,
                          .top_k = arguments.top_k,
                          .top_p = arguments.top_p};
    if (!arguments.stop.empty()) params.stop = Stop{arguments.stop};
    return params;
}

std::string_view words_of(StopReason reason) {
    return reason == StopReason::stop ? "stop" : "length";
}

std::optional<double> average_of(SampledSequence const& sequence) {
    if (!sequence.logprobs || sequence.logprobs->empty()) return std::nullopt;
    return std::accumulate(sequence.logprobs->begin(), sequence.logprobs->end(), 0.0) /
           static_cast<double>(sequence.logprobs->size());
}

std::string list_of(std::vector<Token> const& tokens) {
    std::string list;
    append_json(list, tokens);
    return list;
}

void write_json(SampleResponse const& response, PromptSession const& session, std::ostream& out) {
    JsonWriter json{out};
    json.begin_object();
    json.raw_member("prompt_tokens", list_of(session.prompt()));
    json.begin_list("sequences");
    for (auto const& sequence : response.sequences) {
        json.begin_object();
        json.member("text", session.text_of(sequence.tokens));
        json.raw_member("tokens", list_of(sequence.tokens));
        json.member("logprobs", sequence.logprobs);
        json.member("stop_reason", words_of(sequence.stop_reason));
        json.member("average_logprob", average_of(sequence));
        json.end_object();
    }
    json.end_list();
    json.member("prompt_cache_hit_tokens", response.prompt_cache_hit_tokens);
    json.end_object();
}

void print(SampleResponse const& response, PromptSession const& session, std::ostream& out,
           Terminal& terminal) {
    constexpr int decimals = 3;
    std::size_t number = 0;
    for (auto const& sequence : response.sequences) {
        auto const text = session.text_of(sequence.tokens);
        if (text) {
            out << printable(*text, terminal) << '\n' << std::flush;
        } else {
            out << list_of(sequence.tokens) << '\n' << std::flush;
        }
        auto note = "sample " + std::to_string(++number) + ": " +
                    std::string{words_of(sequence.stop_reason)} + ", " +
                    counted(static_cast<std::int64_t>(sequence.tokens.size()), "token");
        if (auto const average = average_of(sequence)) {
            note += ", average logprob " + fixed(*average, decimals);
        }
        terminal.note(note);
    }
    if (!session.no_text().empty()) {
        terminal.warn("tokens are shown since they cannot be decoded: " + session.no_text());
    }
}

Exit sample(SampleArguments const& arguments, Context& context) {
    std::ofstream file;
    if (!arguments.output.empty()) {
        file.open(arguments.output, std::ios::binary | std::ios::trunc);
        if (!file) throw BadUsage{arguments.output + " cannot be written"};
    }
    auto& out = arguments.output.empty() ? context.out() : file;
    PromptSession session{arguments.prompt, context};
    auto pending =
        session.sampler().sample(ModelInput::from_tokens(session.prompt()), params_of(arguments),
                                 SampleOptions{.num_samples = arguments.num_samples});
    auto const response = pending.get();
    if (context.json()) {
        write_json(response, session, out);
    } else {
        print(response, session, out, context.terminal);
    }
    session.close();
    if (!arguments.output.empty() && !file.flush()) {
        Error{{.kind = ErrorKind::validation,
               .message =
                   "sample: " + arguments.output + " cannot be written; see that there is room"}}
            .raise();
    }
    return Exit::success;
}

void add_sample_options(CLI::App& app, SampleArguments& arguments) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    add_prompt_options(app, arguments.prompt);
    app.add_option("-n,--num-samples", arguments.num_samples, "How many")
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{1}, most))
        ->capture_default_str();
    app.add_option("--max-tokens", arguments.max_tokens, "The longest sample")
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{1}, most))
        ->capture_default_str();
    app.add_option("--temperature", arguments.temperature, "0 takes the most likely token")
        ->type_name("T")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_option("--top-k", arguments.top_k, "From the K most likely tokens; -1: from all")
        ->type_name("K")
        ->check(CLI::Range(std::int64_t{-1}, most))
        ->capture_default_str();
    app.add_option("--top-p", arguments.top_p,
                   "From the most likely tokens that together have this probability")
        ->type_name("P")
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str();
    app.add_option("--seed", arguments.seed, "The same seed gives the same samples")
        ->type_name("N")
        ->transform(number_up_to(std::numeric_limits<std::uint64_t>::max()));
    app.add_option("--stop", arguments.stop, "End a sample at this text. May be repeated")
        ->type_name("TEXT")
        ->check(not_empty())
        ->expected(1)
        ->take_all();
    app.add_option("-o,--output", arguments.output, "Write to a file in place of stdout")
        ->type_name("FILE")
        ->check(not_empty());
}

struct LogprobsArguments {
    PromptArguments prompt{};
};

Exit logprobs(LogprobsArguments const& arguments, Context& context) {
    PromptSession session{arguments.prompt, context};
    auto pending = session.sampler().compute_logprobs(ModelInput::from_tokens(session.prompt()));
    auto const scores = pending.get();
    double sum = 0;
    std::int64_t scored = 0;
    for (auto const& score : scores) {
        if (!score) continue;
        sum += *score;
        ++scored;
    }
    if (context.json()) {
        JsonWriter json{context.out()};
        json.begin_object();
        json.raw_member("tokens", list_of(session.prompt()));
        json.member("logprobs", scores);
        json.member("sum", sum);
        json.member("scored_tokens", scored);
        json.end_object();
        session.close();
        return Exit::success;
    }
    constexpr int decimals = 4;
    for (std::size_t i = 0; i < scores.size() && i < session.prompt().size(); ++i) {
        auto const text = session.text_of(std::span{&session.prompt()[i], 1});
        context.out() << session.prompt()[i] << '\t'
                      << (scores[i] ? fixed(*scores[i], decimals) : std::string{"-"});
        if (text) context.out() << '\t' << json_text(*text);
        context.out() << '\n';
    }
    if (scored != 0) {
        context.terminal.note("sum " + fixed(sum, decimals) + ", average " +
                              fixed(sum / static_cast<double>(scored), decimals) + " of " +
                              counted(scored, "token"));
    }
    session.close();
    return Exit::success;
}

void add_logprobs_options(CLI::App& app, LogprobsArguments& arguments) {
    add_prompt_options(app, arguments.prompt);
}

}  // namespace

Command sample_command() {
    return {.path = "sample",
            .summary = "Text or tokens that a model goes on with",
            .about =
                "Samples from a model or a checkpoint. What was sampled goes to stdout, and "
                "what is said\nabout it to stderr.",
            .examples =
                "Examples:\n"
                "  tinkxx sample -m tinkxx/tiny 'Once upon a time'\n"
                "  tinkxx sample -m @latest -n 4 --json <prompt.txt\n"
                "  tinkxx sample -m Qwen/Qwen3-8B --tokens '[9707, 11, 1879]' --max-tokens 16\n\n"
                "With --json: {\"prompt_tokens\":[...],\"sequences\":[{\"text\":\"...\","
                "\"tokens\":[...],\n\"logprobs\":[...],\"stop_reason\":\"stop\","
                "\"average_logprob\":N}],\n\"prompt_cache_hit_tokens\":N}; text is null without a "
                "tokenizer.",
            .takes = Takes::client,
            .declare = declare<SampleArguments>(&add_sample_options, &sample)};
}

Command logprobs_command() {
    return {.path = "logprobs",
            .summary = "How likely a model finds each token of a text",
            .examples =
                "Examples:\n"
                "  tinkxx logprobs -m tinkxx/tiny 'Once upon a time'\n"
                "  tinkxx logprobs -m @latest --json <text.txt\n\n"
                "A line for each token: its id, its log-probability (- for the first), its text as "
                "JSON.\nWith --json: {\"tokens\":[...],\"logprobs\":[null,...],\"sum\":N,"
                "\"scored_tokens\":N}.",
            .takes = Takes::client,
            .declare = declare<LogprobsArguments>(&add_logprobs_options, &logprobs)};
}

}  // namespace tinkxx::cli
