#pragma once

#include <tinkxx/future.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/types/download.hpp>
#include <tinkxx/types/timestamp.hpp>

#include "files/download_folder.hpp"
#include "files/extraction.hpp"
#include "service/calls/http_stream_call.hpp"
#include "service/calls/promise_call.hpp"
#include "service/common/alarm.hpp"
#include "service/rest/content_range.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tinkxx::service {

/// Where the files of a checkpoint can be fetched.
struct DownloadLinks {
    /// By name; an archive has the name "".
    std::map<std::string, std::string> urls{};
    Timestamp expires{};
};

/// What is fetched, and how.
struct DownloadOrder {
    /// What it is called in messages and in the marker of its folder.
    std::string what{};
    DownloadOptions options{};
    /// Whether it is one archive, to be taken apart.
    bool archive{false};
    /// Asks for the links. On the loop.
    std::function<Future<DownloadLinks>()> links{};
};

/// Fetches the files of a checkpoint in pieces, several at once, and goes on with what is left of
/// an earlier try. Files are written on the callback executor, decisions are made on the loop.
class DownloadCall final : public PromiseCall<DownloadedCheckpoint> {
public:
    /// With less than this left, links are asked for again (R-REST-12).
    static constexpr std::chrono::minutes least_left{5};
    /// Failures in a row, without anything that came in between.
    static constexpr int most_failures = 10;
    /// Links are not asked for more often, should they never last as long.
    static constexpr std::chrono::seconds between_links{60};

    DownloadCall(Promise<DownloadedCheckpoint> promise, std::shared_ptr<ClientCore> core,
                 std::string name, Runtime const& runtime, DownloadOrder order);

    using SessionCall::set_call;

private:
    /// What the executor works on; it outlives the call while a task runs.
    struct Work;
    /// A request for a part of a file, or for all of it.
    struct Stream;
    struct File;
    /// How a stream ended.
    struct Ended;

    void go() override;
    void ask_for_links();
    void got_links(Result<DownloadLinks> links);
    void open_folder();
    void opened(Result<void> outcome);
    /// Starts as many streams as may be.
    void pump();
    [[nodiscard]] bool links_expire() const;
    [[nodiscard]] bool start_next(File& file);
    void start(File& file, std::optional<std::size_t> piece);
    [[nodiscard]] HttpOrder order_for(File const& file, Stream const& stream) const;
    void restart_if_idle(File& file);
    void tell_total();
    void announce(File& file, Head const& head);
    void on_end(std::shared_ptr<Stream> const& stream, Ended const& ended);
    void on_failed(Stream const& stream, Error const& error);
    void finish();
    void finish_step();
    /// Runs `work` on the executor and `then` with its result on the loop, if the call still goes
    /// on.
    void elsewhere(std::function<Result<void>()> work, std::function<void(Result<void>)> then);

    void drop() noexcept override;
    Stage stage() const noexcept override;
    void describe(OperationStatus& status, TimePoint now) const override;

    std::shared_ptr<detail::CallContext> const runtime_;
    DownloadOrder order_;
    std::shared_ptr<Work> const work_;

    DownloadLinks links_{};
    int links_number_{0};
    Future<void> asked_{};  ///< for links
    TimePoint asked_at_{};
    bool asking_{false};
    bool renewed_{false};  ///< since anything came
    std::vector<std::shared_ptr<File>> files_{};
    std::vector<std::shared_ptr<Stream>> streams_{};
    int failures_{0};
    bool finishing_{false};
    std::string waits_for_{};
    TimePoint until_{};
    Alarm<DownloadCall> again_{*this, &DownloadCall::pump};
};

}  // namespace tinkxx::service
