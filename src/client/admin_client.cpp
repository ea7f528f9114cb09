#include <tinkxx/admin_client.hpp>

#include "client/rest_calls.hpp"
#include "wire/rest/billing.hpp"

#include <array>
#include <cstdio>
#include <utility>

namespace tinkxx {

class AdminClient::Impl {
public:
    explicit Impl(client::RestCalls made) : calls{std::move(made)} {}

    client::RestCalls const calls;
};

AdminClient::AdminClient() : AdminClient{ClientOptions{}} {}
AdminClient::AdminClient(ClientOptions options)
    : impl_{std::make_shared<Impl const>(
          client::RestCalls{ServiceClient{std::move(options)}, true, CallOptions()})} {}
AdminClient::AdminClient(std::shared_ptr<Impl const> impl) noexcept : impl_{std::move(impl)} {}

AdminClient ServiceClient::create_admin_client() const {
    return AdminClient{
        std::make_shared<AdminClient::Impl const>(client::RestCalls{*this, false, CallOptions()})};
}

AdminClient AdminClient::with(CallOptions call) const {
    return AdminClient{std::make_shared<Impl const>(impl_->calls.with(std::move(call)))};
}

Future<BillingUsage> AdminClient::get_billing_usage(Timestamp starting_on,
                                                    Timestamp ending_before) const {
    static constexpr std::string_view operation = "get_billing_usage";
    service::RestRequest request;
    request.path = "/api/v1/billing/usage/events";
    request.query = {{"starting_on", to_string(starting_on)},
                     {"ending_before", to_string(ending_before)}};
    request.sdk_method = operation;
    return impl_->calls.ask<BillingUsage>(
        operation, std::move(request),
        [](HttpResponse const& response) { return wire::decode_billing_usage(response.body); });
}

Future<CheckpointStorageUsage> AdminClient::get_current_checkpoint_storage_usage() const {
    return get_current_checkpoint_storage_usage(std::string());
}

Future<CheckpointStorageUsage> AdminClient::get_current_checkpoint_storage_usage(
    std::string project_id) const {
    static constexpr std::string_view operation = "get_current_checkpoint_storage_usage";
    service::RestRequest request;
    request.path = "/api/v1/billing/usage/checkpoints/current";
    request.query = {{"project_id", std::move(project_id)}};
    request.sdk_method = operation;
    return impl_->calls.ask<CheckpointStorageUsage>(
        operation, std::move(request), [](HttpResponse const& response) {
            return wire::decode_checkpoint_storage(response.body);
        });
}

Future<AuditLog> AdminClient::get_audit_log() const { return get_audit_log(AuditQuery()); }

Future<AuditLog> AdminClient::get_audit_log(AuditQuery query) const {
    static constexpr std::string_view operation = "get_audit_log";
    service::RestRequest request;
    request.path = "/api/v1/audit";
    request.query = {{"event_type", std::string{to_string(query.events)}}};
    if (query.day) {
        if (!query.day->ok()) {
            return make_failed_future<AuditLog>(
                Error{{.kind = ErrorKind::validation,
                       .message = std::string{operation} +
                                  ": day is no day of the calendar; check month and day",
                       .category = ErrorCategory::user,
                       .field = "day"}});
        }
        std::array<char, 32> day{};
        std::snprintf(day.data(), day.size(), "%04d-%02u-%02u", static_cast<int>(query.day->year()),
                      static_cast<unsigned>(query.day->month()),
                      static_cast<unsigned>(query.day->day()));
        request.query.emplace_back("day", day.data());
    }
    request.sdk_method = operation;
    request.purpose = Purpose::rest;
    return impl_->calls.ask<AuditLog>(
        operation, std::move(request),
        [](HttpResponse const& response) { return wire::decode_audit_log(response.body); });
}

Future<void> AdminClient::close() const { return impl_->calls.close(); }

Runtime const& AdminClient::runtime() const noexcept { return impl_->calls.runtime(); }

}  // namespace tinkxx
