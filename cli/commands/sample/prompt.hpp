#pragma once

#include "frame/command.hpp"

#include <tinkxx/sampling_client.hpp>
#include <tinkxx/service_client.hpp>
#include <tinkxx/tokenizer.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tinkxx::cli {

/// Which model, and what it is given: options of the commands that sample.
struct PromptArguments {
    std::string model{};
    std::optional<std::string> text{};
    std::string file{};
    /// The prompt is ids, not text.
    bool tokens{false};
    /// A file, a folder, or a name. Empty: that of the model.
    std::string tokenizer{};
};

void add_prompt_options(CLI::App& app, PromptArguments& arguments);

/// A model, the prompt in its tokens, and the session for both. Contacts the server only for what
/// needs it.
class PromptSession {
public:
    /// Throws `BadUsage` for a prompt that cannot be read, and `Error`.
    PromptSession(PromptArguments const& arguments, Context& context);

    [[nodiscard]] SamplingClient const& sampler() const noexcept { return sampler_; }
    [[nodiscard]] std::vector<Token> const& prompt() const noexcept { return prompt_; }
    /// Empty if there is no tokenizer, which only text needs.
    [[nodiscard]] std::optional<std::string> text_of(std::span<Token const> tokens) const;
    /// Why there is none.
    [[nodiscard]] std::string const& no_text() const noexcept { return no_text_; }
    /// Ends the session well.
    void close();

private:
    [[nodiscard]] std::string given_text(PromptArguments const& arguments, Context& context) const;
    void find_tokenizer(bool needed);

    ServiceClient service_;
    SamplingClient sampler_;
    std::shared_ptr<Tokenizer const> tokenizer_{};
    std::string no_text_{};
    std::vector<Token> prompt_{};
};

/// Ids with blanks or commas in between, a JSON list of them, or `{"tokens": […]}`. Throws
/// `BadUsage`.
[[nodiscard]] std::vector<Token> tokens_in(std::string const& text);

}  // namespace tinkxx::cli
