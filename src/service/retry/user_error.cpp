#include "service/retry/user_error.hpp"

#include <algorithm>
#include <vector>

namespace tinkxx::service {

namespace {

bool is_the_users(Error const& error) noexcept {
    if (error.kind() == ErrorKind::request_failed && error.category() == ErrorCategory::user) {
        return true;
    }
    // A proxy's empty 400 is a lost connection that happens to have a status (R-RETRY-75).
    if (error.kind() == ErrorKind::connection || error.kind() == ErrorKind::timeout) return false;
    auto const status = error.http_status().value_or(0);
    return status >= 400 && status < 500 && status != 408;
}

class Search {
public:
    std::optional<Error> in(Error const& error) {
        // An exception can, in the end, hold itself.
        auto const* details = &error.details();
        if (seen_.size() == most || std::ranges::find(seen_, details) != seen_.end()) {
            return std::nullopt;
        }
        seen_.push_back(details);
        if (is_the_users(error)) return error;
        if (auto const* cause = error.cause()) {
            if (auto found = in(*cause)) return found;
        }
        return in(error.exception());
    }

private:
    std::optional<Error> in(std::exception_ptr const& exception) {
        if (!exception || depth_ == most) return std::nullopt;
        ++depth_;
        try {
            std::rethrow_exception(exception);
        } catch (Error const& error) {
            return in(error);
        } catch (std::nested_exception const& outer) {
            return in(outer.nested_ptr());
        } catch (...) {
            return std::nullopt;
        }
    }

    static constexpr std::size_t most = 256;  // it is done on the stack

    std::vector<ErrorDetails const*> seen_{};
    std::size_t depth_{0};
};

}  // namespace

std::optional<Error> find_user_error(Error const& error) noexcept try {
    return Search{}.in(error);
} catch (...) {
    return std::nullopt;  // no memory to look
}

}  // namespace tinkxx::service
