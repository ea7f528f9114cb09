#include <tinkxx/net_transport.hpp>

#include "base/loop/loop_rule.hpp"
#include "base/runtime/loop_owned.hpp"
#include "net/stream/descriptors.hpp"
#include "net/transport/net_transport.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace tinkxx {
namespace net {
namespace {

constexpr std::size_t read_buffer_bytes = std::size_t{64} * 1024;

[[noreturn]] void refuse(std::string field, std::string value, std::string const& rule) {
    ErrorDetails details{.kind = ErrorKind::validation};
    details.message = "NetOptions::" + field + " is " + value + "; " + rule;
    details.field = std::move(field);
    details.value = std::move(value);
    Error{std::move(details)}.raise();
}

NetOptions checked(NetOptions options) {
    auto const positive = [](char const* field, auto value) {
        if (value <= 0) refuse(field, std::to_string(value), "it must be greater than 0");
    };
    auto const not_negative = [](char const* field, auto value) {
        if (value < 0) refuse(field, std::to_string(value), "it must not be negative");
    };
    positive("max_streams_per_connection", options.max_streams_per_connection);
    positive("max_http1_connections", options.max_http1_connections);
    positive("max_connections", options.max_connections);
    positive("idle_timeout", options.idle_timeout.count());
    not_negative("ping_interval", options.ping_interval.count());
    if (options.ping_interval.count() > 0) positive("ping_timeout", options.ping_timeout.count());
    not_negative("connection_attempt_delay", options.connection_attempt_delay.count());
    not_negative("max_redirects", options.max_redirects);
    if (options.max_header_bytes < 1024) {
        refuse("max_header_bytes", std::to_string(options.max_header_bytes),
               "it must be at least 1024");
    }
    for (auto const quota : options.http1_quota) not_negative("http1_quota", quota);
    return options;
}

}  // namespace

NetTransport::NetTransport(base::EventLoop& loop, NetOptions options,
                           std::unique_ptr<Connector> connector, OnShortage on_shortage)
    : loop_{loop},
      options_{checked(std::move(options))},
      connector_{std::move(connector)},
      on_shortage_{std::move(on_shortage)},
      read_buffer_(read_buffer_bytes) {}

NetTransport::~NetTransport() {
    // Calls must not outlive the transport; whoever still has one is not told any more.
    for (auto& exchange : slots_) {
        if (exchange) exchange->cancel();
    }
    for (auto& [key, site] : sites_) {
        for (auto& pool : site->pools) {
            if (pool) pool->close_all(FailureKind::closed, "the transport was closed");
        }
    }
}

Exchange* NetTransport::find(Call call) const noexcept {
    auto const slot = call.id & ((std::uint64_t{1} << slot_bits) - 1);
    if (slot >= slots_.size() || !slots_[slot] || slots_[slot]->call() != call) return nullptr;
    return slots_[slot].get();
}

Call NetTransport::start(Request request, ReplySink& sink) {
    TINKXX_ASSERT_LOOP(loop_);
    if (serial_ == 0) chance_.seed(static_cast<std::uint32_t>(loop_.entropy("net")));
    std::uint32_t slot = 0;
    if (free_slots_.empty()) {
        slot = static_cast<std::uint32_t>(slots_.size());
        slots_.emplace_back();
    } else {
        slot = free_slots_.back();
        free_slots_.pop_back();
    }
    Call const call{(++serial_ << slot_bits) | slot};
    auto& exchange = slots_[slot] =
        std::make_unique<Exchange>(*this, std::move(request), sink, call);
    if (draining_) {
        fail_later(call, {.kind = FailureKind::closed, .message = "the transport is shut down"});
    } else {
        exchange->begin();
    }
    return call;
}

void NetTransport::cancel(Call call) noexcept {
    TINKXX_ASSERT_LOOP(loop_);
    if (auto* const exchange = find(call)) exchange->cancel();
}

void NetTransport::pause(Call call, bool on) noexcept {
    TINKXX_ASSERT_LOOP(loop_);
    if (auto* const exchange = find(call)) exchange->pause(on);
}

Seen NetTransport::seen(Call call) const noexcept {
    auto* const exchange = find(call);
    if (exchange == nullptr) return Seen::maybe;
    return exchange->connection != nullptr ? exchange->connection->seen(*exchange) : Seen::no;
}

void NetTransport::discard(Call call) noexcept {
    TINKXX_ASSERT_LOOP(loop_);
    auto* const exchange = find(call);
    if (exchange != nullptr && exchange->connection != nullptr) {
        exchange->connection->retire_when_done();
    }
}

void NetTransport::drain(TimePoint deadline) noexcept {
    TINKXX_ASSERT_LOOP(loop_);
    draining_ = true;
    loop_.arm(*this, deadline, Precision::coarse);
}

void NetTransport::on_time() {
    fail_all(FailureKind::closed, "the transport was shut down before the exchange was finished");
}

void NetTransport::on_shutdown() noexcept {
    draining_ = true;
    fail_all(FailureKind::closed, "the runtime was shut down");
    for (auto& [key, site] : sites_) {
        for (auto& pool : site->pools) {
            if (pool) pool->close_all(FailureKind::closed, "the runtime was shut down");
        }
    }
}

void NetTransport::fail_all(FailureKind kind, std::string const& why) {
    std::vector<Call> calls;
    for (auto const& exchange : slots_) {
        if (exchange) calls.push_back(exchange->call());
    }
    for (auto const call : calls) {
        if (auto* const exchange = find(call)) {
            exchange->fail(kind, why, seen(call));
        }
    }
}

bool NetTransport::no_descriptor(std::string const& failure) {
    if (on_shortage_) on_shortage_(failure);
    for (auto& [key, site] : sites_) {
        for (auto& pool : site->pools) {
            if (pool && pool->spare_one()) return true;
        }
    }
    return false;
}

NetStats NetTransport::stats() const noexcept {
    TINKXX_ASSERT_LOOP(loop_);
    NetStats stats;
    for (auto const& [key, site] : sites_) {
        for (auto const& pool : site->pools) {
            if (pool) pool->add_stats(stats);
        }
    }
    return stats;
}

// --- sites --------------------------------------------------------------------------------------

Site* NetTransport::find_site(std::string_view url, std::size_t& target_begin,
                              std::string& problem) {
    auto const scheme_end = url.find("://");
    auto const authority_begin = scheme_end == std::string_view::npos ? 0 : scheme_end + 3;
    target_begin = std::min(url.find_first_of("/?#", authority_begin), url.size());
    auto const prefix = url.substr(0, target_begin);
    if (auto const known = sites_.find(prefix); known != sites_.end()) return known->second.get();

    auto parsed = parse_url(url);
    if (!parsed) {
        problem = parsed.error().what();
        return nullptr;
    }
    if (sites_.size() >= most_sites_) forget_unused_sites();
    auto site = std::make_unique<Site>();
    site->origin = std::move(parsed->origin);
    site->authority = site->origin.authority();
    site->name = (site->origin.tls ? "https://" : "http://") + site->authority;
    return sites_.emplace(std::string{prefix}, std::move(site)).first->second.get();
}

// Redirects can lead to any number of origins; those that nothing uses are let go. So rarely that
// the cost, which grows with all there is, is small for each new origin.
void NetTransport::forget_unused_sites() {
    std::unordered_set<Site const*> used;
    for (auto const& exchange : slots_) {
        if (exchange && exchange->has_site()) used.insert(&exchange->site());
    }
    std::erase_if(sites_, [&](auto const& entry) {
        auto const& site = *entry.second;
        return !used.contains(&site) &&
               std::all_of(site.pools.begin(), site.pools.end(),
                           [](auto const& pool) { return !pool || pool->unused(); });
    });
    most_sites_ = std::max(few_sites, 2 * sites_.size());
}

Pool& NetTransport::pool_of(Site& site, Purpose purpose) {
    auto const group = group_of(purpose);
    auto& pool = site.pools[static_cast<std::size_t>(group)];
    if (!pool) pool = std::make_unique<Pool>(*this, site, group);
    return *pool;
}

// --- work put off to the end of the turn ---------------------------------------------------------

void NetTransport::fail_later(Call call, DialFailure failure) {
    later_.push_back({.call = call, .fails = true, .failure = std::move(failure)});
    loop_.at_turn_end(*this);
}

void NetTransport::resume_later(Exchange& exchange) {
    later_.push_back({.call = exchange.call()});
    loop_.at_turn_end(*this);
}

void NetTransport::retire(Exchange& exchange) noexcept {
    auto const slot = exchange.call().id & ((std::uint64_t{1} << slot_bits) - 1);
    ended_exchanges_.push_back(std::move(slots_[slot]));
    free_slots_.push_back(static_cast<std::uint32_t>(slot));
    loop_.at_turn_end(*this);
}

void NetTransport::retire(std::unique_ptr<Connection> connection) noexcept {
    ended_connections_.push_back(std::move(connection));
    loop_.at_turn_end(*this);
}

void NetTransport::retire(std::unique_ptr<Dial> dial) noexcept {
    ended_dials_.push_back(std::move(dial));
    loop_.at_turn_end(*this);
}

void NetTransport::on_turn_end() {
    later_now_.swap(later_);
    for (auto& item : later_now_) {
        auto* const exchange = find(item.call);
        if (exchange == nullptr) continue;
        if (item.fails) {
            auto& [kind, message, permanent] = item.failure;
            exchange->fail(kind, std::move(message), Seen::no, permanent);
        } else {
            exchange->resume();
        }
    }
    later_now_.clear();
    ended_exchanges_.clear();
    ended_connections_.clear();
    ended_dials_.clear();
}

}  // namespace net

std::shared_ptr<Transport> net_transport(Runtime const& runtime, NetOptions options) {
    auto const& core = runtime.core();
    auto* const loop = core->event_loop();
    if (loop == nullptr) {
        Error{{.kind = ErrorKind::usage,
               .message = "net_transport: this runtime was given a scheduler of its own and has no "
                          "sockets; use a runtime without RuntimeOptions::scheduler, or another "
                          "transport"}}
            .raise();
    }
    core->refuse_if_inherited();
    auto connector = std::make_unique<net::Dialer>(*loop, options);
    auto transport = std::make_unique<net::NetTransport>(
        *loop, std::move(options), std::move(connector),
        [weak = std::weak_ptr{core}](std::string const& failure) {
            auto const on = weak.lock();
            if (!on) return;
            auto line = on->part<net::ShortageNote>()->line(failure, on->scheduler().now());
            if (line) on->log(LogLevel::warning, *std::move(line));
        });
    return base::loop_owned_resident<Transport>(core, std::move(transport));
}

std::shared_ptr<Transport> net_transport(Runtime const& runtime) {
    return net_transport(runtime, NetOptions{});
}

NetStats net_stats(Transport const& transport) noexcept {
    auto const* const net = dynamic_cast<net::NetTransport const*>(&transport);
    return net != nullptr ? net->stats() : NetStats{};
}

}  // namespace tinkxx
