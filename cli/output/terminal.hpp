#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

namespace tinkxx::cli {

/// What went wrong, for people: what could not be done, why, and what to do about it.
struct Trouble {
    std::string headline{};
    std::string reason{};
    std::string way_out{};
};

/// Exit codes, which scripts may rely on.
enum class Exit : int {
    success = 0,
    failure = 1,
    usage = 2,          ///< the command line itself is wrong
    retry = 75,         ///< it failed, and the same command may succeed later
    interrupted = 130,  ///< by Ctrl-C
};

/// What the streams of a command lead to.
struct Screen {
    /// Whether people read stdout and stderr, and write stdin.
    bool out{false};
    bool err{false};
    bool in{false};
    bool colour{false};
    /// Columns of what people read.
    std::size_t width{80};
};

/// Where a command speaks: data to `out`, which programs read, and everything else to `err`.
class Terminal {
public:
    Terminal(std::ostream& out, std::ostream& err, Screen screen)
        : out_{out}, err_{err}, screen_{screen} {}
    /// Of the process; in colour if people read it and NO_COLOR is not set.
    [[nodiscard]] static Terminal standard();

    [[nodiscard]] std::ostream& out() noexcept { return out_; }
    [[nodiscard]] std::ostream& err() noexcept { return err_; }
    [[nodiscard]] Screen const& screen() const noexcept { return screen_; }

    [[nodiscard]] std::string bold(std::string_view text) const { return styled("1", text); }
    [[nodiscard]] std::string dim(std::string_view text) const { return styled("2", text); }
    [[nodiscard]] std::string red(std::string_view text) const { return styled("31", text); }
    [[nodiscard]] std::string yellow(std::string_view text) const { return styled("33", text); }

    /// Whether people read `out`, and in colour.
    [[nodiscard]] bool colours_data() const noexcept { return screen_.out && screen_.colour; }
    /// For `out`: `code` is what ECMA-48 calls graphic rendition, such as "31".
    [[nodiscard]] std::string data(std::string_view code, std::string_view text) const;

    void complain(Trouble const& trouble);
    void warn(std::string_view text);
    /// What is going on, for people.
    void note(std::string_view text);

private:
    [[nodiscard]] std::string styled(std::string_view code, std::string_view text) const;

    std::ostream& out_;
    std::ostream& err_;
    Screen screen_;
};

/// `text` as a JSON string, with its quotes.
[[nodiscard]] std::string json_text(std::string_view text);

}  // namespace tinkxx::cli
