#pragma once

#include "output/terminal.hpp"

#include <string>
#include <string_view>
#include <system_error>

namespace tinkxx::cli {

/// Raises the limit of open files as far as the system allows. Throws `Error` for limits under
/// which a server would start and then fail at what it is for, and `std::system_error` if the
/// system does not give as many threads as `computing` and those that every server has.
void prepare_limits(unsigned computing);

/// Makes the C library give memory for large bodies back to the system as soon as it is free, so
/// that a server does not keep the size of the largest moment that it has had. Before any thread is
/// started. Does nothing where the library is not that of GNU.
void return_large_memory() noexcept;

/// What to do about a failure of the system whose text is in `reason`; empty if there is nothing to
/// say about it.
[[nodiscard]] std::string way_out_of(std::string_view reason);

/// In words, with the limit to raise.
[[nodiscard]] Trouble trouble_of(std::system_error const& error);
[[nodiscard]] Trouble trouble_of_memory();

}  // namespace tinkxx::cli
