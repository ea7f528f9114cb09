// A scheduler knows an armed timer by its address.
#include <tinkxx/scheduler.hpp>

class Alarm final : public tinkxx::Timer {
public:
    void on_time() override {}
};

bool use(Alarm& alarm) {
#ifdef TINKXX_OFFENDING
    Alarm const copy{alarm};
#else
    Alarm const& copy{alarm};
#endif
    return copy.armed();
}
