#pragma once

#include "local/api/pieces.hpp"
#include "local/checkpoints/runs.hpp"
#include "local/services/services.hpp"
#include "local/sessions/session_contents.hpp"
#include "local/store/rows.hpp"
#include "local/usage/usage.hpp"
#include "local/weights/folders.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::local {

class WeightsCache;

/// The checkpoints that are kept, by path. Loop thread.
class Checkpoints final : public SessionContents {
public:
    using Map = std::map<TinkerPath, CheckpointRow>;
    using Copies = std::map<std::string, std::string>;

    /// What the checkpoints are made of and told to.
    struct Uses {
        Services& services;
        Runs const& runs;
        Usage& usage;
        Folders& folders;
        WeightsCache& weights;
    };
    /// `copies`: the paths of copies by the keys of the requests that made them.
    Checkpoints(Uses const& uses, Map rows, Copies copies)
        : uses_{uses}, checkpoints_{std::move(rows)}, copies_{std::move(copies)} {}

    // Endpoints.
    [[nodiscard]] MaybeRefused list_run_checkpoints(Ask& ask);
    [[nodiscard]] MaybeRefused list_checkpoints(Ask& ask);
    [[nodiscard]] MaybeRefused delete_checkpoint(Ask& ask);
    [[nodiscard]] MaybeRefused publish(Ask& ask);
    [[nodiscard]] MaybeRefused unpublish(Ask& ask);
    [[nodiscard]] MaybeRefused set_ttl(Ask& ask);
    [[nodiscard]] MaybeRefused weights_info(Ask& ask);
    [[nodiscard]] MaybeRefused storage_usage(Ask& ask);

    /// None if there is no such checkpoint, or it has expired.
    [[nodiscard]] CheckpointRow const* find(TinkerPath const& path) const;
    /// As above, by `tinker://…`.
    [[nodiscard]] Outcome<CheckpointRow const*> find(std::string_view operation,
                                                     std::string const& path) const;
    /// The one that the path of a request names.
    [[nodiscard]] Outcome<CheckpointRow const*> named(Ask const& ask) const;
    /// When a checkpoint with such a time to live expires; none: never.
    [[nodiscard]] Outcome<std::optional<WallTime>> expiry(std::string_view operation,
                                                          std::optional<std::int64_t> ttl) const;
    /// Writes a run with its newest checkpoints.
    void write_run(wire::JsonOut& json, RunRow const& run) const;

    /// Whether a checkpoint has this name, or is being saved under it.
    [[nodiscard]] bool taken(TinkerPath const& path) const;
    /// A checkpoint is being saved under this name, from now until it is released.
    void reserve(TinkerPath const& path) { reserved_.insert(path); }
    void release(TinkerPath const& path) { reserved_.erase(path); }
    /// Makes a checkpoint of a folder that has its temporary name, in place of an older one of the
    /// same path. `more` is committed with it.
    void keep(CheckpointRow const& row, std::string_view event, std::vector<Change> more,
              Store::Written done);
    /// The copy that a request with this key has made; none if there is none.
    [[nodiscard]] std::string const* copy_of(std::string const& key) const;
    void add_copy(std::string const& key, std::string path) { copies_[key] = std::move(path); }
    [[nodiscard]] std::size_t count() const noexcept { return checkpoints_.size(); }

    /// What a sweep has seen so far.
    struct Look {
        Walk<Map> walk;
        std::vector<TinkerPath> expired{};
    };
    [[nodiscard]] Look begin_look() const { return {.walk = Walk{checkpoints_}}; }
    /// Looks at a piece; returns whether that was all.
    [[nodiscard]] bool go_on(Look& look) const;
    /// Removes those that have expired.
    void finish_look(Look const& look);

    [[nodiscard]] bool must_stay(std::string const& session) const override;
    void summarize(std::string const& session, SessionHoldings& summary) const override;

private:
    struct Keeping;

    /// Those of a run, or all if `run` is empty.
    void send_list_of(Ask& ask, std::string run, Page const& page);
    /// Refuses to change a checkpoint while another one is being saved under its name.
    [[nodiscard]] MaybeRefused check_unreserved(std::string_view operation,
                                                TinkerPath const& path) const;
    /// Writes the checkpoint of a request as `change(row)` leaves it, unless that refuses.
    void change(Ask& ask, std::string_view event,
                tinkxx::detail::UniqueFunction<MaybeRefused(CheckpointRow&)> change);
    void forget(std::shared_ptr<Answer> const& answer, TinkerPath const& path,
                std::string_view event, ChangeQueue::Held turn);
    void write_row(std::shared_ptr<Keeping> const& keeping);
    void finish_keeping(std::shared_ptr<Keeping> const& keeping);
    void undo_keeping(std::shared_ptr<Keeping> const& keeping, Result<void> why);

    Uses uses_;
    Map checkpoints_;
    /// Names of checkpoints that are being saved.
    std::set<TinkerPath> reserved_{};
    Copies copies_;
};

}  // namespace tinkxx::local
