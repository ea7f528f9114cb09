#pragma once

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
    usage = 2,  ///< the command line itself is wrong
};

/// Where a command speaks: data to `out`, which programs read, and everything else to `err`.
class Terminal {
public:
    Terminal(std::ostream& out, std::ostream& err, bool colour, bool colours_data = false)
        : out_{out}, err_{err}, colour_{colour}, colours_data_{colours_data} {}
    /// Of the process; in colour if people read it and NO_COLOR is not set.
    [[nodiscard]] static Terminal standard();

    [[nodiscard]] std::ostream& out() noexcept { return out_; }
    [[nodiscard]] std::ostream& err() noexcept { return err_; }

    [[nodiscard]] std::string bold(std::string_view text) const { return styled("1", text); }
    [[nodiscard]] std::string dim(std::string_view text) const { return styled("2", text); }
    [[nodiscard]] std::string red(std::string_view text) const { return styled("31", text); }
    [[nodiscard]] std::string yellow(std::string_view text) const { return styled("33", text); }

    /// Whether people read `out`, and in colour.
    [[nodiscard]] bool colours_data() const noexcept { return colours_data_; }
    /// For `out`: `code` is what ECMA-48 calls graphic rendition, such as "31".
    [[nodiscard]] std::string data(std::string_view code, std::string_view text) const;

    void complain(Trouble const& trouble);
    void warn(std::string_view text);

private:
    [[nodiscard]] std::string styled(std::string_view code, std::string_view text) const;

    std::ostream& out_;
    std::ostream& err_;
    bool colour_;
    bool colours_data_;
};

/// `text` as a JSON string, with its quotes.
[[nodiscard]] std::string json_text(std::string_view text);

}  // namespace tinkxx::cli
