#include "service/core/call_book.hpp"

#include "service/http/http_context.hpp"

#include <algorithm>
#include <utility>

namespace tinkxx::service {

CallBook::CallBook(HttpContext& http, Settings settings)
    : http_{http},
      settings_{std::move(settings)},
      wants_stages_{std::ranges::any_of(
          http_.config().observers, [](auto const& observer) { return observer->wants_stages(); })},
      pending_{settings_.ids} {
    bool const warns = settings_.warn_of_stalls && http_.logs(LogLevel::warning);
    if (settings_.report || warns) {
        pending_.on_first([this] { on_first_pending(); });
    }
}

CallBook::~CallBook() {
    if (stalls_) stalls_->forget(*this);
}

void CallBook::on_first_pending() {
    auto& scheduler = http_.scheduler();
    if (!settings_.report) {
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
        http_.runtime().run_callback(
            [report = settings_.report, line = std::move(line)] { report(line); });
    }
    http_.scheduler().arm(*this, now + between_reports, Precision::coarse);
}

StallReporter::Topic CallBook::topic() const {
    auto const& config = http_.config();
    bool const own = config.log && config.log.target_type() != stderr_log().target_type();
    return {.server = config.endpoint.key(), .log = own ? settings_.ids.get() : nullptr};
}

void CallBook::warn(std::string const& line) { http_.log(LogLevel::warning, line); }

}  // namespace tinkxx::service
