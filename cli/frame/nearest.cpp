#include "frame/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tinkxx::cli {
namespace {

/// Optimal string alignment: Damerau's distance without a second edit of what was swapped.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> last(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            auto const same = a[i - 1] == b[j - 1];
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0U : 1U)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
        before.swap(last);
        last.swap(row);
    }
    return last[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<std::string const> known) {
    // A third of the letters may be wrong. What is only begun is near, too.
    constexpr std::size_t letters_per_error = 3;
    std::string best;
    auto least = std::max<std::size_t>(word.size() / letters_per_error, 1) + 1;
    for (auto const& one : known) {
        auto const away = distance(word, one);
        if (away < least) {
            least = away;
            best = one;
        }
    }
    if (!best.empty() || word.size() < 2) return best;
    auto const begun =
        std::ranges::find_if(known, [&](std::string const& one) { return one.starts_with(word); });
    return begun == known.end() ? std::string{} : *begun;
}

}  // namespace tinkxx::cli
