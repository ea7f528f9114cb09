#include "files/tar_reader.hpp"

#include <tinkxx/error.hpp>

#include "files/folder_writer.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace tinkxx::files {
namespace {

constexpr std::int64_t longest_text = 64 * 1024;

Error broken(std::string why) {
    return Error{
        {.kind = ErrorKind::validation,
         .message = "the archive " + std::move(why) + "; it may be corrupt, so fetch it again",
         .field = "archive"}};
}

/// A field of text that ends at its first zero.
std::string_view text_field(std::span<char const> block, std::size_t at, std::size_t size) {
    std::string_view const all{block.data() + at, size};
    return all.substr(0, all.find('\0'));
}

/// Octal digits, or a binary number behind a bit; none if it is neither.
std::optional<std::int64_t> number_field(std::span<char const> block, std::size_t at,
                                         std::size_t size) {
    auto const field = block.subspan(at, size);
    if ((static_cast<unsigned char>(field.front()) & 0x80U) != 0) {
        std::uint64_t number = static_cast<unsigned char>(field.front()) & 0x7fU;
        for (auto const c : field.subspan(1)) {
            if (number >> 54U != 0) return std::nullopt;
            number = number << 8U | static_cast<unsigned char>(c);
        }
        return static_cast<std::int64_t>(number);
    }
    std::string_view text{field.data(), field.size()};
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::int64_t number = 0;
    auto const read = std::from_chars(text.data(), text.data() + text.size(), number, 8);
    auto const rest = std::string_view{read.ptr, text.data() + text.size()};
    bool const ends = rest.find_first_not_of(std::string_view{" \0", 2}) == std::string_view::npos;
    if (!ends || number < 0 || read.ec == std::errc::result_out_of_range) return std::nullopt;
    return number;
}

bool checksum_holds(std::span<char const> block) {
    constexpr std::size_t begin = 148;
    constexpr std::size_t end = 156;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
        sum += i >= begin && i < end ? ' ' : static_cast<unsigned char>(block[i]);
    }
    return number_field(block, begin, end - begin) == sum;
}

std::string name_field(std::span<char const> block) {
    std::string const name{text_field(block, 0, 100)};
    if (text_field(block, 257, 5) != "ustar" || block[262] != '\0') return name;
    std::string const prefix{text_field(block, 345, 155)};
    return prefix.empty() ? name : prefix + '/' + name;
}

std::string_view what_it_is(char type) {
    switch (type) {
        case '1':
            return "a hard link";
        case '2':
            return "a symbolic link";
        case '3':
        case '4':
            return "a device";
        case '6':
            return "a pipe";
        default:
            return "neither a file nor a folder";
    }
}

/// A name without `./` in front and slashes behind; empty for the top folder.
std::string trimmed_name(std::string_view name) {
    while (name.starts_with("./")) name.remove_prefix(2);
    while (name.size() > 1 && name.ends_with('/')) name.remove_suffix(1);
    return std::string{name == "." ? std::string_view{} : name};
}

}  // namespace

Result<void> TarReader::feed(std::span<char const> bytes) {
    while (!bytes.empty() && state_ != State::over) {
        if (state_ != State::header && left_ > 0) {
            auto const size =
                std::min<std::uint64_t>(bytes.size(), static_cast<std::uint64_t>(left_));
            auto const piece = bytes.first(size);
            bytes = bytes.subspan(size);
            left_ -= static_cast<std::int64_t>(size);
            if (state_ == State::data) {
                if (auto written = sink_->data(piece); !written) return written;
            } else if (naming_ != Naming::ignored) {
                text_.append(piece.data(), piece.size());
            }
        } else {
            auto const wanted = state_ == State::header ? block_bytes - filled_ : padding_;
            auto const piece = bytes.first(std::min(wanted, bytes.size()));
            bytes = bytes.subspan(piece.size());
            if (state_ == State::header) {
                std::ranges::copy(piece, block_.begin() + static_cast<std::ptrdiff_t>(filled_));
                filled_ += piece.size();
            } else {
                padding_ -= piece.size();
            }
        }
        if (auto moved = on_block(); !moved) return moved;
    }
    return {};
}

/// Goes on if what is being read is there.
Result<void> TarReader::on_block() {
    if (state_ == State::header) {
        if (filled_ < block_bytes) return {};
        filled_ = 0;
        return on_header();
    }
    if (state_ == State::over || left_ > 0 || padding_ > 0) return {};
    return state_ == State::data ? end_file() : end_name();
}

Result<void> TarReader::on_header() {
    if (std::ranges::all_of(block_, [](char c) { return c == '\0'; })) {
        if (++empty_blocks_ == 2) state_ = State::over;
        return {};
    }
    if (empty_blocks_ != 0) return broken("goes on after its end");
    if (!checksum_holds(block_)) return broken("has a header whose checksum is wrong");
    auto const size = number_field(block_, 124, 12);
    if (!size) return broken("has a header without a size");
    auto const type = block_[156];
    if (++entries_ > limits_.most_entries) {
        return broken("has more than " + std::to_string(limits_.most_entries) + " entries");
    }
    switch (type) {
        case 'L':
            return begin_name(Naming::gnu_name, *size);
        case 'x':
            return begin_name(Naming::pax, *size);
        case 'K':  // what follows is a link, and refused
        case 'g':
            return begin_name(Naming::ignored, *size);
        default: {
            auto name = std::exchange(long_name_, std::nullopt).value_or(name_field(block_));
            auto const bytes = std::exchange(long_size_, std::nullopt).value_or(*size);
            return begin_entry(type, std::move(name), bytes);
        }
    }
}

Result<void> TarReader::begin_name(Naming naming, std::int64_t bytes) {
    if (bytes > longest_text) return broken("has a name or a comment of more than 64 KiB");
    naming_ = naming;
    text_.clear();
    left_ = bytes;
    padding_ = (block_bytes - static_cast<std::size_t>(bytes) % block_bytes) % block_bytes;
    state_ = State::name;
    return on_block();
}

Result<void> TarReader::end_name() {
    state_ = State::header;
    if (naming_ == Naming::gnu_name) {
        long_name_ = text_.substr(0, text_.find('\0'));
        return {};
    }
    if (naming_ == Naming::ignored) return {};
    // `LENGTH KEY=VALUE\n`, one after the other; the length is that of all of it.
    std::string_view rest{text_};
    while (!rest.empty()) {
        std::size_t length = 0;
        auto const read = std::from_chars(rest.data(), rest.data() + rest.size(), length);
        auto const digits = static_cast<std::size_t>(read.ptr - rest.data());
        if (read.ec != std::errc{} || length > rest.size() || length < digits + 3 ||
            rest[digits] != ' ' || rest[length - 1] != '\n') {
            return broken("has a pax record that cannot be read");
        }
        auto const record = rest.substr(digits + 1, length - digits - 2);
        rest.remove_prefix(length);
        auto const equals = record.find('=');
        if (equals == std::string_view::npos) return broken("has a pax record without a value");
        auto const key = record.substr(0, equals);
        auto const value = record.substr(equals + 1);
        if (key.starts_with("GNU.sparse.")) return broken("has a file with holes");
        if (key == "path") long_name_ = std::string{value};
        if (key == "size") {
            std::int64_t size = -1;
            auto const number = std::from_chars(value.data(), value.data() + value.size(), size);
            if (number.ec != std::errc{} || number.ptr != value.data() + value.size() || size < 0) {
                return broken("has a pax record with a size that is no number");
            }
            long_size_ = size;
        }
    }
    return {};
}

Result<void> TarReader::begin_entry(char type, std::string name, std::int64_t bytes) {
    bool const folder = type == '5' || ((type == '0' || type == '\0') && name.ends_with('/'));
    bool const file = !folder && (type == '0' || type == '\0' || type == '7');
    auto shown = '"' + name.substr(0, 200) + '"';
    if (!folder && !file) {
        return broken("has " + std::string{what_it_is(type)} + ", " + shown +
                      ", and only files and folders are taken");
    }
    name = trimmed_name(name);
    if (name.empty() && folder) {
        if (bytes != 0) return broken("has a folder with content");
        return {};
    }
    if (auto const problem = name_problem(name)) {
        return broken("has the name " + shown + ", which " + *problem);
    }
    if (folder) {
        if (bytes != 0) return broken("has a folder with content, " + shown);
        return sink_->folder(name);
    }
    if (bytes > limits_.most_bytes - bytes_) {
        return broken("has more than " + std::to_string(limits_.most_bytes) + " bytes");
    }
    bytes_ += bytes;
    if (auto begun = sink_->file(name, bytes); !begun) return begun;
    left_ = bytes;
    padding_ =
        (block_bytes - static_cast<std::size_t>(bytes % static_cast<std::int64_t>(block_bytes))) %
        block_bytes;
    state_ = State::data;
    return on_block();
}

Result<void> TarReader::end_file() {
    state_ = State::header;
    return sink_->file_end();
}

Result<void> TarReader::finish() const {
    if (state_ == State::over) return {};
    return broken("ends before its end mark");
}

}  // namespace tinkxx::files
