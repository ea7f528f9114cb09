#pragma once

#include <exception>
#include <string>

namespace tinkxx::service {

/// What a caller's function threw, said of that function: "threw: no cable". Only where an
/// exception is being handled.
[[nodiscard]] inline std::string threw() {
    try {
        throw;
    } catch (std::exception const& e) {
        return std::string{"threw: "} + e.what();
    } catch (...) {
        return "threw something that is no exception";
    }
}

}  // namespace tinkxx::service
