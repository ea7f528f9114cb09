#pragma once

namespace tinkxx::cli {

/// From now on Ctrl-C ends the process at once with exit code 130. What commands keep on disk is
/// written so that it survives that.
void end_by_interrupt();

/// While it exists, what is typed is not shown.
class HiddenInput {
public:
    explicit HiddenInput(int file);
    ~HiddenInput();
    HiddenInput(HiddenInput const&) = delete;
    HiddenInput& operator=(HiddenInput const&) = delete;
};

}  // namespace tinkxx::cli
