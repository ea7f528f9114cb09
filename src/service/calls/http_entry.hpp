#pragma once

#include <tinkxx/status.hpp>

#include "service/core/call_book.hpp"
#include "service/http/http_call.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace tinkxx::service {

/// The place of a plain HTTP call among the pending: a member of what makes it. Loop thread only.
class HttpEntry final : private PendingEntry {
public:
    /// `book` is null for a call that is part of another, which is listed itself. The rest outlives
    /// it.
    HttpEntry(std::shared_ptr<CallBook> book, HttpContext const& http,
              HttpCall const& call) noexcept
        : book_{std::move(book)}, http_{&http}, call_{&call} {}

    /// The call is about to begin.
    void begin(std::shared_ptr<HttpOrder const> order);
    /// It is over. Harmless to repeat.
    void end() noexcept;
    /// Tells observers if it stands somewhere else than before.
    void look();
    /// Pieces of its body come in.
    void flow();

private:
    [[nodiscard]] OperationStatus status(TimePoint now) const override;
    /// Its client ends it by other means.
    void on_close() noexcept override {}
    [[nodiscard]] Stage stage() const noexcept;

    std::shared_ptr<CallBook> const book_;
    HttpContext const* const http_;
    HttpCall const* const call_;
    std::shared_ptr<HttpOrder const> order_{};  ///< while under way
    std::uint64_t id_{0};
    TimePoint started_{};
    TimePoint shown_since_{};
    std::optional<Stage> told_{};  ///< what observers know
    bool flows_{false};
};

}  // namespace tinkxx::service
