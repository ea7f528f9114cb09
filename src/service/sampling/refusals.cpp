#include "service/sampling/refusals.hpp"

#include "service/text/retry_after.hpp"
#include "wire/session/result_answer.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace tinkxx::service {
namespace {

using std::chrono::nanoseconds;

constexpr std::int64_t small_prompt_bytes = std::int64_t{128} * 1024;
constexpr std::chrono::seconds small_prompt_backoff{1};
constexpr std::chrono::seconds large_prompt_backoff{5};

/// How long the server asks to wait: the first of the three places that makes sense (R-SAMP-31).
std::optional<nanoseconds> backoff_hint(Error const& error, WallTime now) {
    Headers lines;
    for (auto const& [name, value] : error.details().headers) lines.add(name, value);
    if (auto const* text = lines.find("retry-after-ms")) {
        Headers const line{{"retry-after-ms", *text}};
        if (auto const wait = retry_after(line, now, longest_retry_after)) return wait;
        lines.remove("retry-after-ms");
    }
    if (auto const wait = wire::decode_retry_after(error.body()); wait && wait->count() > 0) {
        return std::min<nanoseconds>(*wait, longest_retry_after);
    }
    return retry_after(lines, now, longest_retry_after);
}

}  // namespace

nanoseconds usual_backoff(std::int64_t prompt_bytes) noexcept {
    return prompt_bytes <= small_prompt_bytes ? nanoseconds{small_prompt_backoff}
                                              : nanoseconds{large_prompt_backoff};
}

nanoseconds backoff_after(Error const& refusal, std::int64_t prompt_bytes, WallTime now) {
    return backoff_hint(refusal, now).value_or(usual_backoff(prompt_bytes));
}

bool refuses_new_member(Error const& refusal) {
    constexpr std::string_view names[] = {"topk_sample_logprobs", "target_prompt_logprobs",
                                          "prompt_alt_tokens_k", "prompt_logprobs_last_n",
                                          "record_stability_info"};
    if (refusal.http_status() != 422) return false;
    auto const body = refusal.body();
    return std::ranges::any_of(
        names, [&](std::string_view name) { return body.find(name) != std::string_view::npos; });
}

bool fits_old_members(SampleOptions const& options, bool stability) {
    return options.topk_sample_logprobs == 0 && !options.target_prompt_logprobs &&
           options.prompt_alt_tokens_k == 0 && !options.prompt_logprobs_last_n && !stability;
}

}  // namespace tinkxx::service
