#include "text/regex/pattern.hpp"

#include "text/errors/refuse.hpp"
#include "text/unicode/utf8.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tinkxx::text {
namespace {

struct FreeCode {
    void operator()(pcre2_code* code) const noexcept { pcre2_code_free(code); }
};

/// What a thread needs to match, whatever the pattern.
class Workspace {
public:
    static Workspace& get() {
        static thread_local Workspace workspace;
        return workspace;
    }

    Workspace(Workspace const&) = delete;
    Workspace& operator=(Workspace const&) = delete;
    ~Workspace() {
        pcre2_match_data_free(data_);
        pcre2_match_context_free(context_);
        pcre2_jit_stack_free(stack_);
    }

    [[nodiscard]] pcre2_match_data* data() const noexcept { return data_; }
    [[nodiscard]] pcre2_match_context* context(std::size_t text_size) const noexcept {
        // Each match may look at the whole text a few times; more is a pattern that explodes.
        auto const limit = std::min<std::size_t>(1'000'000 + 8 * text_size, 0xf0000000);
        pcre2_set_match_limit(context_, static_cast<std::uint32_t>(limit));
        return context_;
    }

private:
    Workspace()
        : data_{pcre2_match_data_create(1, nullptr)},
          context_{pcre2_match_context_create(nullptr)},
          stack_{pcre2_jit_stack_create(32U << 10U, 4U << 20U, nullptr)} {
        pcre2_jit_stack_assign(context_, nullptr, stack_);
        pcre2_set_heap_limit(context_, 64U << 10U);  // KiB
    }

    pcre2_match_data* data_;
    pcre2_match_context* context_;
    pcre2_jit_stack* stack_;
};

std::string message_of(int error) {
    std::array<PCRE2_UCHAR, 256> text{};
    pcre2_get_error_message(error, text.data(), text.size());
    return reinterpret_cast<char const*>(text.data());  // NOLINT
}

}  // namespace

struct Pattern::Code {
    std::unique_ptr<pcre2_code, FreeCode> code;
};

Pattern::Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Pattern::Pattern(std::string_view regex, Dialect dialect, std::string const& field)
    : code_{std::make_unique<Code>()}, field_{field} {
    constexpr std::size_t longest = 64U << 10U;
    if (regex.size() > longest) {
        refuse("tokenizer: the pattern in " + field + " has " + std::to_string(regex.size()) +
                   " bytes; use one of at most 65536",
               field);
    }
    auto const text = translated(regex, dialect);
    int error = 0;
    PCRE2_SIZE place = 0;
    // `\C` would cut characters into bytes.
    auto const flags = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C |
                       (dialect == Dialect::ruby ? PCRE2_MULTILINE : 0U);
    code_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()),  // NOLINT
                                    text.size(), flags, &error, &place, nullptr));
    if (code_->code == nullptr) {
        refuse("tokenizer: the pattern in " + field + " is not a regular expression (" +
                   message_of(error) + " at " + std::to_string(place) + "); correct it",
               field, std::string{regex});
    }
    // Without machine code it is interpreted, which is slower and gives the same.
    (void)pcre2_jit_compile(code_->code.get(), PCRE2_JIT_COMPLETE);
}

Pattern Pattern::literal(std::string_view text) {
    Pattern pattern;
    pattern.literal_ = text;
    return pattern;
}

void Pattern::find_all(std::string_view text, std::vector<Piece>& matches) const {
    if (!code_) {
        if (literal_.empty()) return;
        for (auto at = text.find(literal_); at != std::string_view::npos;
             at = text.find(literal_, at + literal_.size())) {
            matches.push_back({.begin = at, .end = at + literal_.size()});
        }
        return;
    }
    auto const& workspace = Workspace::get();
    auto* const context = workspace.context(text.size());
    auto const* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());  // NOLINT
    auto last_end = std::string_view::npos;
    for (std::size_t at = 0; at <= text.size();) {
        auto const found = pcre2_match(code_->code.get(), subject, text.size(), at,
                                       PCRE2_NO_UTF_CHECK, workspace.data(), context);
        if (found == PCRE2_ERROR_NOMATCH) return;
        if (found < 0) {
            refuse("encode: the pattern in " + field_ + " gave up on this text (" +
                       message_of(found) + "); use a pattern that backtracks less",
                   field_);
        }
        auto const* const place = pcre2_get_ovector_pointer(workspace.data());
        auto const begin = place[0];
        auto const end = place[1];
        if (begin >= end && end == last_end) {
            // An empty match beside the last one does not count.
            at = end < text.size() ? end + utf8_length(static_cast<unsigned char>(text[end]))
                                   : end + 1;
            continue;
        }
        matches.push_back({.begin = std::min(begin, end), .end = end});
        at = last_end = end;
    }
}

}  // namespace tinkxx::text
