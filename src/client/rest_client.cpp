#include <tinkxx/rest_client.hpp>

#include "client/offset_pages.hpp"
#include "client/rest_calls.hpp"
#include "math/check.hpp"
#include "service/rest/archive_machine.hpp"
#include "service/rest/trace_machine.hpp"
#include "service/text/endpoint.hpp"
#include "wire/rest/sessions.hpp"
#include "wire/rest/training_runs.hpp"
#include "wire/training/training.hpp"

#include <memory>
#include <mutex>
#include <utility>

namespace tinkxx {
namespace {

using service::RestRequest;

constexpr std::int64_t listed_at_once = 100;

Result<void> nothing(HttpResponse const& /*response*/) { return {}; }

/// How often a publication is repeated that the server says is made already: it may have been
/// busy with the checkpoint, but waiting for long would be in vain (R-REST-00).
constexpr int conflicts_repeated = 3;

std::function<bool(Error const&)> few_conflicts() {
    return [left = conflicts_repeated](Error const& error) mutable {
        return error.http_status() != 409 || left-- > 0;
    };
}

std::optional<ErrorDetails> page_problem(std::string_view operation,
                                         std::optional<std::int64_t> limit, std::int64_t offset) {
    bool const bad_limit = limit && *limit < 1;
    if (!bad_limit && offset >= 0) return std::nullopt;
    auto const* const field = bad_limit ? "limit" : "offset";
    auto const value = std::to_string(bad_limit ? *limit : offset);
    return ErrorDetails{.kind = ErrorKind::validation,
                        .message = std::string{operation} + ": " + field + " is " + value +
                                   "; use " + (bad_limit ? "1 or more" : "0 or more"),
                        .category = ErrorCategory::user,
                        .field = field,
                        .value = value};
}

template <class T>
Future<T> refuse_call(std::optional<ErrorDetails> problem) {
    return make_failed_future<T>(Error{*std::move(problem)});
}

std::string session_path(std::string_view session_id) {
    return "/api/v1/sessions/" + std::string{session_id};
}

}  // namespace

class RestClient::Impl {
public:
    explicit Impl(client::RestCalls made) : calls{std::move(made)} {}

    Future<void> publish(std::string_view operation, std::string_view sdk_method,
                         std::string method, CheckpointRef const& checkpoint) const {
        auto const named = service::named_checkpoint(operation, checkpoint);
        if (!named) return make_failed_future<void>(named.error());
        RestRequest request;
        request.method = std::move(method);
        request.path = service::checkpoint_path(named->run, named->id) + "/publish";
        request.sdk_method = sdk_method;
        return calls.ask<void>(operation, std::move(request), nothing, few_conflicts());
    }

    client::RestCalls const calls;
};

RestClient::RestClient() : RestClient{ClientOptions{}} {}
RestClient::RestClient(ClientOptions options)
    : impl_{std::make_shared<Impl const>(
          client::RestCalls{ServiceClient{std::move(options)}, true, CallOptions()})} {}
RestClient::RestClient(std::shared_ptr<Impl const> impl) noexcept : impl_{std::move(impl)} {}

RestClient ServiceClient::create_rest_client() const {
    return RestClient{
        std::make_shared<RestClient::Impl const>(client::RestCalls{*this, false, CallOptions()})};
}

RestClient RestClient::with(CallOptions call) const {
    return RestClient{std::make_shared<Impl const>(impl_->calls.with(std::move(call)))};
}

// Training runs -----------------------------------------------------------------------------------

Future<TrainingRun> RestClient::get_training_run(std::string run) const {
    return get_training_run(std::move(run), AccessScope::owned);
}

Future<TrainingRun> RestClient::get_training_run(std::string run, AccessScope scope) const {
    static constexpr std::string_view operation = "get_training_run";
    RestRequest request;
    request.sdk_method = operation;
    if (run.starts_with(service::path_scheme)) {
        auto named = service::named_checkpoint(operation, run);
        if (!named) return make_failed_future<TrainingRun>(named.error());
        run = std::move(named->run);
        request.sdk_method = "get_training_run_by_tinker_path";
    } else if (auto problem = service::id_problem(operation, "run", run, 0)) {
        return refuse_call<TrainingRun>(std::move(problem));
    }
    request.path = service::run_path(run);
    request.query = {{"access_scope", std::string{to_string(scope)}}};
    return impl_->calls.ask<TrainingRun>(
        operation, std::move(request),
        [](HttpResponse const& response) { return wire::decode_training_run(response.body); });
}

Future<TrainingRunPage> RestClient::list_training_runs() const {
    return list_training_runs(TrainingRunQuery());
}

Future<TrainingRunPage> RestClient::list_training_runs(TrainingRunQuery query) const {
    static constexpr std::string_view operation = "list_training_runs";
    if (auto problem = page_problem(operation, query.limit, query.offset)) {
        return refuse_call<TrainingRunPage>(std::move(problem));
    }
    RestRequest request;
    request.path = "/api/v1/training_runs";
    request.query = {{"limit", query.limit.value_or(20)},
                     {"offset", query.offset},
                     {"access_scope", std::string{to_string(query.access_scope)}},
                     {"project_id", std::move(query.project_id)}};
    request.sdk_method = operation;
    return impl_->calls.ask<TrainingRunPage>(
        operation, std::move(request),
        [](HttpResponse const& response) { return wire::decode_training_runs(response.body); });
}

Listing<TrainingRun> RestClient::training_runs() const { return training_runs(TrainingRunQuery()); }

Listing<TrainingRun> RestClient::training_runs(TrainingRunQuery query) const {
    if (!query.limit) query.limit = listed_at_once;
    auto const begin = query.offset;
    return client::OffsetPages<TrainingRun>::listing(
        begin, [rest = *this, query = std::move(query)](std::int64_t offset) {
            auto wanted = query;
            wanted.offset = offset;
            auto page = rest.list_training_runs(std::move(wanted));
            return page.then([](TrainingRunPage got) {
                return client::FetchedPage<TrainingRun>{std::move(got.training_runs),
                                                        got.cursor.total_count};
            });
        });
}

// Checkpoints -------------------------------------------------------------------------------------

Future<CheckpointPage> RestClient::list_checkpoints(std::string training_run_id) const {
    static constexpr std::string_view operation = "list_checkpoints";
    if (auto problem = service::id_problem(operation, "training_run_id", training_run_id, 0)) {
        return refuse_call<CheckpointPage>(std::move(problem));
    }
    RestRequest request;
    request.path = service::run_path(training_run_id) + "/checkpoints";
    request.sdk_method = operation;
    return impl_->calls.ask<CheckpointPage>(
        operation, std::move(request), [](HttpResponse const& response) {
            return wire::decode_checkpoints(operation, response.body);
        });
}

Future<CheckpointPage> RestClient::list_user_checkpoints() const {
    return list_user_checkpoints(PageQuery());
}

Future<CheckpointPage> RestClient::list_user_checkpoints(PageQuery query) const {
    static constexpr std::string_view operation = "list_user_checkpoints";
    if (auto problem = page_problem(operation, query.limit, query.offset)) {
        return refuse_call<CheckpointPage>(std::move(problem));
    }
    RestRequest request;
    request.path = "/api/v1/checkpoints";
    request.query = {{"limit", query.limit.value_or(listed_at_once)}, {"offset", query.offset}};
    request.sdk_method = operation;
    return impl_->calls.ask<CheckpointPage>(
        operation, std::move(request), [](HttpResponse const& response) {
            return wire::decode_checkpoints(operation, response.body);
        });
}

Listing<Checkpoint> RestClient::user_checkpoints() const { return user_checkpoints(PageQuery()); }

Listing<Checkpoint> RestClient::user_checkpoints(PageQuery query) const {
    return client::OffsetPages<Checkpoint>::listing(
        query.offset, [rest = *this, limit = query.limit](std::int64_t offset) {
            PageQuery wanted;
            wanted.limit = limit;
            wanted.offset = offset;
            auto page = rest.list_user_checkpoints(wanted);
            return page.then([](CheckpointPage got) {
                auto const total = got.cursor ? std::optional{got.cursor->total_count}
                                              : std::optional<std::int64_t>{};
                return client::FetchedPage<Checkpoint>{std::move(got.checkpoints), total};
            });
        });
}

Future<WeightsInfo> RestClient::get_weights_info(std::string path) const {
    RestRequest request;
    request.method = "POST";
    request.path = "/api/v1/weights_info";
    request.body = wire::encode_weights_info(path);
    request.sdk_method = "get_weights_info_by_tinker_path";
    return impl_->calls.ask<WeightsInfo>(
        "get_weights_info", std::move(request),
        [](HttpResponse const& response) { return wire::decode_weights_info(response.body); });
}

Future<void> RestClient::delete_checkpoint(CheckpointRef const& checkpoint) const {
    auto const named = service::named_checkpoint("delete_checkpoint", checkpoint);
    if (!named) return make_failed_future<void>(named.error());
    RestRequest request;
    request.method = "DELETE";
    request.path = service::checkpoint_path(named->run, named->id);
    request.sdk_method = named->path ? "delete_checkpoint_from_tinker_path" : "delete_checkpoint";
    return impl_->calls.ask<void>("delete_checkpoint", std::move(request), nothing);
}

Future<void> RestClient::publish_checkpoint(CheckpointRef const& checkpoint) const {
    return impl_->publish("publish_checkpoint", "publish_checkpoint_from_tinker_path", "POST",
                          checkpoint);
}

Future<void> RestClient::unpublish_checkpoint(CheckpointRef const& checkpoint) const {
    return impl_->publish("unpublish_checkpoint", "unpublish_checkpoint_from_tinker_path", "DELETE",
                          checkpoint);
}

Future<void> RestClient::set_checkpoint_ttl(CheckpointRef const& checkpoint,
                                            std::optional<std::chrono::seconds> ttl) const {
    static constexpr std::string_view operation = "set_checkpoint_ttl";
    auto const named = service::named_checkpoint(operation, checkpoint);
    if (!named) return make_failed_future<void>(named.error());
    if (auto problem = math::ttl_problem(
            operation, ttl ? std::optional<std::int64_t>{ttl->count()} : std::nullopt)) {
        return refuse_call<void>(std::move(problem));
    }
    RestRequest request;
    request.method = "PUT";
    request.path = service::checkpoint_path(named->run, named->id) + "/ttl";
    request.body = wire::encode_ttl(ttl);
    request.sdk_method = "set_checkpoint_ttl_from_tinker_path";
    return impl_->calls.ask<void>(operation, std::move(request), nothing);
}

Future<std::string> RestClient::copy_weights(std::string path) const {
    return impl_->calls.service().copy_weights(std::move(path));
}

Future<std::string> RestClient::copy_weights(std::string path, CopyWeightsOptions options) const {
    return impl_->calls.service().copy_weights(std::move(path), std::move(options));
}

Future<ArchiveUrl> RestClient::get_checkpoint_archive_url(CheckpointRef const& checkpoint) const {
    static constexpr std::string_view operation = "get_checkpoint_archive_url";
    auto const named = service::named_checkpoint(operation, checkpoint);
    if (!named) return make_failed_future<ArchiveUrl>(named.error());
    RestRequest request;
    request.path = service::checkpoint_path(named->run, named->id) + "/archive";
    request.sdk_method = named->path ? "get_checkpoint_archive_url_from_tinker_path" : operation;
    request.purpose = Purpose::rest;
    return impl_->calls.ask_until(operation, std::move(request), service::ArchiveMachine{},
                                  [](service::HttpOrder& order) {
                                      order.redirects = Redirects::none;
                                      order.redirect_answers = true;
                                      order.max_retries = 0;
                                  });
}

Future<ExternalWeightsUrls> RestClient::get_external_weights_urls(
    CheckpointRef const& checkpoint) const {
    static constexpr std::string_view operation = "get_external_weights_urls";
    auto const named = service::named_checkpoint(operation, checkpoint);
    if (!named) return make_failed_future<ExternalWeightsUrls>(named.error());
    auto const kind = to_string(CheckpointKind::external_weights);
    if (!named->id.starts_with(std::string{kind} + '/')) {
        auto const shown = checkpoint.by_id() ? named->id : checkpoint.path();
        return make_failed_future<ExternalWeightsUrls>(
            Error{{.kind = ErrorKind::validation,
                   .message = std::string{operation} + ": the checkpoint is \"" + shown +
                              "\"; only external weights have files, "
                              "tinker://<run>/external_weights/<name>, which "
                              "TrainingClient::save_weights_external saves",
                   .category = ErrorCategory::user,
                   .field = "checkpoint",
                   .value = shown}});
    }
    RestRequest request;
    request.path = service::checkpoint_path(named->run, named->id) + "/external_weights_urls";
    request.sdk_method = operation;
    return impl_->calls.ask<ExternalWeightsUrls>(
        operation, std::move(request), [](HttpResponse const& response) {
            return wire::decode_external_weights_urls(response.body);
        });
}

namespace {

std::optional<ErrorDetails> download_problem(std::string_view operation,
                                             DownloadOptions const& options) {
    auto const wrong = [&](char const* field, std::int64_t value, char const* rule) {
        return ErrorDetails{.kind = ErrorKind::validation,
                            .message = std::string{operation} + ": DownloadOptions::" + field +
                                       " is " + std::to_string(value) + "; use " + rule,
                            .category = ErrorCategory::user,
                            .field = field,
                            .value = std::to_string(value)};
    };
    constexpr std::int64_t least_piece = 64 * 1024;
    constexpr std::int64_t most_piece = std::int64_t{1} << 30;
    if (options.streams < 1 || options.streams > 64) {
        return wrong("streams", options.streams, "1 to 64");
    }
    if (options.piece_bytes < least_piece || options.piece_bytes > most_piece) {
        return wrong("piece_bytes", options.piece_bytes, "64 KiB to 1 GiB");
    }
    if (options.most_bytes < 1) return wrong("most_bytes", options.most_bytes, "1 or more");
    if (options.most_files < 1) return wrong("most_files", options.most_files, "1 or more");
    return std::nullopt;
}

}  // namespace

Future<DownloadedCheckpoint> RestClient::download_checkpoint(
    CheckpointRef const& checkpoint) const {
    return download_checkpoint(checkpoint, DownloadOptions());
}

Future<DownloadedCheckpoint> RestClient::download_checkpoint(CheckpointRef const& checkpoint,
                                                             DownloadOptions options) const {
    static constexpr std::string_view operation = "download_checkpoint";
    auto const named = service::named_checkpoint(operation, checkpoint);
    if (!named) return make_failed_future<DownloadedCheckpoint>(named.error());
    if (auto problem = download_problem(operation, options)) {
        return refuse_call<DownloadedCheckpoint>(std::move(problem));
    }
    service::DownloadOrder order;
    order.what = "tinker://" + named->run + '/' + named->id;
    order.options = std::move(options);
    order.archive =
        !named->id.starts_with(std::string{to_string(CheckpointKind::external_weights)} + '/');
    if (order.archive) {
        order.links = [rest = *this, checkpoint] {
            auto asked = rest.get_checkpoint_archive_url(checkpoint);
            return asked.then([](ArchiveUrl found) {
                return service::DownloadLinks{{{"", std::move(found.url)}}, found.expires};
            });
        };
    } else {
        order.links = [rest = *this, checkpoint] {
            auto asked = rest.get_external_weights_urls(checkpoint);
            return asked.then([](ExternalWeightsUrls found) {
                return service::DownloadLinks{std::move(found.urls), found.expires};
            });
        };
    }
    return impl_->calls.download(operation, std::move(order));
}

// Sessions and samplers ---------------------------------------------------------------------------

Future<SessionPage> RestClient::list_sessions() const { return list_sessions(SessionQuery()); }

Future<SessionPage> RestClient::list_sessions(SessionQuery query) const {
    static constexpr std::string_view operation = "list_sessions";
    if (auto problem = page_problem(operation, query.limit, query.offset)) {
        return refuse_call<SessionPage>(std::move(problem));
    }
    RestRequest request;
    request.path = "/api/v1/sessions";
    request.query = {{"limit", query.limit.value_or(20)},
                     {"offset", query.offset},
                     {"access_scope", std::string{to_string(query.access_scope)}}};
    request.sdk_method = operation;
    return impl_->calls.ask<SessionPage>(
        operation, std::move(request),
        [](HttpResponse const& response) { return wire::decode_sessions(response.body); });
}

Listing<std::string> RestClient::sessions() const { return sessions(SessionQuery()); }

Listing<std::string> RestClient::sessions(SessionQuery query) const {
    if (!query.limit) query.limit = listed_at_once;
    return client::OffsetPages<std::string>::listing(
        query.offset, [rest = *this, query](std::int64_t offset) {
            auto wanted = query;
            wanted.offset = offset;
            auto page = rest.list_sessions(wanted);
            return page.then([](SessionPage got) {
                return client::FetchedPage<std::string>{std::move(got.sessions), std::nullopt};
            });
        });
}

Future<SessionInfo> RestClient::get_session(std::string session_id) const {
    return get_session(std::move(session_id), AccessScope::owned);
}

Future<SessionInfo> RestClient::get_session(std::string session_id, AccessScope scope) const {
    static constexpr std::string_view operation = "get_session";
    if (auto problem = service::id_problem(operation, "session_id", session_id, 0)) {
        return refuse_call<SessionInfo>(std::move(problem));
    }
    RestRequest request;
    request.path = session_path(session_id);
    request.query = {{"access_scope", std::string{to_string(scope)}}};
    request.sdk_method = operation;
    return impl_->calls.ask<SessionInfo>(
        operation, std::move(request),
        [](HttpResponse const& response) { return wire::decode_session(response.body); });
}

Future<SessionSearchPage> RestClient::search_sessions(SessionSearch search) const {
    static constexpr std::string_view operation = "search_sessions";
    if (search.limit < 1 || search.limit > 200) {
        auto const value = std::to_string(search.limit);
        return make_failed_future<SessionSearchPage>(
            Error{{.kind = ErrorKind::validation,
                   .message = std::string{operation} + ": limit is " + value +
                              "; the service gives 1 to 200 sessions at once",
                   .category = ErrorCategory::user,
                   .field = "limit",
                   .value = value}});
    }
    RestRequest request;
    request.method = "POST";
    request.path = "/api/v1/sessions/search";
    request.body = wire::encode_session_search(search);
    request.sdk_method = operation;
    request.feature = "the search for sessions";
    return impl_->calls.ask<SessionSearchPage>(
        operation, std::move(request),
        [](HttpResponse const& response) { return wire::decode_session_search(response.body); });
}

Listing<SessionSummary> RestClient::found_sessions(SessionSearch search) const {
    /// Where the search goes on. Pages come on the callback executor.
    struct Place {
        std::mutex mutex{};
        SessionSearch next{};
        bool over{false};
    };
    using Found = std::vector<SessionSummary>;
    auto const place = std::make_shared<Place>();
    place->next = std::move(search);
    return Listing<SessionSummary>{[rest = *this, place] {
        SessionSearch wanted;
        {
            std::scoped_lock const lock{place->mutex};
            if (place->over) return make_ready_future(Found{});
            wanted = place->next;
        }
        auto const from = wanted.cursor;
        auto page = rest.search_sessions(std::move(wanted));
        return page.then([place, from](SessionSearchPage got) {
            std::scoped_lock const lock{place->mutex};
            if (place->next.cursor == from) {
                // A cursor that leads nowhere else must not lead round and round.
                place->over = !got.next_cursor || got.next_cursor == from || got.sessions.empty();
                place->next.cursor = std::move(got.next_cursor);
            }
            return std::move(got.sessions);
        });
    }};
}

Future<void> RestClient::assign_session_project(std::string session_id,
                                                std::string project_id) const {
    static constexpr std::string_view operation = "assign_session_project";
    if (auto problem = service::id_problem(operation, "session_id", session_id, 0)) {
        return refuse_call<void>(std::move(problem));
    }
    RestRequest request;
    request.method = "PUT";
    request.path = session_path(session_id) + "/project";
    request.body = wire::encode_project(project_id);
    request.sdk_method = operation;
    return impl_->calls.ask<void>(operation, std::move(request), nothing);
}

Future<std::string> RestClient::export_session_trace(std::string session_id) const {
    static constexpr std::string_view operation = "export_session_trace";
    if (auto problem = service::id_problem(operation, "session_id", session_id, 0)) {
        return refuse_call<std::string>(std::move(problem));
    }
    RestRequest request;
    request.path = session_path(session_id) + "/trace_export";
    request.sdk_method = operation;
    return impl_->calls.ask_until(operation, std::move(request),
                                  service::TraceMachine{std::move(session_id)});
}

Future<SamplerInfo> RestClient::get_sampler(std::string sampler_id) const {
    static constexpr std::string_view operation = "get_sampler";
    if (auto problem = service::id_problem(operation, "sampler_id", sampler_id, 0)) {
        return refuse_call<SamplerInfo>(std::move(problem));
    }
    RestRequest request;
    request.path = "/api/v1/samplers/" + sampler_id;
    request.sdk_method = operation;
    return impl_->calls.ask<SamplerInfo>(
        operation, std::move(request),
        [](HttpResponse const& response) { return wire::decode_sampler_info(response.body); });
}

// The service -------------------------------------------------------------------------------------

Future<ServerCapabilities> RestClient::get_server_capabilities() const {
    return impl_->calls.service().get_server_capabilities();
}

Future<std::string> RestClient::health() const { return impl_->calls.service().health(); }

Future<void> RestClient::check_access() const { return impl_->calls.service().check_access(); }

Future<Identity> RestClient::whoami() const { return impl_->calls.service().whoami(); }

Future<ServiceStatus> RestClient::status() const { return impl_->calls.service().status(); }

Future<void> RestClient::close() const { return impl_->calls.close(); }

Runtime const& RestClient::runtime() const noexcept { return impl_->calls.runtime(); }

}  // namespace tinkxx
