#include "commands/text/json_lines.hpp"

#include <tinkxx/error.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <exception>
#include <mutex>
#include <ostream>
#include <system_error>
#include <thread>
#include <utility>

namespace tinkxx::cli {
namespace {

constexpr std::size_t batch_bytes = std::size_t{4} << 20U;
constexpr std::size_t longest_line = std::size_t{1} << 30U;
constexpr std::size_t read_bytes = std::size_t{1} << 18U;
/// Less is done faster by one thread than others are started.
constexpr std::size_t worth_a_thread = std::size_t{1} << 16U;

[[noreturn]] void bad(std::string reason) {
    Error{{.kind = ErrorKind::validation, .message = std::move(reason)}}.raise();
}

bool more_is_there(int file) {
    ::pollfd asked{.fd = file, .events = POLLIN, .revents = 0};
    return ::poll(&asked, 1, 0) == 1;
}

/// 0 at the end.
std::size_t read_some(int file, char* to, std::size_t size) {
    while (true) {
        auto const got = ::read(file, to, size);
        if (got >= 0) return static_cast<std::size_t>(got);
        if (errno != EINTR) throw std::system_error{errno, std::generic_category(), "stdin"};
    }
}

}  // namespace

bool LineReader::fill() {
    if (ended_) return false;
    if (buffer_.size() - used_ > longest_line) {
        bad("line " + std::to_string(count_ + 1) + " is longer than 1 GiB");
    }
    auto const before = buffer_.size();
    buffer_.resize(before + read_bytes);
    auto const got = read_some(file_, buffer_.data() + before, read_bytes);
    buffer_.resize(before + got);
    ended_ = got == 0;
    return !ended_;
}

void LineReader::take(std::size_t end, std::vector<std::string_view>& lines) {
    while (used_ < end) {
        auto const newline = std::min(buffer_.find('\n', used_), end);
        auto line = std::string_view{buffer_}.substr(used_, newline - used_);
        if (line.ends_with('\r')) line.remove_suffix(1);
        lines.push_back(line);
        used_ = std::min(newline + 1, buffer_.size());
        ++count_;
    }
}

bool LineReader::next(std::vector<std::string_view>& lines) {
    lines.clear();
    buffer_.erase(0, used_);
    used_ = 0;
    std::size_t searched = 0;
    bool whole = false;
    while (!whole || (buffer_.size() < batch_bytes && more_is_there(file_))) {
        searched = buffer_.size();
        if (!fill()) break;
        whole = whole || buffer_.find('\n', searched) != std::string::npos;
    }
    auto const last = buffer_.rfind('\n');
    take(ended_ ? buffer_.size() : last + 1, lines);
    return !lines.empty();
}

std::string read_all(int file) {
    std::string text;
    while (true) {
        auto const before = text.size();
        text.resize(before + read_bytes);
        auto const got = read_some(file, text.data() + before, read_bytes);
        text.resize(before + got);
        if (got == 0) return text;
    }
}

namespace {

/// The lines of one batch, which threads take piece by piece; each piece has a text of its own, so
/// that the answers can be written in order.
class Batch {
public:
    Batch(std::vector<std::string_view> const& lines, LineAnswer const& answer)
        : lines_{lines},
          answer_{answer},
          answers_((lines.size() + piece_lines - 1) / piece_lines),
          wrong_{lines.size()} {}

    void work() {
        for (auto piece = next_++; piece < answers_.size(); piece = next_++) {
            auto const end = std::min((piece + 1) * piece_lines, lines_.size());
            for (auto line = piece * piece_lines; line < end; ++line) {
                if (!answer_one(line, answers_[piece])) return;
            }
        }
    }

    [[nodiscard]] std::vector<std::string> const& answers() const noexcept { return answers_; }
    /// The first line that is wrong; the number of lines if none is. Valid once all workers are
    /// done.
    [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }
    [[nodiscard]] std::string const& reason() const noexcept { return reason_; }

    /// How many pieces hold nothing that comes after the bad line.
    [[nodiscard]] std::size_t good_pieces() const noexcept {
        return wrong_ == lines_.size() ? answers_.size() : wrong_ / piece_lines + 1;
    }

private:
    static constexpr std::size_t piece_lines = 16;

    bool answer_one(std::size_t line, std::string& to) {
        auto const before = to.size();
        try {
            answer_(lines_[line], to);
            to += '\n';
            return true;
        } catch (std::exception const& error) {
            to.resize(before);
            std::scoped_lock const lock{mutex_};
            if (line < wrong_) {
                wrong_ = line;
                reason_ = error.what();
            }
            return false;
        }
    }

    std::vector<std::string_view> const& lines_;
    LineAnswer const& answer_;
    std::vector<std::string> answers_;
    std::atomic<std::size_t> next_{0};
    std::mutex mutex_{};
    std::size_t wrong_;     // guarded by the mutex, while threads work
    std::string reason_{};  // likewise
};

void run(Batch& batch, std::size_t bytes, unsigned threads) {
    auto const wanted = std::min<std::size_t>(threads, bytes / worth_a_thread);
    std::vector<std::jthread> helpers;
    while (helpers.size() + 1 < wanted) helpers.emplace_back([&] { batch.work(); });
    batch.work();
}

}  // namespace

std::optional<BadLine> answer_lines(int in, std::ostream& out, unsigned threads,
                                    LineAnswer const& answer) {
    if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
    LineReader reader{in};
    std::vector<std::string_view> lines;
    while (reader.next(lines)) {
        std::size_t bytes = 0;
        for (auto const line : lines) bytes += line.size();
        Batch batch{lines, answer};
        run(batch, bytes, threads);
        for (std::size_t piece = 0; piece < batch.good_pieces(); ++piece) {
            out << batch.answers()[piece];
        }
        out.flush();
        if (!out) bad("the output cannot be written");
        if (batch.wrong() < lines.size()) {
            return BadLine{.number = reader.count() - lines.size() + batch.wrong() + 1,
                           .reason = batch.reason()};
        }
    }
    return std::nullopt;
}

namespace {

/// Reads one line of JSON from left to right.
class JsonCursor {
public:
    explicit JsonCursor(std::string_view line) noexcept : line_{line} { skip_blanks(); }

    [[noreturn]] void fail(std::string_view wanted) const {
        auto const found = at_ < line_.size() ? "column " + std::to_string(at_ + 1) + " is not "
                                              : std::string{"the line ends before "};
        bad(found + std::string{wanted});
    }
    [[nodiscard]] bool take(char c) {
        if (at_ >= line_.size() || line_[at_] != c) return false;
        ++at_;
        return true;
    }
    void skip_blanks() noexcept {
        while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' ||
                                      line_[at_] == '\r' || line_[at_] == '\n'))
            ++at_;
    }
    void end() {
        skip_blanks();
        if (at_ < line_.size()) fail("the end of the line");
    }

    [[nodiscard]] Token token() {
        Token value = 0;
        auto const* const begin = line_.data() + at_;
        auto const* const end = line_.data() + line_.size();
        auto const [rest, failed] = std::from_chars(begin, end, value);
        if (failed != std::errc{} || value < 0) fail("the id of a token");
        at_ += static_cast<std::size_t>(rest - begin);
        return value;
    }

    [[nodiscard]] std::string string(bool lossy) {
        if (!take('"')) fail("a JSON string");
        std::string text;
        while (true) {
            auto const plain = std::min(line_.find_first_of("\"\\", at_), line_.size());
            text += line_.substr(at_, plain - at_);
            at_ = plain;
            if (take('"')) return text;
            if (!take('\\')) fail("the closing quote of a JSON string");
            escape(text, lossy);
        }
    }

    /// Any value, as it stands there: up to the comma or bracket that is not part of it.
    [[nodiscard]] std::string_view value() {
        auto const begin = at_;
        std::size_t depth = 0;
        while (at_ < line_.size()) {
            auto const c = line_[at_];
            if (depth == 0 && (c == ',' || c == '}' || c == ']')) break;
            if (c == '"') {
                skip_string();
                continue;
            }
            if (c == '{' || c == '[') ++depth;
            if (c == '}' || c == ']') --depth;
            ++at_;
        }
        if (at_ == begin) fail("a value");
        auto const found = line_.substr(begin, at_ - begin);
        return found.substr(0, found.find_last_not_of(" \t\r\n") + 1);
    }

private:
    void skip_string() {
        ++at_;
        while (at_ < line_.size() && line_[at_] != '"') at_ += line_[at_] == '\\' ? 2U : 1U;
        if (at_ >= line_.size()) {
            at_ = line_.size();
            fail("the closing quote of a JSON string");
        }
        ++at_;
    }

    void escape(std::string& to, bool lossy) {
        constexpr std::string_view letters = "\"\\/bfnrt";
        constexpr std::string_view values = "\"\\/\b\f\n\r\t";
        if (take('u')) {
            append_character(to, code_point(lossy));
            return;
        }
        auto const known = at_ < line_.size() ? letters.find(line_[at_]) : std::string_view::npos;
        if (known == std::string_view::npos) fail("an escape of a JSON string");
        to += values[known];
        ++at_;
    }

    [[nodiscard]] std::uint32_t unit() {
        std::uint32_t value = 0;
        auto const* const begin = line_.data() + at_;
        if (line_.size() - at_ < 4) fail("four hexadecimal digits");
        auto const [rest, failed] = std::from_chars(begin, begin + 4, value, 16);
        if (failed != std::errc{} || rest != begin + 4) fail("four hexadecimal digits");
        at_ += 4;
        return value;
    }

    [[nodiscard]] std::uint32_t code_point(bool lossy) {
        constexpr std::uint32_t replacement = 0xfffd;
        auto const first = unit();
        if (first < 0xd800 || first > 0xdfff) return first;
        auto const before = at_;
        if (first < 0xdc00 && take('\\') && take('u')) {
            auto const second = unit();
            if (second >= 0xdc00 && second <= 0xdfff) {
                return 0x10000 + ((first - 0xd800) << 10U) + (second - 0xdc00);
            }
        }
        at_ = before;
        if (!lossy) fail("preceded by a whole character: \\ud800 to \\udfff must come in pairs");
        return replacement;
    }

    static void append_character(std::string& to, std::uint32_t point) {
        auto const add = [&](std::uint32_t byte) { to += static_cast<char>(byte); };
        auto const rest = [&](unsigned shift) { add(0x80U | ((point >> shift) & 0x3fU)); };
        if (point < 0x80) {
            add(point);
        } else if (point < 0x800) {
            add(0xc0U | (point >> 6U));
            rest(0);
        } else if (point < 0x10000) {
            add(0xe0U | (point >> 12U));
            rest(6);
            rest(0);
        } else {
            add(0xf0U | (point >> 18U));
            rest(12);
            rest(6);
            rest(0);
        }
    }

    std::string_view line_;
    std::size_t at_{0};
};

}  // namespace

std::string json_string_of(std::string_view line, bool lossy) {
    JsonCursor cursor{line};
    auto text = cursor.string(lossy);
    cursor.end();
    return text;
}

std::vector<Token> json_tokens_of(std::string_view line) {
    JsonCursor cursor{line};
    std::vector<Token> tokens;
    if (!cursor.take('[')) cursor.fail("a JSON list of ids");
    cursor.skip_blanks();
    if (!cursor.take(']')) {
        while (true) {
            cursor.skip_blanks();
            tokens.push_back(cursor.token());
            cursor.skip_blanks();
            if (cursor.take(']')) break;
            if (!cursor.take(',')) cursor.fail("a comma or the end of the list");
        }
    }
    cursor.end();
    return tokens;
}

std::vector<std::pair<std::string, std::string_view>> json_members_of(std::string_view text) {
    JsonCursor cursor{text};
    std::vector<std::pair<std::string, std::string_view>> members;
    if (!cursor.take('{')) cursor.fail("a JSON object");
    cursor.skip_blanks();
    if (!cursor.take('}')) {
        while (true) {
            cursor.skip_blanks();
            auto name = cursor.string(false);
            cursor.skip_blanks();
            if (!cursor.take(':')) cursor.fail("a colon");
            cursor.skip_blanks();
            members.emplace_back(std::move(name), cursor.value());
            if (cursor.take('}')) break;
            if (!cursor.take(',')) cursor.fail("a comma or the end of the object");
        }
    }
    cursor.end();
    return members;
}

void append_json(std::string& to, std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    to += '"';
    for (auto const c : text) {
        if (c == '"' || c == '\\') {
            (to += '\\') += c;
        } else if (c == '\n') {
            to += "\\n";
        } else if (static_cast<unsigned char>(c) < 0x20) {
            to += "\\u00";
            to += digits[static_cast<unsigned char>(c) >> 4U];
            to += digits[static_cast<unsigned char>(c) & 15U];
        } else {
            to += c;
        }
    }
    to += '"';
}

void append_number(std::string& to, std::size_t number) {
    char digits[24];
    auto const end = std::to_chars(std::begin(digits), std::end(digits), number).ptr;
    to.append(digits, end);
}

void append_json(std::string& to, std::vector<Token> const& tokens) {
    to += '[';
    for (auto const token : tokens) {
        if (to.back() != '[') to += ',';
        append_number(to, static_cast<std::size_t>(token));
    }
    to += ']';
}

}  // namespace tinkxx::cli
