#pragma once

#include "net/address/url.hpp"
#include "net/dial/dialer.hpp"
#include "net/http/header_block.hpp"
#include "net/transport/connection.hpp"
#include "net/transport/exchange.hpp"
#include "net/transport/pool.hpp"

#include "base/loop/event_loop.hpp"
#include "base/runtime/runtime_core.hpp"

#include <tinkxx/net_transport.hpp>

#include <array>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tinkxx::net {

/// An origin that requests went to, with its pools.
struct Site {
    Origin origin{};
    std::string authority{};
    std::string name{};  ///< "https://host:port", for messages and comparison
    std::array<std::unique_ptr<Pool>, group_count> pools{};
};

/// The network transport: finds a pool for each request and keeps what all pools share.
class NetTransport final : public Transport,
                           public detail::Resident,
                           private base::TurnEnd,
                           private Timer {
public:
    /// Given what went wrong for want of a file descriptor.
    using OnShortage = std::function<void(std::string const& failure)>;

    /// Throws `ValidationError` for options that cannot work.
    NetTransport(base::EventLoop& loop, NetOptions options, std::unique_ptr<Connector> connector,
                 OnShortage on_shortage = {});
    ~NetTransport() override;

    Call start(Request request, ReplySink& sink) override;
    void cancel(Call call) noexcept override;
    void pause(Call call, bool on) noexcept override;
    [[nodiscard]] Seen seen(Call call) const noexcept override;
    void discard(Call call) noexcept override;
    void drain(TimePoint deadline) noexcept override;
    void on_shutdown() noexcept override;

    [[nodiscard]] NetStats stats() const noexcept;

    // For exchanges, pools and connections.
    base::EventLoop& loop() noexcept { return loop_; }
    NetOptions const& options() const noexcept { return options_; }
    Connector& connector() noexcept { return *connector_; }
    HeaderCache& header_cache() noexcept { return header_cache_; }
    std::span<char> read_buffer() noexcept { return read_buffer_; }
    /// Empty, but with memory for whoever has something to write; to be given back empty.
    std::string& spare_output() noexcept { return spare_output_; }
    std::minstd_rand& chance() noexcept { return chance_; }
    /// The site of an absolute URL, and where its target begins in it; null with a reason.
    Site* find_site(std::string_view url, std::size_t& target_begin, std::string& problem);
    Pool& pool_of(Site& site, Purpose purpose);
    [[nodiscard]] bool draining() const noexcept { return draining_; }

    /// A connection could not be opened for want of a file descriptor: says so, and gives up one
    /// that nothing uses, if there is one.
    bool no_descriptor(std::string const& failure);
    /// Ends `exchange` at the end of this turn.
    void fail_later(Call call, DialFailure failure);
    void resume_later(Exchange& exchange);
    /// Keeps the ended exchange until the end of this turn, or until a connection begins to read.
    void retire(Exchange& exchange) noexcept;
    /// Frees exchanges that have ended, while they are in the caches. Not from inside one's call.
    void free_ended() noexcept { ended_exchanges_.clear(); }
    void retire(std::unique_ptr<Connection> connection) noexcept;
    void retire(std::unique_ptr<Dial> dial) noexcept;

private:
    struct Later {
        Call call{};
        bool fails{false};
        DialFailure failure{};
    };
    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept {
            return std::hash<std::string_view>{}(text);
        }
    };

    [[nodiscard]] Exchange* find(Call call) const noexcept;
    void fail_all(FailureKind kind, std::string const& why);
    void forget_unused_sites();
    void on_turn_end() override;
    void on_time() override;  // the end of a drain

    base::EventLoop& loop_;
    NetOptions options_;
    std::unique_ptr<Connector> connector_;
    OnShortage on_shortage_;
    HeaderCache header_cache_;
    std::vector<char> read_buffer_;
    std::string spare_output_;
    std::minstd_rand chance_;
    std::unordered_map<std::string, std::unique_ptr<Site>, TextHash, std::equal_to<>> sites_;
    /// With so many it looks for some that nothing uses.
    static constexpr std::size_t few_sites = 1024;
    std::size_t most_sites_{few_sites};

    static constexpr unsigned slot_bits = 24;
    std::vector<std::unique_ptr<Exchange>> slots_;
    std::vector<std::uint32_t> free_slots_;
    std::uint64_t serial_{0};
    std::vector<Later> later_;
    std::vector<Later> later_now_;
    std::vector<std::unique_ptr<Exchange>> ended_exchanges_;
    std::vector<std::unique_ptr<Connection>> ended_connections_;
    std::vector<std::unique_ptr<Dial>> ended_dials_;
    bool draining_{false};
};

}  // namespace tinkxx::net
