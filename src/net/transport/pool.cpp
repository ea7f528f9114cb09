#include "net/transport/pool.hpp"

#include "base/common/prefetch.hpp"
#include "net/transport/http1_connection.hpp"
#include "net/transport/http2_connection.hpp"
#include "net/transport/net_transport.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace tinkxx::net {
namespace {

constexpr std::size_t max_http1_openings = 64;

// A pool opens so many connections as they are needed, and more if the loop has slept for a quarter
// of this time, or a request has waited for that one.
constexpr std::size_t few_http1_connections = 32;
constexpr std::size_t few_http2_connections = 8;
constexpr std::chrono::milliseconds watch_time{10};
constexpr std::chrono::seconds longest_wait{1};

// Requests of these purposes go one to a connection: a training step is large and must not
// wait behind another, and a token exchange must not share the fate of other calls.
bool is_exclusive(Group group) noexcept { return group == Group::train || group == Group::auth; }

}  // namespace

Group group_of(Purpose purpose) noexcept {
    switch (purpose) {
        case Purpose::sample:
            return Group::sample;
        case Purpose::train:
            return Group::train;
        case Purpose::retrieve:
        case Purpose::completion_poll:
            return Group::poll;
        case Purpose::auth:
            return Group::auth;
        case Purpose::session:
        case Purpose::rest:
        case Purpose::telemetry:
            break;
    }
    return Group::control;
}

// --- LoadIndex --------------------------------------------------------------------------------

void LoadIndex::insert(Connection& connection) noexcept {
    auto const load = std::min<std::uint16_t>(connection.load, max_load - 1);
    connection.bucket = load;
    buckets_[load].push_back(connection);
    used_[load / 64U] |= std::uint64_t{1} << (load % 64U);
}

void LoadIndex::erase(Connection& connection) noexcept {
    auto const load = connection.bucket;
    buckets_[load].erase(connection);
    if (buckets_[load].empty()) used_[load / 64U] &= ~(std::uint64_t{1} << (load % 64U));
}

Connection* LoadIndex::least() const noexcept {
    for (std::size_t word = 0; word < used_.size(); ++word) {
        if (used_[word] != 0) {
            auto const bit = static_cast<std::size_t>(std::countr_zero(used_[word]));
            return buckets_[word * 64 + bit].back();
        }
    }
    return nullptr;
}

Connection* LoadIndex::most() const noexcept {
    for (std::size_t word = used_.size(); word-- > 0;) {
        if (used_[word] != 0) {
            auto const bit = 63U - static_cast<unsigned>(std::countl_zero(used_[word]));
            return buckets_[word * 64 + bit].back();
        }
    }
    return nullptr;
}

// --- opening connections ----------------------------------------------------------------------

/// One connection being opened, with its time limit.
class Pool::Opening final : public DialOwner, public Timer {
public:
    Opening(Pool& pool, std::chrono::milliseconds limit) : pool_{pool}, limit_{limit} {
        auto& loop = pool.transport_.loop();
        if (limit.count() > 0) loop.arm(*this, loop.now() + limit, Precision::coarse);
        dial_ = pool.transport_.connector().dial(pool.site_.origin, pool.version_, *this);
    }
    void on_connected(std::unique_ptr<Stream> stream) override {
        pool_.opened(*this, std::move(stream));
    }
    void on_dial_failed(DialFailure failure) override { pool_.open_failed(*this, failure); }
    void on_no_descriptor(std::string message) override { pool_.no_descriptor(*this, message); }
    void on_time() override {
        pool_.open_failed(
            *this, {.kind = FailureKind::connect_timeout,
                    .message = "no connection within " + std::to_string(limit_.count()) + " ms"});
    }
    std::unique_ptr<Dial> take_dial() noexcept { return std::move(dial_); }

private:
    Pool& pool_;
    std::chrono::milliseconds limit_;
    std::unique_ptr<Dial> dial_;
};

Pool::Pool(NetTransport& transport, Site& site, Group group)
    : transport_{transport},
      site_{site},
      group_{group},
      exclusive_{is_exclusive(group)},
      version_{transport.options().http_version} {
    if (!site.origin.tls && version_ != HttpVersion::http2) protocol_ = Protocol::http1;

    std::uint32_t members = 0;
    for (std::size_t i = 0; i < purpose_count; ++i) {
        if (group_of(static_cast<Purpose>(i)) == group) ++members;
    }
    auto const limit = static_cast<std::uint32_t>(transport.options().max_http1_connections);
    auto const others = members - 1;
    auto const kept = std::min<std::uint32_t>(8, limit / (2 * members));
    for (std::size_t i = 0; i < purpose_count; ++i) {
        auto const asked = transport.options().http1_quota[i];
        quota_[i] = asked > 0 ? std::min(static_cast<std::uint32_t>(asked), limit)
                              : std::max<std::uint32_t>(1, limit - others * kept);
    }
}

Pool::~Pool() = default;

std::uint16_t Pool::stream_limit() const noexcept { return exclusive_ ? 1 : stream_limit_; }

bool Pool::unused() const noexcept {
    return connections_.empty() && openings_.empty() && waiting_count_ == 0 && active_count_ == 0;
}

void Pool::add_stats(NetStats& stats) const noexcept {
    stats.connections += connections_.size();
    stats.dialing += openings_.size();
    stats.active += active_count_;
    stats.waiting += waiting_count_;
    stats.opened += opened_count_;
}

void Pool::submit(Exchange& exchange) {
    if (waiting_count_ == 0 && place(exchange)) return;
    waiting_[static_cast<std::size_t>(exchange.request().purpose)].push_back(exchange);
    ++waiting_count_;
    // How many connections to open is decided once for all requests of this turn.
    transport_.loop().at_turn_end(*this);
}

void Pool::withdraw(Exchange& exchange) noexcept {
    waiting_[static_cast<std::size_t>(exchange.request().purpose)].erase(exchange);
    --waiting_count_;
}

void Pool::released(Exchange& exchange) noexcept {
    --active_[static_cast<std::size_t>(exchange.request().purpose)];
    --active_count_;
    if (waiting_count_ > 0) transport_.loop().at_turn_end(*this);
}

bool Pool::place(Exchange& exchange) {
    auto const purpose = static_cast<std::size_t>(exchange.request().purpose);
    if (protocol_ == Protocol::http1 && active_[purpose] >= quota_[purpose]) return false;
    // Waiting polls are cheap where they are; fresh work goes where there is most room.
    auto* const connection = group_ == Group::poll ? with_room_.most() : with_room_.least();
    if (connection == nullptr) return false;
    ++active_[purpose];
    ++active_count_;
    connection->start(exchange);
    return true;
}

Exchange* Pool::next_waiting() noexcept {
    for (std::size_t i = 0; i < purpose_count; ++i) {
        auto const purpose = (turn_of_ + i) % purpose_count;
        if (waiting_[purpose].empty()) continue;
        if (protocol_ == Protocol::http1 && active_[purpose] >= quota_[purpose]) continue;
        turn_of_ = (purpose + 1) % purpose_count;
        return waiting_[purpose].front();
    }
    return nullptr;
}

// Those that wait have left the caches: the next one's parts are fetched, and the one behind it.
void Pool::prefetch_behind(Exchange const& exchange) noexcept {
    auto const* const next = exchange.links.next;
    if (next == nullptr) return;
    next->prefetch_request();
    if (next->links.next != nullptr) base::prefetch(next->links.next, sizeof *next);
}

void Pool::on_turn_end() { fill(); }

void Pool::on_time() { fill(); }

void Pool::fill() {
    // What is begun in HTTP/2 is held by nghttp2 until its connection sends, at the end of the
    // turn: not too much of it at once, but for the connections to have their turns in between.
    constexpr int most = 64;
    for (int begun = 0; waiting_count_ > 0 && with_room_.least() != nullptr; ++begun) {
        if (begun == most) return transport_.loop().at_turn_end(*this);
        auto* const exchange = next_waiting();
        if (exchange == nullptr) break;
        prefetch_behind(*exchange);
        withdraw(*exchange);
        if (!place(*exchange)) {
            waiting_[static_cast<std::size_t>(exchange->request().purpose)].push_front(*exchange);
            ++waiting_count_;
            break;
        }
    }
    open_connections();
}

std::size_t Pool::wanted_connections() const noexcept {
    if (waiting_count_ == 0) return 0;
    auto const open = connections_.size();
    auto const& options = transport_.options();
    if (protocol_ == Protocol::unknown) return open == 0 ? 1 : 0;
    if (protocol_ == Protocol::http1) {
        auto const most = static_cast<std::size_t>(
            std::min(options.max_http1_connections, options.max_connections));
        std::size_t startable = 0;
        for (std::size_t i = 0; i < purpose_count; ++i) {
            startable += std::min<std::size_t>(waiting_[i].size(),
                                               quota_[i] > active_[i] ? quota_[i] - active_[i] : 0);
        }
        return std::min({startable, most - std::min(most, open), max_http1_openings});
    }
    if (stream_limit_zero_) return open == 0 ? 1 : 0;
    auto const most = static_cast<std::size_t>(options.max_connections);
    auto const needed = (waiting_count_ + stream_limit() - 1) / stream_limit();
    // Connections whose settings are still on the way will take their share.
    auto const coming = open - std::min(open, ready_);
    auto const growth = std::max<std::size_t>(1, ready_);
    return std::min({needed - std::min(needed, coming), growth - std::min(growth, coming),
                     most - std::min(most, open)});
}

/// Whether those who wait would be served sooner by more connections. Not if the loop can hardly
/// keep up with what it has: then they would only make for more that is begun and not done, and has
/// left the caches until it is.
bool Pool::more_would_help() noexcept {
    auto const few = protocol_ == Protocol::http2 ? few_http2_connections : few_http1_connections;
    if (connections_.size() + openings_.size() < few) return true;
    auto& loop = transport_.loop();
    auto const now = loop.now();
    auto const* const first = next_waiting();
    if (first != nullptr && now - first->started() > longest_wait) return true;
    if (!watched_since_ || now - *watched_since_ >= watch_time) {
        auto const slept = loop.slept() - std::exchange(slept_before_, loop.slept());
        auto const since = std::exchange(watched_since_, now);
        // A watch that is long over tells of a time in which nobody waited.
        if (since && now - *since < 2 * watch_time && slept * 4 >= now - *since) return true;
    }
    if (!armed()) loop.arm(*this, *watched_since_ + watch_time, Precision::exact);
    return false;
}

void Pool::open_connections() {
    auto const wanted = wanted_connections();
    if (wanted <= openings_.size()) return;
    auto const now = transport_.loop().now();
    if (now < no_opening_before_) {
        if (!armed()) transport_.loop().arm(*this, no_opening_before_, Precision::exact);
        return;
    }
    if (!more_would_help()) return;
    auto const* first = waiting_count_ > 0 ? next_waiting() : nullptr;
    auto const limit = first != nullptr ? first->request().timeouts.connect : Timeouts{}.connect;
    while (openings_.size() < wanted) {
        openings_.push_back(std::make_unique<Opening>(*this, limit));
    }
}

void Pool::drop(Opening& opening) noexcept {
    auto const at = std::find_if(openings_.begin(), openings_.end(),
                                 [&](auto const& other) { return other.get() == &opening; });
    // The dial may be on the stack: it is deleted at the end of the turn.
    transport_.retire(opening.take_dial());
    std::swap(*at, openings_.back());
    openings_.pop_back();
}

void Pool::opened(Opening& opening, std::unique_ptr<Stream> stream) {
    drop(opening);
    failures_in_row_ = 0;
    starved_ = false;
    ++opened_count_;
    bool const http2 =
        version_ == HttpVersion::http2 ||
        (version_ == HttpVersion::automatic && site_.origin.tls && stream->alpn() == "h2");
    protocol_ = http2 ? Protocol::http2 : Protocol::http1;
    std::unique_ptr<Connection> connection;
    if (http2) {
        connection = std::make_unique<Http2Connection>(*this, std::move(stream));
    } else {
        connection = std::make_unique<Http1Connection>(*this, std::move(stream));
    }
    connection->place = connections_.size();
    connections_.push_back(std::move(connection));
    if (!http2) ready(*connections_.back());
    transport_.loop().at_turn_end(*this);
}

/// True if other connections, open or on their way, serve those who wait.
bool Pool::others_remain() noexcept {
    if (connections_.empty() && openings_.empty()) return false;
    pause_openings(std::chrono::milliseconds{50 << std::min(failures_in_row_, 5)});
    ++failures_in_row_;
    return true;
}

/// Tries for more connections after a while.
void Pool::pause_openings(std::chrono::milliseconds pause) noexcept {
    no_opening_before_ = transport_.loop().now() + pause;
    transport_.loop().at_turn_end(*this);
}

/// Nobody is at fault whom a failure would tell anything: those who wait go on waiting.
void Pool::no_descriptor(Opening& opening, std::string const& message) {
    drop(opening);
    starved_ = true;
    // A try costs a system call, so that there is no need to be patient; what was given up has its
    // descriptor until the end of the turn.
    bool const given_up = transport_.no_descriptor(message);
    pause_openings(std::chrono::milliseconds{given_up ? 1 : 50});
}

bool Pool::spare_one() {
    auto* const idle = waiting_count_ == 0 ? with_room_.least() : nullptr;
    if (idle == nullptr || idle->load > 0) return false;
    idle->close(FailureKind::closed, "its file descriptor is needed elsewhere");
    return true;
}

void Pool::open_failed(Opening& opening, DialFailure const& failure) {
    drop(opening);
    if (others_remain()) return;
    // Only those who wait now: a sink may start further requests, and they deserve a try.
    std::vector<Call> refused;
    refused.reserve(waiting_count_);
    for (auto& queue : waiting_) {
        for (auto* exchange = queue.front(); exchange != nullptr; exchange = exchange->links.next) {
            refused.push_back(exchange->call());
        }
    }
    for (auto const call : refused) transport_.fail_later(call, failure);
}

// Each who waits goes through `lost`, which bounds how often this can repeat: a server that
// accepts and hangs up is otherwise dialled in an endless loop.
void Pool::lost_before_use(FailureKind kind, std::string const& why) {
    if (others_remain()) return;
    std::vector<Exchange*> all;
    all.reserve(waiting_count_);
    for (auto& queue : waiting_) {
        for (auto* exchange = queue.front(); exchange != nullptr; exchange = exchange->links.next) {
            all.push_back(exchange);
        }
    }
    for (auto* const exchange : all) {
        if (!exchange->ended()) exchange->lost(kind, why, Seen::no);
    }
}

void Pool::close_all(FailureKind kind, std::string const& why) {
    for (auto& opening : openings_) transport_.retire(opening->take_dial());
    openings_.clear();
    while (!connections_.empty()) connections_.back()->close(kind, why);
}

// --- what connections tell --------------------------------------------------------------------

void Pool::set_room(Connection& connection, std::uint16_t room) noexcept {
    if (connection.by_load.linked()) with_room_.erase(connection);
    if (room > 0) {
        with_room_.insert(connection);
        if (waiting_count_ > 0) transport_.loop().at_turn_end(*this);
    }
}

void Pool::learned_stream_limit(std::uint32_t limit) noexcept {
    auto const ours = static_cast<std::uint32_t>(
        std::min<int>(transport_.options().max_streams_per_connection, LoadIndex::max_load));
    stream_limit_zero_ = limit == 0;
    stream_limit_ = static_cast<std::uint16_t>(std::max<std::uint32_t>(1, std::min(limit, ours)));
}

void Pool::ready(Connection& connection) noexcept {
    ++ready_;
    connection.was_ready = true;
    if (waiting_count_ > 0) transport_.loop().at_turn_end(*this);
}

void Pool::closed(Connection& connection) noexcept {
    if (connection.by_load.linked()) with_room_.erase(connection);
    auto& place = connections_[connection.place];
    std::swap(place, connections_.back());
    place->place = connection.place;
    auto owned = std::move(connections_.back());
    connections_.pop_back();
    if (connection.was_ready && --ready_ == 0) bare_since_ = transport_.loop().now();
    transport_.retire(std::move(owned));
    if (waiting_count_ > 0) transport_.loop().at_turn_end(*this);
}

void Pool::fall_back_to_http1() noexcept {
    if (version_ == HttpVersion::automatic) version_ = HttpVersion::http1;
}

}  // namespace tinkxx::net
