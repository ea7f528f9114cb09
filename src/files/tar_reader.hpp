#pragma once

#include <tinkxx/result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tinkxx::files {

/// How much an archive may hold.
struct TarLimits {
    std::int64_t most_bytes{std::int64_t{1} << 42};
    std::int64_t most_entries{10'000};
};

/// Reads a tar file that comes in pieces: ustar, with the names and sizes of pax and of GNU tar.
/// Only files and folders are let through; links, devices and whatever else is refused, as are
/// names that lead elsewhere. Holds a block and a name, however long the file is.
class TarReader {
public:
    /// Told what is in the archive, in its order.
    class Sink {
    public:
        virtual Result<void> folder(std::string const& name) = 0;
        virtual Result<void> file(std::string const& name, std::int64_t bytes) = 0;
        /// Of the file that was told of last.
        virtual Result<void> data(std::span<char const> bytes) = 0;
        virtual Result<void> file_end() = 0;

    protected:
        ~Sink() = default;
    };

    TarReader(Sink& sink, TarLimits limits) noexcept : sink_{&sink}, limits_{limits} {}

    /// The next bytes. After an error nothing more may follow.
    [[nodiscard]] Result<void> feed(std::span<char const> bytes);
    /// There are no more bytes: whether the archive is complete.
    [[nodiscard]] Result<void> finish() const;

private:
    static constexpr std::size_t block_bytes = 512;
    enum class State : std::uint8_t { header, name, data, over };
    /// What a long name, or a set of pax records, is for.
    enum class Naming : std::uint8_t { gnu_name, pax, ignored };

    [[nodiscard]] Result<void> on_block();
    [[nodiscard]] Result<void> on_header();
    [[nodiscard]] Result<void> begin_entry(char type, std::string name, std::int64_t bytes);
    [[nodiscard]] Result<void> begin_name(Naming naming, std::int64_t bytes);
    [[nodiscard]] Result<void> end_name();
    [[nodiscard]] Result<void> end_file();

    Sink* sink_;
    TarLimits limits_;
    State state_{State::header};
    std::array<char, block_bytes> block_{};
    std::size_t filled_{0};
    int empty_blocks_{0};
    std::int64_t entries_{0};
    std::int64_t bytes_{0};
    /// Of what is being read: bytes to come, and those that fill its last block.
    std::int64_t left_{0};
    std::size_t padding_{0};
    Naming naming_{Naming::ignored};
    std::string text_{};
    /// Of the next entry.
    std::optional<std::string> long_name_{};
    std::optional<std::int64_t> long_size_{};
};

}  // namespace tinkxx::files
