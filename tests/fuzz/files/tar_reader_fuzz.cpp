// An archive of a checkpoint: whatever is in it, only files and folders inside are told of, and no
// more than is allowed.
#include "files/folder_writer.hpp"
#include "files/tar_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using tinkxx::Result;

constexpr std::int64_t most_bytes = 4096;
constexpr std::int64_t most_entries = 16;

class Judge final : public tinkxx::files::TarReader::Sink {
public:
    Result<void> folder(std::string const& name) override { return entry(name); }
    Result<void> file(std::string const& name, std::int64_t bytes) override {
        if (bytes < 0 || expected_ != 0) std::abort();
        expected_ = bytes;
        total_ += bytes;
        if (total_ > most_bytes) std::abort();
        return entry(name);
    }
    Result<void> data(std::span<char const> bytes) override {
        expected_ -= static_cast<std::int64_t>(bytes.size());
        if (bytes.empty() || expected_ < 0) std::abort();
        return {};
    }
    Result<void> file_end() override {
        if (expected_ != 0) std::abort();
        return {};
    }

private:
    Result<void> entry(std::string const& name) {
        if (tinkxx::files::name_problem(name) || ++entries_ > most_entries) std::abort();
        return {};
    }

    std::int64_t expected_{0};
    std::int64_t total_{0};
    std::int64_t entries_{0};
};

/// Makes the checksums of headers right, which no fuzzer would find.
void mend(std::string& text) {
    for (std::size_t at = 0; at + 512 <= text.size(); at += 512) {
        auto* const block = text.data() + at;
        if (std::memcmp(block + 257, "ustar", 5) != 0) continue;
        std::memset(block + 148, ' ', 8);
        unsigned sum = 0;
        for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(block[i]);
        std::snprintf(block + 148, 7, "%06o", sum);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    if (size == 0) return 0;
    std::string text{reinterpret_cast<char const*>(data) + 1, size - 1};
    mend(text);
    Judge judge;
    tinkxx::files::TarReader reader{judge,
                                    {.most_bytes = most_bytes, .most_entries = most_entries}};
    std::size_t const step = data[0] + std::size_t{1};
    for (std::size_t at = 0; at < text.size(); at += step) {
        if (!reader.feed({text.data() + at, std::min(step, text.size() - at)})) return 0;
    }
    (void)reader.finish();
    return 0;
}
