#include "local/api/sending.hpp"

#include "local/api/ask.hpp"

#include <optional>
#include <utility>

namespace tinkxx::local {

namespace {

/// What may wait for the other side to take it.
constexpr std::size_t enough = std::size_t{1} << 20U;
constexpr std::size_t piece_bytes = std::size_t{256} << 10U;

class Text final : public Sending {
public:
    Text(std::shared_ptr<Answer> answer, std::shared_ptr<std::string const> body)
        : Sending{std::move(answer)}, body_{std::move(body)} {}

    Result<std::string> next() override {
        auto piece = body_->substr(at_, piece_bytes);
        at_ += piece.size();
        return piece;
    }

private:
    std::shared_ptr<std::string const> body_;
    std::size_t at_{0};
};

}  // namespace

void Sending::watch() {
    if (std::exchange(watched_, true)) return;
    answer_->on_gone([self = weak_from_this()] {
        if (auto const still = self.lock()) still->answer_.reset();
    });
}

bool Sending::deliver(Result<std::string> piece) {
    if (!answer_) return false;
    if (!piece) {
        // The connection ends early, so the reader notices that something is missing.
        answer_.reset();
        return false;
    }
    if (piece->empty()) {
        std::exchange(answer_, {})->done();
        return false;
    }
    answer_->data(*std::move(piece));
    return true;
}

void Sending::pump() {
    if (!answer_) return;
    watch();
    while (answer_->pending() < enough) {
        if (!deliver(next())) return;
    }
    answer_->on_drained([self = shared_from_this()] { self->pump(); });
}

void Sending::pump_from(Worker& worker, std::weak_ptr<bool> alive) {
    if (!answer_ || alive.expired()) return answer_.reset();
    watch();
    if (answer_->pending() >= enough) {
        return answer_->on_drained([self = shared_from_this(), &worker, alive]() mutable {
            self->pump_from(worker, std::move(alive));
        });
    }
    auto const made = std::make_shared<std::optional<Result<std::string>>>();
    auto const self = shared_from_this();
    worker.run([self, made] { made->emplace(self->next()); },
               [self, made, &worker, alive] {
                   if (self->deliver(*std::move(*made))) self->pump_from(worker, alive);
               });
}

void send_shared(std::shared_ptr<Answer> const& answer, std::string_view content_type,
                 std::shared_ptr<std::string const> const& body) {
    if (body->size() <= piece_bytes) return send_bytes(*answer, 200, content_type, *body);
    answer->head(200, {{"Content-Type", std::string{content_type}}}, body->size());
    std::make_shared<Text>(answer, body)->pump();
}

}  // namespace tinkxx::local
