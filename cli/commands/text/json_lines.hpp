#pragma once

#include <tinkxx/types/model_input.hpp>

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::cli {

/// Lines of a file as they come, in memory that does not grow with the file.
class LineReader {
public:
    explicit LineReader(int file) noexcept : file_{file} {}

    /// Waits for at least one line, and gives all that are there without waiting further, up to a
    /// few MiB. False at the end of the file. What is given is valid until the next call. Throws
    /// `std::system_error`, and `Error` for a line that is longer than any should be.
    [[nodiscard]] bool next(std::vector<std::string_view>& lines);
    /// Lines given so far.
    [[nodiscard]] std::size_t count() const noexcept { return count_; }

private:
    [[nodiscard]] bool fill();
    void take(std::size_t end, std::vector<std::string_view>& lines);

    int file_;
    std::string buffer_{};
    std::size_t used_{0};
    bool ended_{false};
    std::size_t count_{0};
};

/// Everything that is left in a file. Throws `std::system_error`.
[[nodiscard]] std::string read_all(int file);

/// The line that an answer could not be given for, counted from 1.
struct BadLine {
    std::size_t number{0};
    std::string reason{};
};

/// Appends the answer to a line, without a newline. Called by several threads; what it throws is
/// the reason that the line is bad.
using LineAnswer = std::function<void(std::string_view line, std::string& answer)>;

/// Answers each line of `in` by a line of `out`, in their order and as soon as they come; by as
/// many threads (0: one for each core). Stops at the first bad line, after the answers to those
/// before.
[[nodiscard]] std::optional<BadLine> answer_lines(int in, std::ostream& out, unsigned threads,
                                                  LineAnswer const& answer);

/// What a JSON string or list of ids says. `lossy`: an escape that is half a character is U+FFFD.
/// Throw `Error` with the reason.
[[nodiscard]] std::string json_string_of(std::string_view line, bool lossy);
[[nodiscard]] std::vector<Token> json_tokens_of(std::string_view line);

/// The members of a JSON object, by name: each with its value as it stands there. What is within a
/// value is not checked. Throws as above.
[[nodiscard]] std::vector<std::pair<std::string, std::string_view>> json_members_of(
    std::string_view text);

/// Appends `text`, which is UTF-8, as a JSON string: nothing in it is replaced.
void append_json(std::string& to, std::string_view text);
/// Appends `[1,2,3]`.
void append_json(std::string& to, std::vector<Token> const& tokens);
void append_number(std::string& to, std::size_t number);

}  // namespace tinkxx::cli
