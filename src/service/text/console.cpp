#include <tinkxx/console.hpp>

#include <tinkxx/error.hpp>

#include "service/text/endpoint.hpp"

#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>

#include <utility>

namespace tinkxx::console {
namespace {

// As part of an address.
std::string encoded(std::string_view text) {
    return boost::urls::encode(text, boost::urls::unreserved_chars);
}
// An id, whose colons may stay.
std::string encoded_id(std::string_view text) {
    return boost::urls::encode(text, boost::urls::unreserved_chars + ':');
}

std::string page(std::string_view host, std::string_view path, std::string const& rest = {}) {
    std::string url{host};
    return url.append(path).append(rest);
}

/// The run of a checkpoint, and what it is called there.
std::pair<std::string_view, std::string_view> parts(std::string_view operation,
                                                    std::string_view path) {
    if (path.starts_with(service::path_scheme)) {
        auto const rest = path.substr(service::path_scheme.size());
        auto const slash = rest.find('/');
        auto const run = rest.substr(0, slash);
        auto const id = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
        for (std::string_view const kind : {"weights/", "sampler_weights/"}) {
            if (run.empty() || !id.starts_with(kind)) continue;
            auto const name = id.substr(kind.size());
            if (!name.empty() && name.find('/') == std::string_view::npos) return {run, id};
        }
    }
    std::string const given{path};
    Error{{.kind = ErrorKind::validation,
           .message = std::string{operation} + ": path is \"" + given +
                      "\"; it must look like tinker://<run>/weights/<name> or "
                      "tinker://<run>/sampler_weights/<name>",
           .field = "path",
           .value = given}}
        .raise();
}

}  // namespace

std::string sessions_url(std::string_view host) { return page(host, "/sessions"); }

std::string session_url(std::string_view session_id, std::string_view host) {
    return page(host, "/sessions/", encoded_id(session_id));
}

std::string training_run_url(std::string_view model_id, std::string_view host) {
    return page(host, "/training_runs/", encoded_id(model_id));
}

std::string checkpoint_url(std::string_view path, std::string_view host) {
    auto const [run, id] = parts("checkpoint_url", path);
    return page(host, "/checkpoints/", encoded(run) + '/' + encoded(id));
}

std::string playground_url(std::string_view path, std::string_view host) {
    (void)parts("playground_url", path);
    return page(host, "/playground?mode=checkpoint&checkpoint=", encoded(path));
}

}  // namespace tinkxx::console
