#include "service/core/call_book.hpp"

#include "service/http/http_context.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

namespace tinkxx::service {

namespace {

void report(std::string const& line) {
    // One call, so that lines of several threads do not mix.
    auto const text = "tinkxx: " + line + '\n';
    (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

CallBook::CallBook(HttpContext& http, ClientConfig const& config, PendingList::Ids ids)
    : http_{http},
      reports_{config.report_pending},
      wants_stages_{std::ranges::any_of(
          http_.config().observers, [](auto const& observer) { return observer->wants_stages(); })},
      ids_{std::move(ids)},
      pending_{ids_} {
    bool const warns = config.warn_of_stalls && http_.logs(LogLevel::warning);
    if (reports_ || warns) {
        pending_.on_first([this] { on_first_pending(); });
    }
}

CallBook::~CallBook() {
    if (stalls_) stalls_->forget(*this);
}

void CallBook::on_first_pending() {
    auto& scheduler = http_.scheduler();
    if (!reports_) {
        if (!stalls_) stalls_ = http_.runtime().part<StallReporter>();
        return stalls_->watch(*this, scheduler);
    }
    if (!armed()) scheduler.arm(*this, scheduler.now() + between_reports, Precision::coarse);
}

void CallBook::on_time() {
    if (pending_.size() == 0) return;
    auto const now = http_.scheduler().now();
    if (auto const awaited = pending_.awaited(); awaited.oldest != nullptr) {
        auto line = std::to_string(awaited.count) +
                    " pending; the oldest: " + to_string(awaited.oldest->status(now));
        http_.runtime().run_callback([line = std::move(line)] { report(line); });
    }
    http_.scheduler().arm(*this, now + between_reports, Precision::coarse);
}

StallReporter::Topic CallBook::topic() const {
    auto const& config = http_.config();
    bool const own = config.log && config.log.target_type() != stderr_log().target_type();
    return {.server = config.endpoint.key(), .log = own ? ids_.get() : nullptr};
}

void CallBook::warn(std::string const& line) { http_.log(LogLevel::warning, line); }

}  // namespace tinkxx::service
