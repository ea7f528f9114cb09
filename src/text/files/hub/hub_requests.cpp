#include "text/files/hub/hub_requests.hpp"

#include "text/files/disk/failure.hpp"
#include "text/files/hub/checksum.hpp"
#include "text/files/hub/hub_address.hpp"
#include "text/files/hub/hub_cache.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace tinkxx::text {

namespace {

char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string const* HubHead::find(std::string_view name) const noexcept {
    auto const found = std::ranges::find_if(headers, [&](auto const& line) {
        return std::ranges::equal(line.first, name, {}, lower_letter, lower_letter);
    });
    return found == headers.end() ? nullptr : &found->second;
}

namespace files {

namespace {

constexpr int most_redirects = 5;

std::string header(HubHead const& head, std::string_view name) {
    auto const* const value = head.find(name);
    return value == nullptr ? std::string{} : *value;
}

std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    auto const [rest, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Without the quotes, and the mark of a weak one.
std::string etag_of(HubHead const& head) {
    auto text = header(head, "x-linked-etag");
    if (text.empty()) text = header(head, "etag");
    std::string_view etag = text;
    if (etag.starts_with("W/")) etag.remove_prefix(2);
    if (etag.size() >= 2 && etag.starts_with('"') && etag.ends_with('"')) {
        etag = etag.substr(1, etag.size() - 2);
    }
    return std::string{etag};
}

bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

[[noreturn]] void fail_by_status(TokenizerId const& id, std::string_view file,
                                 HubHead const& head) {
    auto const code = header(head, "x-error-code");
    auto const what = std::string{fetching} + ": " + id.repository;
    if (code == "RevisionNotFound") {
        refuse_whole(
            what + " has no revision " + id.revision.value_or("main") + "; name another one",
            "revision", id.revision.value_or("main"));
    }
    if (code == "GatedRepo" || head.status == 403) {
        refuse_whole(
            what + " may not be read; accept its terms on the page of the model, and set HF_TOKEN",
            "repository", id.repository);
    }
    if (head.status == 401 || head.status == 404) {
        refuse_whole(
            what +
                " does not exist, or may not be read without a token; check the name, or set "
                "HF_TOKEN",
            "repository", id.repository);
    }
    auto const answer =
        what + ": the hub answered " + std::to_string(head.status) + " for " + std::string{file};
    if (head.status == 429 || head.status >= 500) give_up(answer + "; try again later");
    refuse_whole(answer + "; check HF_ENDPOINT", "endpoint", std::to_string(head.status));
}

/// "bytes 0-99/1000"
HubAnswer part_of(HubHead const& head) {
    HubAnswer answer{.status = head.status};
    auto const text = header(head, "content-range");
    std::string_view range = text;
    if (!range.starts_with("bytes ")) return answer;
    range.remove_prefix(6);
    auto const slash = range.find('/');
    if (slash == std::string_view::npos) return answer;
    answer.begin = number(range.substr(0, range.find('-'))).value_or(UINT64_MAX);
    answer.size = number(range.substr(slash + 1));
    return answer;
}

}  // namespace

HubRequests::HubRequests(std::shared_ptr<HubConnection> connection, std::string endpoint,
                         std::string token)
    : connection_{std::move(connection)},
      endpoint_{std::move(endpoint)},
      origin_{origin_of(endpoint_)},
      token_{std::move(token)} {}

std::string HubRequests::url_of(TokenizerId const& id, std::string_view revision,
                                std::string_view file) const {
    std::string branch;
    for (auto const c : revision) branch += c == '/' ? std::string{"%2F"} : std::string{c};
    return endpoint_ + "/" + id.repository + "/resolve/" + branch + "/" + std::string{file};
}

HubRequest HubRequests::request(std::string method, std::string const& url) const {
    HubRequest made{.method = std::move(method), .url = url};
    // Compressed, neither the checksum nor the ranges would be those of the file.
    made.headers.emplace_back("accept-encoding", "identity");
    if (!token_.empty() && origin_of(url) == origin_ && is_private(origin_)) {
        made.headers.emplace_back("authorization", "Bearer " + token_);
    }
    return made;
}

std::optional<HubFile> HubRequests::look(TokenizerId const& id, std::string_view revision,
                                         std::string_view file) const {
    auto url = url_of(id, revision, file);
    HubHead head;
    for (int hops = 0; hops <= most_redirects; ++hops) {
        connection_->send(
            request("HEAD", url), [&](HubHead const& one) { head = one; }, [](std::string_view) {});
        if (!is_redirect(head.status) || head.find("x-linked-etag") != nullptr) break;
        // A repository that was renamed. Another host could not know the commit.
        auto const next = redirected(url, header(head, "location"));
        if (origin_of(next) != origin_) break;
        url = next;
    }
    auto const code = header(head, "x-error-code");
    if (head.status == 404 && (code.empty() || code == "EntryNotFound")) return std::nullopt;
    if (head.status != 200 && !is_redirect(head.status)) fail_by_status(id, file, head);
    HubFile found{.name = std::string{file},
                  .commit = header(head, "x-repo-commit"),
                  .checksum = etag_of(head),
                  .size = number(header(head, "x-linked-size"))};
    if (!found.size && head.status == 200) found.size = number(header(head, "content-length"));
    if (!is_commit(found.commit) || !is_checksum(found.checksum)) {
        give_up(std::string{fetching} + ": the hub gave no commit and checksum for " +
                std::string{file} + " of " + id.repository + "; check HF_ENDPOINT");
    }
    return found;
}

void HubRequests::get(TokenizerId const& id, HubFile const& file, std::uint64_t begin,
                      std::uint64_t end, std::function<void(HubAnswer const&)> const& on_begin,
                      std::function<void(std::string_view)> const& on_data) const {
    auto url = url_of(id, file.commit, file.name);
    for (int hops = 0; hops <= most_redirects; ++hops) {
        auto made = request("GET", url);
        made.headers.emplace_back("range",
                                  "bytes=" + std::to_string(begin) + "-" + std::to_string(end - 1));
        std::string next;
        bool wanted = false;
        connection_->send(
            made,
            [&](HubHead const& head) {
                if (is_redirect(head.status)) {
                    next = redirected(url, header(head, "location"));
                    return;
                }
                if (head.status != 200 && head.status != 206 && head.status != 416) {
                    fail_by_status(id, file.name, head);
                }
                wanted = head.status != 416;
                on_begin(part_of(head));
            },
            [&](std::string_view data) {
                if (wanted) on_data(data);
            });
        if (next.empty()) return;
        if (url.starts_with("https://") && !next.starts_with("https://")) break;
        url = next;
    }
    give_up(std::string{fetching} + ": the hub's redirects of " + file.name + " of " +
            id.repository + " lead nowhere; try again later");
}

}  // namespace files

}  // namespace tinkxx::text
