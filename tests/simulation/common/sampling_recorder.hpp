#pragma once

#include <tinkxx/transport.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace tinkxx::simulation {

/// One request as a client made it, and what the client was told.
struct RecordedExchange {
    std::string path{};
    std::string body{};
    /// Of the request alone, without those that many have in common.
    Headers lines{};
    TimePoint started{};
    /// 0: no answer, but a failure.
    int status{0};
    std::optional<FailureKind> failure{};
    Headers headers{};
    std::string answer{};
};

/// Sees every request at the moment when it is made, and every answer just before the client does.
class Traffic {
public:
    virtual void on_request(RecordedExchange const& exchange) = 0;
    virtual void on_answer(RecordedExchange const& exchange) = 0;
    /// The client does not want to know any more.
    virtual void on_withdrawn(RecordedExchange const& exchange) = 0;

protected:
    ~Traffic() = default;
};

/// Stands between one client and its transport, and writes down what passes. Loop thread only.
class Recorder final : public Transport {
public:
    Recorder(Scheduler const& scheduler, std::shared_ptr<Transport> inner, Traffic& traffic)
        : scheduler_{scheduler}, inner_{std::move(inner)}, traffic_{traffic} {}

    [[nodiscard]] std::size_t open() const noexcept { return calls_.size(); }

    Call start(Request request, ReplySink& sink) override {
        auto call = std::make_shared<Passing>(*this, sink);
        auto& exchange = call->exchange;
        auto const authority = request.url.find("://") + 3;
        auto const path = request.url.find('/', authority);
        exchange.path = path == std::string::npos ? "" : request.url.substr(path);
        if (request.body.head) exchange.body += *request.body.head;
        if (request.body.tail) exchange.body += *request.body.tail;
        exchange.lines = request.headers;
        exchange.started = scheduler_.now();
        traffic_.on_request(exchange);
        call->id = inner_->start(std::move(request), *call);
        calls_.emplace(call->id.id, call);
        return call->id;
    }
    void cancel(Call call) noexcept override {
        inner_->cancel(call);
        auto const found = calls_.find(call.id);
        if (found == calls_.end()) return;
        auto const passing = found->second;
        calls_.erase(found);
        traffic_.on_withdrawn(passing->exchange);
    }
    void pause(Call call, bool on) noexcept override { inner_->pause(call, on); }
    void discard(Call call) noexcept override { inner_->discard(call); }
    void drain(TimePoint deadline) noexcept override { inner_->drain(deadline); }

private:
    struct Passing final : ReplySink, std::enable_shared_from_this<Passing> {
        Passing(Recorder& recorder, ReplySink& its_sink) : owner{recorder}, sink{its_sink} {}

        void on_head(Head head) override {
            auto const keep_alive = shared_from_this();
            exchange.status = head.status;
            exchange.headers = head.headers;
            sink.on_head(std::move(head));
        }
        void on_data(std::span<char const> data) override {
            auto const keep_alive = shared_from_this();
            exchange.answer.append(data.data(), data.size());
            sink.on_data(data);
        }
        void on_done(Timing const& timing) override {
            auto const keep_alive = end();
            owner.traffic_.on_answer(exchange);
            sink.on_done(timing);
        }
        void on_failure(Failure failure) override {
            auto const keep_alive = end();
            exchange.status = 0;
            exchange.failure = failure.kind;
            owner.traffic_.on_answer(exchange);
            sink.on_failure(std::move(failure));
        }
        std::shared_ptr<Passing> end() {
            auto self = shared_from_this();
            owner.calls_.erase(id.id);
            return self;
        }

        Recorder& owner;
        ReplySink& sink;
        Call id{};
        RecordedExchange exchange{};
    };

    Scheduler const& scheduler_;
    std::shared_ptr<Transport> inner_;
    Traffic& traffic_;
    std::map<std::uint64_t, std::shared_ptr<Passing>> calls_{};
};

}  // namespace tinkxx::simulation
