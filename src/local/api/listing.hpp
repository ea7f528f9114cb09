#pragma once

#include "local/api/ask.hpp"
#include "local/api/pieces.hpp"
#include "local/api/sending.hpp"
#include "wire/json/json.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tinkxx::local {

/// A page of the rows of a map, those with the largest rank first, as JSON: an object with an array
/// of the rows and whatever `finish` adds.
template <class Map>
struct PageOrder {
    using Key = typename Map::key_type;
    using Row = typename Map::mapped_type;
    struct Page {
        std::size_t total{0};       ///< rows that fit, on all pages
        std::optional<Key> last{};  ///< of this page, if another one follows
    };

    Map const& rows;
    std::string_view name{};  ///< of the array
    std::function<bool(Row const&)> fits{};
    std::function<std::int64_t(Row const&)> rank{};
    /// Only rows that come after this one are listed, none if it is not there.
    std::optional<Key> after{};
    std::int64_t offset{0};
    std::int64_t limit{0};
    std::function<void(wire::JsonOut&, Row const&)> write{};
    std::function<void(wire::JsonOut&, Page const&)> finish{};
};

/// What follows the rows of a list: where it began, and how many there are.
inline auto cursor_of(Page const& asked) {
    return [asked](wire::JsonOut& json, auto const& page) {
        json.key("cursor");
        json.open_object();
        json.member("offset", asked.offset);
        json.member("limit", asked.limit);
        json.member("total_count", page.total);
        json.close_object();
    };
}

/// Makes the page of a listing piece by piece, and sends it. Loop thread.
template <class Map>
class ListAnswer {
public:
    ListAnswer(PageOrder<Map> listing, std::shared_ptr<Answer> answer)
        : listing_{std::move(listing)}, answer_{std::move(answer)}, walk_{listing_.rows} {
        if (listing_.after) {
            auto const found = listing_.rows.find(*listing_.after);
            none_ = found == listing_.rows.end();
            if (!none_) below_ = Ranked{listing_.rank(found->second), found->first};
        }
        json_.open_object();
        json_.key(listing_.name);
        json_.open_array();
    }
    ListAnswer(ListAnswer const&) = delete;
    ListAnswer& operator=(ListAnswer const&) = delete;

    /// Does a piece of the work; returns whether the answer is given.
    bool go_on() {
        if (!collected_) {
            collected_ = none_ || walk_.go_on(rows_at_once, [this](Key const& key, Row const& row) {
                collect(key, row);
            });
            if (!collected_) return false;
            page_.total = found_.size();
        }
        if (!write_rows()) return false;
        json_.close_array();
        if (listing_.finish) listing_.finish(json_, page_);
        json_.close_object();
        send_shared(answer_, "application/json",
                    std::make_shared<std::string const>(std::move(body_)));
        return true;
    }

private:
    using Key = typename Map::key_type;
    using Row = typename Map::mapped_type;
    struct Ranked {
        std::int64_t rank{0};
        Key key{};
        auto operator<=>(Ranked const&) const = default;
    };
    static constexpr std::size_t bytes_at_once = std::size_t{256} << 10U;

    void collect(Key const& key, Row const& row) {
        if (listing_.fits && !listing_.fits(row)) return;
        Ranked ranked{listing_.rank(row), key};
        if (below_ && !(ranked < *below_)) return;
        // A heap, since to sort many rows at once would take too long.
        found_.push_back(std::move(ranked));
        std::ranges::push_heap(found_);
    }

    bool write_rows() {
        auto const begin = body_.size();
        for (std::size_t i = 0; !found_.empty() && at_ < listing_.offset + listing_.limit; ++i) {
            if (i == rows_at_once || body_.size() - begin > bytes_at_once) return false;
            std::ranges::pop_heap(found_);
            auto const key = std::move(found_.back().key);
            found_.pop_back();
            if (at_++ < listing_.offset) continue;
            // It may have gone since it was found.
            auto const still = listing_.rows.find(key);
            if (still == listing_.rows.end()) continue;
            listing_.write(json_, still->second);
            last_ = key;
        }
        if (!found_.empty()) page_.last = last_;
        return true;
    }

    PageOrder<Map> listing_;
    std::shared_ptr<Answer> answer_;
    Walk<Map> walk_;
    std::optional<Ranked> below_{};
    bool none_{false};
    bool collected_{false};
    std::vector<Ranked> found_{};
    std::int64_t at_{0};
    std::optional<Key> last_{};
    typename PageOrder<Map>::Page page_{};
    std::string body_{};
    wire::JsonOut json_{body_};
};

/// Queues the listing among `pieces`; the answer follows when its turn comes.
template <class Map>
void send_list(Pieces& pieces, std::shared_ptr<Answer> answer, PageOrder<Map> listing) {
    auto list = std::make_unique<ListAnswer<Map>>(std::move(listing), std::move(answer));
    pieces.run([list = std::move(list)] { return list->go_on(); });
}

}  // namespace tinkxx::local
