#include <tinkxx/testing/contract_sink.hpp>

#include <utility>

namespace tinkxx::testing {

Call ContractSink::start(Transport& transport, Request request) {
    starting_ = true;
    call_ = transport.start(std::move(request), *this);
    starting_ = false;
    if (call_.id == 0) breaches_.emplace_back("start returned no call");
    return call_;
}

void ContractSink::cancel(Transport& transport) noexcept {
    transport.cancel(call_);
    cancelled_ = true;
}

void ContractSink::check(std::string_view event) {
    auto const note = [&](std::string_view when) {
        breaches_.push_back(std::string{event} + ' ' + std::string{when});
    };
    if (starting_) note("inside start");
    if (cancelled_) note("after cancel");
    if (ends_ > 0) note("after the end");
    if (event == "head" && head_) note("twice");
    if (event == "data" && !head_) note("before the head");
    if (event == "done" && !head_) note("without a head");
}

void ContractSink::tell(std::string_view event) {
    if (on_event) on_event(event);
}

void ContractSink::on_head(Head head) {
    check("head");
    if (head.status < 100 || head.status > 999) {
        breaches_.push_back("head with status " + std::to_string(head.status));
    }
    head_ = std::move(head);
    tell("head");
}

void ContractSink::on_data(std::span<char const> data) {
    check("data");
    if (data.empty()) breaches_.emplace_back("data of no bytes");
    ++pieces_;
    body_.append(data.begin(), data.end());
    tell("data");
}

void ContractSink::on_done(Timing const& timing) {
    check("done");
    ++ends_;
    timing_ = timing;
    tell("done");
}

void ContractSink::on_failure(Failure failure) {
    check("failure");
    ++ends_;
    timing_ = failure.timing;
    failure_ = std::move(failure);
    tell("failure");
}

}  // namespace tinkxx::testing
