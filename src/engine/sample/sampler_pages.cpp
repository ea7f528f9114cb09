#include "engine/sample/sampler_core.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>
#include <vector>

// Who gets pages. A request is given pages for its prompt and one sample at once, later samples one
// by one, and always as many as they may ever need: a sample that runs never waits for a page.
//
// The party with the fewest pages is served first, and within it the request with the fewest. If
// there is no room, samples of parties that have far more are suspended, the newest first. The
// giver keeps at least as much as the taker then has, or has twice as much as the taker: so it
// cannot take the pages back at once, and a small request finds room beside any number of large
// ones. A request too large for this could wait for ever while smaller ones keep coming. After 256
// steps it gets its pages by force, and keeps them for some tokens.

namespace tinkxx::engine {

namespace {

/// Grants in one step: each computes a first token, or begins a prompt.
constexpr int most_grants = 256;
/// Calls of `make_room` in a step, each of which looks at all pages in use: so many for requests
/// that have nothing yet, and so many for requests that want more.
constexpr int most_looks = 64;
/// Samples and prompts that hold pages, as a multiple of the samples that a step computes. More
/// would only wait for their turns. A party that holds none is admitted all the same.
constexpr std::size_t busy_for_each = 8;
/// Steps for which younger requests may get pages before an older one that has none.
constexpr std::uint64_t due_after = 256;
/// Tokens that it may sample before its pages can be taken from it.
constexpr std::size_t guarded_tokens = 64;

/// No place in a list.
constexpr auto no_place = std::numeric_limits<std::size_t>::max();

/// Whether somebody who has `has` must give up `gain` to one who would then have `then`.
bool must_give(std::size_t has, std::size_t gain, std::size_t then) {
    return has >= gain + then || has >= 2 * then;
}

}  // namespace

void Sampler::Core::reserve(Request& request, std::size_t pages) noexcept {
    committed_ += pages;
    request.used += pages;
    request.party->used += pages;
    assert(committed_ <= pool_.capacity());
}

void Sampler::Core::take_back(Request& request, std::size_t pages) noexcept {
    committed_ -= pages;
    request.used -= pages;
    request.party->used -= pages;
}

std::size_t Sampler::Core::prompt_pages(Request const& request) noexcept {
    return pages_covering(request.ask.prompt.size());
}

std::size_t Sampler::Core::all_pages(Request const& request) noexcept {
    return pages_for(request.ask.prompt.size(), request.ask.max_tokens);
}

/// Pages that the next sample needs beside those of the prompt.
std::size_t Sampler::Core::own_pages(Request const& request) noexcept {
    auto const prompt = request.ask.prompt.size();
    if (request.ask.max_tokens == 1) return 0;
    auto own = all_pages(request) - prompt / kv_block_positions;
    bool const last = request.suspended == 0 && request.started + 1 == request.ask.num_samples;
    if (last && prompt % kv_block_positions != 0) --own;  // takes over the prompt's last page
    return own;
}

/// Pages that would let it go on; nothing if it does not need any.
std::optional<std::size_t> Sampler::Core::wanted(Request const& request) noexcept {
    if (request.over) return std::nullopt;
    if (request.all_started()) {
        if (request.suspended == 0) return std::nullopt;
        return all_pages(request);
    }
    auto const next = own_pages(request);
    if (!request.holds) return prompt_pages(request) + next;
    if (!request.track.ready()) return std::nullopt;
    return next > request.reserved ? next - request.reserved : 0;
}

/// The requests that want pages, those with the fewest first: by party, and then by request. A
/// grant changes the place of one request and one party only, so it costs two heap operations.
class Sampler::Core::Wanting {
public:
    explicit Wanting(Core const& core) {
        for (auto const& [name, party] : core.parties_) {
            Line line{.party = party.get()};
            for (auto const& request : party->requests) {
                if (auto const wants = wanted(*request)) {
                    line.requests.push_back(entry(*request, *wants));
                }
                busy_ += request->live + (request->holds ? 1 : 0);
            }
            if (line.requests.empty()) continue;
            std::ranges::make_heap(line.requests, later);
            line.update();
            lines_.push_back(std::move(line));
        }
        std::ranges::make_heap(lines_, behind);
    }

    [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
    [[nodiscard]] Request& first() const noexcept {
        return *lines_.front().requests.front().request;
    }
    /// Samples and prompts that hold pages.
    [[nodiscard]] std::size_t busy() const noexcept { return busy_; }
    /// The first one got what it wanted; it may want more.
    void served() {
        ++busy_;
        std::ranges::pop_heap(lines_, behind);
        auto& line = lines_.back();
        std::ranges::pop_heap(line.requests, later);
        auto& request = *line.requests.back().request;
        line.requests.pop_back();
        if (auto const wants = wanted(request)) {
            line.requests.push_back(entry(request, *wants));
            std::ranges::push_heap(line.requests, later);
        }
        if (line.requests.empty()) {
            lines_.pop_back();
            return;
        }
        line.update();
        std::ranges::push_heap(lines_, behind);
    }
    /// Nothing more can be given to the party of the first one.
    void close_party() {
        std::ranges::pop_heap(lines_, behind);
        lines_.pop_back();
    }

private:
    struct Entry {
        /// What it would have then; 0 if it needs nothing to go on.
        std::size_t then{0};
        std::size_t wants{0};
        RequestId id{0};
        Request* request{nullptr};
    };
    struct Line {
        Party* party{nullptr};
        std::vector<Entry> requests{};
        std::size_t then{0};

        void update() noexcept {
            auto const& best = requests.front();
            then = best.wants == 0 ? 0 : party->used + best.wants;
        }
    };

    static Entry entry(Request& request, std::size_t wants) noexcept {
        return {.then = wants == 0 ? 0 : request.used + wants,
                .wants = wants,
                .id = request.id,
                .request = &request};
    }
    // The older one if both have as much. The first of a heap is the largest.
    static bool later(Entry const& a, Entry const& b) noexcept {
        return std::pair{a.then, a.id} > std::pair{b.then, b.id};
    }
    static bool behind(Line const& a, Line const& b) noexcept {
        return std::pair{a.then, a.requests.front().id} > std::pair{b.then, b.requests.front().id};
    }

    std::vector<Line> lines_{};
    std::size_t busy_{0};
};

Sampler::Core::Request* Sampler::Core::oldest_due() const noexcept {
    if (steps_ - last_due_ < due_after) return nullptr;
    Request* oldest = nullptr;
    for (auto const& [name, party] : parties_) {
        for (auto const& request : party->requests) {
            bool const due = request->passed_over != 0 &&
                             steps_ - request->passed_over >= due_after && wanted(*request);
            if (due && (oldest == nullptr || request->id < oldest->id)) oldest = request.get();
        }
    }
    return oldest;
}

void Sampler::Core::share_pages() {
    RequestId youngest = 0;
    if (auto* const due = oldest_due(); due != nullptr && give(*due, Force::due)) {
        due->guard = guarded_tokens;
        last_due_ = steps_;
    }
    Wanting wanting{*this};
    looks_left_ = {most_looks, most_looks};
    auto const most_busy = busy_for_each * std::max<std::size_t>(options_.decode_tokens, 1);
    for (int grants = 0; grants < most_grants && !wanting.empty();) {
        auto& request = wanting.first();
        // What it wants may have changed since it was lined up, and it may have had to give.
        auto const wants = wanted(request);
        if (!wants) {
            wanting.served();
        } else if (*wants > 0 && wanting.busy() >= most_busy && request.party->used > 0) {
            wanting.close_party();  // more of it would only wait for its turns
        } else if (give(request, Force::no)) {
            youngest = std::max(youngest, request.id);
            ++grants;
            wanting.served();
        } else {
            wanting.close_party();
        }
    }
    if (youngest == 0) return;
    for (auto const& [name, party] : parties_) {
        for (auto const& request : party->requests) {
            if (request->id > youngest) break;
            if (request->passed_over == 0 && request->live == 0 && wanted(*request)) {
                request->passed_over = steps_;
            }
        }
    }
}

bool Sampler::Core::unblock() {
    Request* oldest = nullptr;
    for (auto const& [name, party] : parties_) {
        for (auto const& request : party->requests) {
            if (!wanted(*request)) continue;
            if (oldest == nullptr || request->id < oldest->id) oldest = request.get();
            break;
        }
    }
    return oldest != nullptr && give(*oldest, Force::stuck);
}

bool Sampler::Core::give(Request& request, Force force) {
    auto const pages = *wanted(request);
    if (committed_ + pages > pool_.capacity() && !make_room(request, pages, force)) return false;
    moved_ = true;
    request.passed_over = 0;
    reserve(request, pages);
    if (request.all_started()) {
        resume(request);
        return true;
    }
    if (!request.holds) {
        request.holds = true;
        request.prompt_pages = prompt_pages(request);
        request.reserved = pages - request.prompt_pages;
        return true;
    }
    request.reserved += pages;
    request.reserved -= own_pages(request);
    if (request.suspended > 0) {
        resume(request);
    } else {
        start_sample(request);
    }
    return true;
}

/// What a request would have left if some of it were given up.
struct Sampler::Core::Hypothesis {
    Request* request{nullptr};
    /// The newest last.
    std::vector<Sample*> samples{};
    std::size_t used{0};
    std::size_t sharing{0};

    /// What it gives up next; 0 if it has nothing.
    [[nodiscard]] std::size_t gain() const noexcept {
        if (samples.size() <= 1) return used;
        auto const& newest = *samples.back();
        bool const prompt_too = newest.shares && sharing == 1 && !request->holds;
        return newest.committed + (prompt_too ? request->prompt_pages : 0);
    }
    void give_up() {
        used -= gain();
        if (samples.empty()) return;
        if (samples.back()->shares) --sharing;
        samples.pop_back();
    }
};

bool Sampler::Core::make_room(Request& request, std::size_t pages, Force force) {
    if (force == Force::no && looks_left_[request.used == 0 ? 0 : 1]-- <= 0) return false;
    // First it is found out whether there can be enough, then it is taken.
    std::vector<Hypothesis> cases;
    for (auto const& [name, party] : parties_) {
        party->would_use = party->used;
        if (party->used == 0) continue;
        for (auto const& other : party->requests) {
            other->hypothesis = no_place;
            if (other.get() == &request || other->used == 0) continue;
            if (other->guard > 0 && force != Force::stuck) continue;
            other->hypothesis = cases.size();
            cases.push_back(
                {.request = other.get(), .used = other->used, .sharing = other->sharing});
        }
    }
    request.hypothesis = no_place;
    for (auto const& sample : samples_) {
        if (sample->life != Life::live || sample->request->hypothesis == no_place) continue;
        cases[sample->request->hypothesis].samples.push_back(sample.get());
    }
    for (auto& hypothesis : cases) std::ranges::sort(hypothesis.samples, {}, &Sample::serial);
    auto const victim = [&](bool own_party) {
        Hypothesis* most = nullptr;
        for (auto& hypothesis : cases) {
            auto const& other = *hypothesis.request;
            if ((other.party == request.party) != own_party || hypothesis.used == 0) continue;
            auto const gain = hypothesis.gain();
            bool const fair =
                own_party ? must_give(hypothesis.used, gain, request.used + pages)
                          : must_give(other.party->would_use, gain, request.party->used + pages);
            if (!fair && force == Force::no) continue;
            auto const has = [&](Hypothesis const& one) {
                return std::tuple{one.request->party->would_use, one.used, one.request->id};
            };
            if (most == nullptr || has(*most) < has(hypothesis)) most = &hypothesis;
        }
        return most;
    };
    auto room = pool_.capacity() - committed_;
    std::vector<Request*> givers;
    while (room < pages) {
        auto* most = victim(false);
        if (most == nullptr) most = victim(true);
        if (most == nullptr) return false;
        auto const gain = most->gain();
        most->give_up();
        most->request->party->would_use -= gain;
        room += gain;
        givers.push_back(most->request);
    }
    for (auto* const giver : givers) give_up_newest(*giver);
    assert(pool_.capacity() - committed_ >= pages);
    return true;
}

void Sampler::Core::give_up_newest(Request& request) {
    Sample* newest = nullptr;
    for (auto const& sample : samples_) {
        if (sample->request.get() != &request || sample->life != Life::live) continue;
        if (newest == nullptr || newest->serial < sample->serial) newest = sample.get();
    }
    if (newest != nullptr) suspend(*newest);
    // A prompt is of no use to others while none of its samples runs.
    if (request.live == 0 && request.holds) park(request);
}

void Sampler::Core::suspend(Sample& sample) {
    auto& request = *sample.request;
    sample.life = Life::suspended;
    --request.live;
    ++request.suspended;
    drop_pages(sample.track);
    take_back(request, std::exchange(sample.committed, 0));
    if (std::exchange(sample.shares, false)) --request.sharing;
    settle(request);
}

/// Goes on with a suspended sample, for which pages were reserved.
void Sampler::Core::resume(Request& request) {
    Sample* oldest = nullptr;
    for (auto const& sample : samples_) {
        if (sample->request.get() != &request || sample->life != Life::suspended) continue;
        if (oldest == nullptr || sample->index < oldest->index) oldest = sample.get();
    }
    assert(oldest != nullptr);
    auto& sample = *oldest;
    sample.committed = request.all_started() ? all_pages(request) : own_pages(request);
    sample.life = Life::live;
    sample.serial = ++last_serial_;
    --request.suspended;
    ++request.live;
    if (request.all_started()) return;
    // The prompt is there for the samples that are still to start.
    auto const& prompt = request.track;
    auto& track = sample.track;
    track.length = prompt.length;
    track.pages = prompt.pages;
    track.node = prompt.node;
    bool const partial = track.length % kv_block_positions != 0;
    for (auto& page : track.pages) {
        if (partial && &page == &track.pages.back()) {
            page = pool_.copy(page);
        } else {
            pool_.hold(page);
        }
    }
    sample.shares = true;
    ++request.sharing;
}

/// Takes everything back from a request none of whose samples runs. It is admitted again later.
void Sampler::Core::park(Request& request) {
    drop_pages(request.track);
    request.holds = false;
    take_back(request, std::exchange(request.reserved, 0));
    settle(request);
}

void Sampler::Core::drop_pages(Track& track) {
    for (auto const page : track.pages) pool_.release(page);
    track.pages.clear();
    track.length = 0;
    track.node = 0;
}

/// Takes back what was reserved for the prompt, once nobody uses it.
void Sampler::Core::settle(Request& request) noexcept {
    if (request.holds || request.sharing > 0) return;
    take_back(request, std::exchange(request.prompt_pages, 0));
}

void Sampler::Core::release(Sample& sample) {
    if (sample.life == Life::over) return;
    auto& request = *sample.request;
    --(sample.life == Life::live ? request.live : request.suspended);
    sample.life = Life::over;
    ended_ = true;
    drop_pages(sample.track);
    take_back(request, std::exchange(sample.committed, 0));
    if (std::exchange(sample.shares, false)) --request.sharing;
    settle(request);
}

void Sampler::Core::release(Request& request) {
    if (request.over) return;
    request.over = true;
    ended_ = true;
    for (auto const& sample : samples_) {
        if (sample->request.get() == &request) release(*sample);
    }
    if (request.holds) park(request);
    assert(request.used == 0);
}

}  // namespace tinkxx::engine
