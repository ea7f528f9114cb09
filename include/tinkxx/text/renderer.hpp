#pragma once

#include <tinkxx/text/message.hpp>
#include <tinkxx/types/datum.hpp>
#include <tinkxx/types/model_input.hpp>
#include <tinkxx/types/sampling.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tinkxx::text {

// What a renderer stands on -----------------------------------------------------------------------

/// What a renderer needs of a tokenizer. Any thread.
class RenderTokenizer {
public:
    /// What becomes of the text of a special token, such as "<|im_end|>", within other text.
    enum class Specials : std::uint8_t {
        recognised,  ///< the special token
        as_text,     ///< the tokens of its characters; other added tokens are still recognised
    };

    virtual ~RenderTokenizer() = default;

    /// The tokens of valid UTF-8, with nothing put before or behind.
    [[nodiscard]] virtual std::vector<Token> encode(
        std::string_view text, Specials specials = Specials::recognised) const = 0;
    /// The text of tokens, that of special ones too. Always UTF-8: parts of characters become
    /// U+FFFD.
    [[nodiscard]] virtual std::string decode(std::span<Token const> tokens) const = 0;
    /// The token that a text is as a whole, if there is one.
    [[nodiscard]] virtual std::optional<Token> find(std::string_view token) const = 0;
    /// The text of the token that begins a text, and the one that ends it, if the model has them.
    [[nodiscard]] virtual std::optional<std::string> bos() const = 0;
    [[nodiscard]] virtual std::optional<Token> eos() const = 0;
};

// What comes out ----------------------------------------------------------------------------------

/// Which tokens of a conversation count in the loss.
enum class TrainOnWhat : std::uint8_t {
    last_assistant_message,
    last_assistant_turn,  ///< all of the assistant's messages after the last one of the user
    all_assistant_messages,
    all_messages,  ///< what is said, by anybody; not the headers
    all_tokens,
    all_user_and_system_messages,
    customized,  ///< the messages that say `trainable`; each message has to say it
};

/// The names of the cookbook, such as "last_assistant_message".
[[nodiscard]] std::string_view to_string(TrainOnWhat what) noexcept;
/// Throws `ValidationError` for a name that is none of them; "custom" is understood too.
[[nodiscard]] TrainOnWhat read_train_on_what(std::string_view name);

/// The tokens of a conversation, and how much each counts as a target.
struct RenderedExample {
    std::vector<Token> tokens{};
    std::vector<float> weights{};

    bool operator==(RenderedExample const&) const = default;
};

/// Where a model ends its message: token ids, or texts. One of the lists is empty.
struct StopSequences {
    std::vector<Token> tokens{};
    std::vector<std::string> texts{};

    /// For `SamplingParams::stop`.
    [[nodiscard]] Stop to_stop() const;
    bool operator==(StopSequences const&) const = default;
};

/// How a sampled response ended.
enum class ParseTermination : std::uint8_t {
    stop_sequence,  ///< with a stop sequence of the renderer
    eos,            ///< with the model's end-of-text token, which some renderers accept too
    malformed,      ///< in no proper way: cut off, or with several ends
};

[[nodiscard]] std::string_view to_string(ParseTermination termination) noexcept;
/// Ended by a stop sequence or the end-of-text token.
[[nodiscard]] inline bool is_clean(ParseTermination termination) noexcept {
    return termination != ParseTermination::malformed;
}

/// A response as a message. There is always one, the better part of a broken response too.
struct ParsedResponse {
    Message message{};
    ParseTermination termination{ParseTermination::malformed};

    bool operator==(ParsedResponse const&) const = default;
};

struct ParseFailure {
    enum class Kind : std::uint8_t {
        structural,  ///< the response did not end properly; the conversation cannot go on
        content,     ///< a tool call cannot be read; the model can be told so and asked again
    };
    Kind kind{Kind::structural};
    std::string detail{};

    bool operator==(ParseFailure const&) const = default;
};

/// What is wrong with a response, if anything is.
[[nodiscard]] std::optional<ParseFailure> classify_parse_failure(ParsedResponse const& response);

// What a streamed response is made of, in this order.

struct StreamingHeader {
    std::string role{};

    bool operator==(StreamingHeader const&) const = default;
};
/// Only what is new.
struct StreamingText {
    std::string text{};
    /// Grows by one whenever text follows thinking or the other way round.
    std::size_t content_index{0};

    bool operator==(StreamingText const&) const = default;
};
struct StreamingThinking {
    std::string thinking{};
    std::size_t content_index{0};

    bool operator==(StreamingThinking const&) const = default;
};
/// A header, then pieces, and at last the whole message.
using MessageDelta = std::variant<StreamingHeader, StreamingText, StreamingThinking, Message>;

// Renderers ---------------------------------------------------------------------------------------

/// Where a message stands in its conversation.
struct RenderContext {
    std::size_t index{0};
    bool is_last{false};
    /// Null if there is none.
    Message const* previous{nullptr};
    Message const* next{nullptr};
    /// Of the last message of the user; -1 if there is none.
    std::ptrdiff_t last_user_index{-1};
    /// Whether the message belongs to the turn that the model is asked for, which may be several
    /// messages: a call, its answer, and what follows.
    bool in_last_assistant_turn{false};
};

/// The tokens of one message, split by who writes them.
struct RenderedMessage {
    /// What introduces the message; the model reads it.
    std::vector<Token> header{};
    /// What the model writes: the text and what ends it.
    std::vector<Token> output{};
    /// The rest of a stop sequence that the header of the next message would repeat; appended to
    /// the last message of a supervised example only.
    std::vector<Token> stop_overlap{};
};

/// Turns conversations into the tokens a model was trained with, and its tokens into messages.
///
/// The renderers that `Renderers` makes write what those of the same name in tinker-cookbook 0.5.8
/// write, token by token. To make one of your own, derive from this class, implement the three
/// members without a body, and register it.
///
/// Any thread. Members throw `ValidationError` for messages that the format cannot express, such as
/// images where only text is read.
class Renderer {
public:
    using Messages = std::span<Message const>;

    virtual ~Renderer() = default;
    Renderer(Renderer const&) = delete;
    Renderer& operator=(Renderer const&) = delete;

    /// Where sampling has to stop.
    [[nodiscard]] virtual StopSequences stop_sequences() const = 0;
    [[nodiscard]] virtual RenderedMessage render_message(Message const& message,
                                                         RenderContext const& context) const = 0;
    /// A sampled response as a message. Throws `ValidationError` if it has several ends, which
    /// shows that it was sampled with other stop sequences.
    [[nodiscard]] virtual ParsedResponse parse_response(std::span<Token const> response) const = 0;

    /// The prompt for the next message, of `role`. `prefill` is how that message begins.
    [[nodiscard]] virtual std::vector<Token> build_generation_prompt(
        Messages messages, std::string_view role = "assistant",
        std::string_view prefill = {}) const;
    /// The tokens of a conversation and what of them counts in the loss.
    [[nodiscard]] virtual RenderedExample build_supervised_example(
        Messages messages, TrainOnWhat train_on_what = TrainOnWhat::last_assistant_message) const;
    /// As above, in as many examples as it takes to show each trained message behind the prompt
    /// that it would be sampled from: one if the renderer has the extension property.
    [[nodiscard]] virtual std::vector<RenderedExample> build_supervised_examples(
        Messages messages, TrainOnWhat train_on_what = TrainOnWhat::last_assistant_turn) const;

    /// Whether the prompt of each turn begins with all tokens of the turns before it. Then turns
    /// can be merged into one example, and a sampler can keep what it computed.
    [[nodiscard]] virtual bool has_extension_property() const { return false; }
    /// Whether the generation prompt tells the model not to think.
    [[nodiscard]] virtual bool disables_thinking() const { return false; }

    /// Messages that declare tools, to put before a conversation. Throws `ValidationError` if the
    /// format has no tools.
    [[nodiscard]] virtual std::vector<Message> create_conversation_prefix_with_tools(
        std::span<ToolSpec const> tools, std::string_view system_prompt = {}) const;

    [[nodiscard]] virtual bool supports_streaming() const { return false; }
    /// Gives the pieces of a response to `take` as its tokens tell them apart, and at last the
    /// message. Throws `ValidationError` if the renderer does not support it.
    virtual void parse_response_streaming(
        std::span<Token const> response,
        std::function<void(MessageDelta const&)> const& take) const;

    /// The message as JSON in the form of the OpenAI API, which servers and chat templates take.
    [[nodiscard]] virtual std::string to_openai_message(Message const& message) const;

    [[nodiscard]] RenderTokenizer const& tokenizer() const noexcept { return *tokenizer_; }

protected:
    /// Throws `ValidationError` if there is no tokenizer.
    explicit Renderer(std::shared_ptr<RenderTokenizer const> tokenizer);

    /// What every conversation begins with.
    [[nodiscard]] virtual std::vector<Token> bos_tokens() const { return {}; }
    /// What introduces the message to be generated; by default the header of an empty message.
    [[nodiscard]] virtual std::vector<Token> generation_suffix(std::string_view role,
                                                               RenderContext const& context) const;
    [[nodiscard]] virtual bool output_is_trained(Message const& message,
                                                 RenderContext const& context,
                                                 TrainOnWhat train_on_what) const;
    /// The index of the first message of the turn that the model is asked for.
    [[nodiscard]] virtual std::size_t last_assistant_turn_start(Messages messages) const;

    // For streams.

    /// The response with what the generation prompt had already begun, such as "<think>".
    [[nodiscard]] virtual std::vector<Token> normalize_response(
        std::span<Token const> response) const;
    /// The token that ends this response's message.
    [[nodiscard]] virtual Token end_of_message(std::span<Token const> response) const;
    /// As `parse_response` for what is normalized already, with tool calls and thinking read from a
    /// response that was cut off too.
    [[nodiscard]] virtual ParsedResponse parse_whole(std::span<Token const> response) const;

    [[nodiscard]] std::vector<Token> encode(
        std::string_view text,
        RenderTokenizer::Specials specials = RenderTokenizer::Specials::recognised) const;
    /// The one token that a text is; throws `ValidationError` if it is none.
    [[nodiscard]] Token single_token(std::string_view text) const;

private:
    std::shared_ptr<RenderTokenizer const> tokenizer_;
};

// Which renderer ----------------------------------------------------------------------------------

/// What the constructors of the cookbook's renderers take. What does not concern a renderer is
/// ignored.
struct RendererOptions {
    /// Whether thinking is left out of earlier messages. Empty: as the name says.
    std::optional<bool> strip_thinking_from_history{};
    /// DeepSeek V3: whether later messages of the system are rendered as the user's.
    bool system_role_as_user{false};
    /// gpt-oss: the date in the system prompt, as "2025-11-30". Empty: today, by the local clock.
    std::string current_date{};
};

using RendererFactory = std::function<std::unique_ptr<Renderer>(
    std::shared_ptr<RenderTokenizer const> tokenizer, RendererOptions const& options)>;

/// Renderers by name: those of the cookbook, and what is registered here.
///
/// A value: give it to whoever makes renderers. Reading is safe from any thread while nobody
/// writes.
class Renderers {
public:
    Renderers();

    /// Adds a renderer or replaces it, one of the built-in ones too.
    void add(std::string name, RendererFactory factory);
    /// Whether there was a renderer of that name.
    bool remove(std::string_view name);
    [[nodiscard]] bool contains(std::string_view name) const;
    /// In alphabetical order.
    [[nodiscard]] std::vector<std::string> names() const;
    /// Throws `ValidationError` for a name that is not there, or a tokenizer that lacks a token of
    /// the format.
    [[nodiscard]] std::unique_ptr<Renderer> make(
        std::string_view name, std::shared_ptr<RenderTokenizer const> tokenizer,
        RendererOptions const& options = RendererOptions()) const;

    /// Sets which renderers suit a model, the best one first.
    void recommend(std::string model, std::vector<std::string> renderers);
    /// Names of the renderers that suit a model such as "Qwen/Qwen3-8B", the best one first; what
    /// follows a colon is ignored. Empty if the model is not known.
    [[nodiscard]] std::vector<std::string> recommended(std::string_view model) const;

private:
    std::vector<std::pair<std::string, RendererFactory>> factories_;
    std::vector<std::pair<std::string, std::vector<std::string>>> models_;
};

/// Turns messages into text, as a chat template does. With `generation_prompt` the text ends in
/// what introduces the assistant's answer.
using ChatText =
    std::function<std::string(std::span<Message const> messages, bool generation_prompt)>;

struct TemplateRendererOptions {
    /// The text that ends a message of the assistant, such as "<|im_end|>".
    std::string end_of_message{};
    /// Tags around what the model thinks. Empty: responses are not searched for it.
    std::string thinking_open{"<think>"};
    std::string thinking_close{"</think>"};
};

/// A renderer over any chat template. What counts in the loss is found by rendering the
/// conversation up to each message: a message counts from the end of its generation prompt, or of
/// the messages before it, to its own end. Throws `ValidationError` where the template writes
/// earlier messages differently once others follow, if one of those is to be trained on.
[[nodiscard]] std::unique_ptr<Renderer> make_template_renderer(
    std::shared_ptr<RenderTokenizer const> tokenizer, ChatText chat_text,
    TemplateRendererOptions options);

// Data --------------------------------------------------------------------------------------------

struct ConversationDatumOptions {
    enum class Reduction : std::uint8_t {
        none,  ///< weights as they are: the loss is a sum over tokens
        mean,  ///< weights sum to 1: the loss is a mean over the tokens of the example
    };
    TrainOnWhat train_on_what{TrainOnWhat::all_assistant_messages};
    /// Tokens beyond are cut off.
    std::optional<std::int64_t> max_length{};
    Reduction reduction{Reduction::mean};
};

/// A datum for `cross_entropy` from an example: inputs, targets and weights.
[[nodiscard]] Datum to_datum(RenderedExample const& example,
                             ConversationDatumOptions const& options = ConversationDatumOptions());
struct ExampleTextOptions {
    /// With colours of a terminal: green counts in the loss, yellow does not, red has a negative
    /// weight. Else what counts stands in 【these brackets】, and what has a negative weight in
    /// 〖these〗.
    bool ansi{false};
    /// Shows where each token ends, by a thin bar.
    bool token_bounds{false};
};

/// The text of an example, marked by what counts in the loss; for people. Control characters but
/// line breaks are shown as pictures.
[[nodiscard]] std::string show_example(RenderedExample const& example,
                                       RenderTokenizer const& tokenizer,
                                       ExampleTextOptions const& options = ExampleTextOptions());
/// As above for a datum of `cross_entropy`. Throws `ValidationError` if it has no text, targets or
/// weights.
[[nodiscard]] std::string show_datum(Datum const& datum, RenderTokenizer const& tokenizer,
                                     ExampleTextOptions const& options = ExampleTextOptions());

}  // namespace tinkxx::text

namespace tinkxx::data {

/// A datum for `cross_entropy` from a conversation, in one call.
[[nodiscard]] Datum from_conversation(
    text::Renderer const& renderer, std::span<text::Message const> messages,
    text::ConversationDatumOptions const& options = text::ConversationDatumOptions());

}  // namespace tinkxx::data
