#pragma once

#include "commands/detokenize.hpp"
#include "commands/render.hpp"
#include "commands/tokenize.hpp"
#include "output/terminal.hpp"

#include <CLI/CLI.hpp>

namespace tinkxx::cli {

/// The commands about text: their options, and which of them was given.
class TextCommands {
public:
    explicit TextCommands(CLI::App& app);
    TextCommands(TextCommands const&) = delete;
    TextCommands& operator=(TextCommands const&) = delete;

    [[nodiscard]] bool parsed() const;
    [[nodiscard]] Exit run(Terminal& terminal) const;

private:
    void add_tokenize(CLI::App& app);
    void add_detokenize(CLI::App& app);
    void add_render(CLI::App& app);

    TokenizeArguments tokenize_arguments_{};
    DetokenizeArguments detokenize_arguments_{};
    RenderArguments render_arguments_{};
    CLI::App* tokenize_{nullptr};
    CLI::App* detokenize_{nullptr};
    CLI::App* render_{nullptr};
};

}  // namespace tinkxx::cli
