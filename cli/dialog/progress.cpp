#include "dialog/progress.hpp"

#include "output/table.hpp"
#include "output/words.hpp"

#include <chrono>
#include <utility>

namespace tinkxx::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 1s;
constexpr auto between = 100ms;

std::string clock_words(double seconds) {
    auto const whole = static_cast<std::int64_t>(seconds + 0.5);
    if (whole < 60) return std::to_string(whole) + " s";
    if (whole < 3600)
        return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
    return std::to_string(whole / 3600) + " h " + std::to_string(whole / 60 % 60) + " min";
}

}  // namespace

Progress::Progress(Context& context, std::string what, Unit unit)
    : context_{context}, what_{std::move(what)}, unit_{unit}, begun_{context.now()} {}

void Progress::show(std::int64_t done, std::optional<std::int64_t> total) {
    if (!context_.terminal.screen().err) return;
    auto const now = context_.now();
    std::scoped_lock const lock{mutex_};
    if (!first_) first_ = done;
    bool const ended = total && done >= *total;
    if (now - begun_ < patience || (now - last_ < between && !ended)) return;
    last_ = now;
    shown_ = true;
    auto const words = [this](std::int64_t count) {
        return unit_ == Unit::bytes ? size_words(count) : std::to_string(count);
    };
    auto const seconds = std::chrono::duration<double>(now - begun_).count();
    auto const rate = static_cast<double>(done - *first_) / seconds;
    auto line = what_ + "  " + words(done);
    if (total && *total > 0) {
        line += " of " + words(*total) + " (" + std::to_string(done * 100 / *total) + "%)";
    }
    line += ", " +
            (unit_ == Unit::bytes ? size_words(static_cast<std::int64_t>(rate)) : fixed(rate, 1)) +
            "/s";
    if (total && rate > 0 && !ended) {
        line += ", " + clock_words(static_cast<double>(*total - done) / rate) + " left";
    }
    context_.err() << '\r' << cut_to(line, context_.terminal.screen().width - 1) << "\033[K"
                   << std::flush;
}

void Progress::clear() {
    std::scoped_lock const lock{mutex_};
    if (std::exchange(shown_, false)) context_.err() << "\r\033[K" << std::flush;
}

}  // namespace tinkxx::cli
