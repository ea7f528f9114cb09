#include "local/services/services.hpp"

#include "base/loop/loop_rule.hpp"

#include <array>
#include <utility>

namespace tinkxx::local {

namespace {

// Where CPUs are scarce, the loop goes before those who read bodies and write results, and these
// before those who compute: the server answers however much there is to do.
constexpr int reading_niceness = 5;

std::unique_ptr<Worker> make_worker(ServerOptions const& options, Scheduler& scheduler, Rest rest,
                                    int niceness = 0) {
    if (options.compute == Compute::loop) return loop_worker(scheduler, rest);
    return thread_worker(scheduler, rest, niceness);
}

std::array<std::unique_ptr<Worker>, 2> make_readers(ServerOptions const& options,
                                                    Scheduler& scheduler) {
    return {make_worker(options, scheduler, Rest::drop, reading_niceness),
            make_worker(options, scheduler, Rest::drop, reading_niceness)};
}

}  // namespace

Services::Services(ServerOptions chosen, Scheduler& loop, std::unique_ptr<Home> folder,
                   std::unique_ptr<Database> database)
    : options{std::move(chosen)},
      scheduler{loop},
      home{std::move(folder)},
      store_worker{make_worker(options, loop, Rest::finish)},
      file_worker{make_worker(options, loop, Rest::finish)},
      result_worker{make_worker(options, loop, Rest::drop, reading_niceness)},
      store{std::make_unique<Store>(std::move(database), *store_worker)},
      bodies{options, make_readers(options, loop)},
      turns{loop, options.log},
      lists{loop} {}

Services::~Services() { close(); }

void Services::close() {
    *alive = false;
    engine.reset();
    turns.stop();
    bodies.stop();
    result_worker.reset();
    file_worker.reset();
    results.reset();
    // What is under way is written; what waits for its turn is written here.
    store_worker.reset();
    if (store) store->flush();
}

void Services::log(LogLevel level, std::string const& line) const {
    if (options.log) options.log(level, line);
}

std::string Services::fresh_id() {
    auto const high = scheduler.entropy("local server");
    return uuid_of(high, scheduler.entropy("local server"));
}

MaybeRefused Services::check_accepting(std::string_view operation) const {
    if (!stopping) return {};
    return Refused{503, std::string{operation} + ": the server is stopping"};
}

void Services::commit(std::shared_ptr<Answer> const& answer, std::string_view operation,
                      std::vector<Change> changes, tinkxx::detail::UniqueFunction<void()> written) {
    TINKXX_ASSERT_LOOP(scheduler);
    store->write(std::move(changes),
                 [answer, what = std::string{operation},
                  written = std::move(written)](Result<void> const& outcome) mutable {
                     if (outcome) return written();
                     if (answer) send_refusal(*answer, not_written(what, outcome.error()));
                 });
}

std::string uuid_of(std::uint64_t high, std::uint64_t low) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (auto bits : {high, low}) {
        for (int i = 0; i < 16; ++i, bits >>= 4U) text += digits[bits & 15U];
    }
    text[12] = '4';
    text[16] = digits[8U + (static_cast<unsigned>(text[16]) & 3U)];
    for (auto const at : {8U, 13U, 18U, 23U}) text.insert(at, 1, '-');
    return text;
}

}  // namespace tinkxx::local
