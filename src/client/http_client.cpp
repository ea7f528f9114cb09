#include <tinkxx/http_client.hpp>

#include "client/options/make_core.hpp"
#include "client/options/resolved_options.hpp"
#include "service/calls/http_send_call.hpp"
#include "service/calls/http_stream_call.hpp"
#include "service/core/call_book.hpp"
#include "service/core/client_core.hpp"
#include "service/http/http_context.hpp"
#include "service/http/http_order.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tinkxx {

class HttpClient::Impl {
public:
    explicit Impl(ClientOptions options)
        : runtime_{options.runtime ? std::move(*options.runtime) : Runtime::shared()} {
        auto transport = std::move(options.transport);
        auto const config = std::make_shared<service::ClientConfig const>(
            client::resolve(std::move(options), client::process_environment()));
        runtime_.core()->refuse_if_inherited();
        // A key is all that it asks with.
        service::CredentialConfig const credentials{.api_key = config->credentials.api_key};
        if (!transport) {
            transport = client::shared_transport(runtime_, {.net = config->net,
                                                            .endpoint = config->endpoint.key(),
                                                            .credentials = credentials});
        }
        auto const book = std::make_shared<std::unique_ptr<service::CallBook>>();
        context_ =
            make_context(std::make_unique<service::HttpContext>(
                             config, runtime_.core(), std::move(transport),
                             std::make_shared<service::FixedCredential>(credentials.api_key)),
                         book);
        context_->speak_for_calls();
        *book = std::make_unique<service::CallBook>(*context_, *config,
                                                    std::make_shared<std::uint64_t>());
        book_ = {context_, book->get()};
    }

    template <class Operation, class... Args>
    Future<HttpResponse> start(HttpRequest request, Args&&... args) {
        Promise<HttpResponse> promise{runtime_};
        auto future = promise.get_future();
        if (closed_) {
            promise.set_error(Error{
                {.kind = ErrorKind::closed,
                 .message = request.method + ' ' + request.path + ": the client was closed"}});
            return future;
        }
        if (runtime_.shut_down()) {
            // A scheduler of the user's takes work for a loop that nobody turns any more.
            promise.set_error(Error{
                {.kind = ErrorKind::cancelled,
                 .message = request.method + ' ' + request.path + ": the runtime was shut down"}});
            return future;
        }
        auto order =
            service::make_order(std::move(request), *context_, context_->config().trace_propagator);
        if (!order) {
            promise.set_error(order.error());
            return future;
        }
        auto operation = std::make_shared<Operation>(
            context_, book_, std::move(promise), std::move(*order), std::forward<Args>(args)...);
        operation->launch();
        return future;
    }

    [[nodiscard]] Future<std::vector<OperationStatus>> pending() const {
        auto const done = std::make_shared<Promise<std::vector<OperationStatus>>>(runtime_);
        auto future = done->get_future();
        auto& scheduler = context_->scheduler();
        scheduler.post([context = context_, book = book_, done] {
            done->set_value(book->pending().statuses(context->scheduler().now()));
        });
        return future;
    }

    void close() noexcept {
        if (closed_.exchange(true)) return;
        // Only the loop may touch calls. A runtime that shuts down tells the context itself.
        if (runtime_.shut_down()) return;
        context_->scheduler().post([context = context_] { context->close(); });
    }

    [[nodiscard]] Runtime const& runtime() const noexcept { return runtime_; }

private:
    /// Calls hold the context, and by that the runtime, until they are over. It belongs to the loop
    /// and goes there, whoever lets go of it last.
    /// So does the book of its calls, which ends before it.
    [[nodiscard]] std::shared_ptr<service::HttpContext> make_context(
        std::unique_ptr<service::HttpContext> made,
        std::shared_ptr<std::unique_ptr<service::CallBook>> book) const {
        auto const& core = runtime_.core();
        // Without threads nobody would be left to run the calls that keep the runtime.
        auto kept = core->zero_thread() ? std::nullopt : std::optional{runtime_};
        return {made.release(), [core = core, kept = std::move(kept),
                                 book = std::move(book)](service::HttpContext* last) mutable {
                    std::unique_ptr<service::HttpContext> owned{last};
                    auto const on = std::move(core);
                    auto own = std::exchange(kept, std::nullopt);
                    auto its_book = std::move(*book);
                    if (!service::reaches_loop(*on)) return;
                    on->scheduler().post([owned = std::move(owned), own = std::move(own),
                                          its_book = std::move(its_book)]() mutable {
                        its_book.reset();
                        owned.reset();
                        own.reset();
                    });
                }};
    }

    // Released last: as the last handle it ends the loop.
    Runtime runtime_;
    std::shared_ptr<service::HttpContext> context_{};
    std::shared_ptr<service::CallBook> book_{};
    std::atomic<bool> closed_{false};
};

HttpClient::HttpClient() : HttpClient{ClientOptions{}} {}
HttpClient::HttpClient(ClientOptions options)
    : impl_{std::make_shared<Impl>(client::with_defaults(std::move(options)))} {}

Future<HttpResponse> HttpClient::send(HttpRequest request) const {
    return impl_->start<service::HttpSendCall>(std::move(request));
}

Future<HttpResponse> HttpClient::stream(HttpRequest request, DataHandler on_data) const {
    return impl_->start<service::HttpStreamCall>(std::move(request), std::move(on_data));
}

Future<std::vector<OperationStatus>> HttpClient::pending() const { return impl_->pending(); }

void HttpClient::close() const { impl_->close(); }

Runtime const& HttpClient::runtime() const noexcept { return impl_->runtime(); }

}  // namespace tinkxx
