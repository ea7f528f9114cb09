#include "service/rest/download_call.hpp"

#include "files/folder_writer.hpp"
#include "service/http/http_retry.hpp"
#include "service/text/endpoint.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <mutex>
#include <system_error>
#include <utility>

namespace tinkxx::service {
namespace {

Error bad_answer(std::string why) {
    return Error{{.kind = ErrorKind::validation, .message = std::move(why), .field = "url"}};
}

/// Whether new links may be what is missing.
bool may_be_expired(Error const& error) noexcept {
    auto const status = error.http_status().value_or(0);
    return status == 400 || status == 401 || status == 403 || status == 404 || status == 410;
}

bool may_heal(Error const& error) noexcept {
    if (error.kind() == ErrorKind::timeout || error.kind() == ErrorKind::connection) {
        return error.retryable() || error.stopped() == RetryEnd::not_repeatable;
    }
    return error.kind() == ErrorKind::status && error.retryable();
}

std::string megabytes(std::int64_t bytes) {
    return std::to_string((bytes + 500'000) / 1'000'000) + " MB";
}

}  // namespace

// Work --------------------------------------------------------------------------------------------

struct DownloadCall::Work {
    /// Tells the caller how much is there, unless that is being done.
    void tell() {
        if (!options.on_progress || telling.test_and_set()) return;
        auto const of = total.load();
        try {
            options.on_progress(there.load(), of < 0 ? std::nullopt : std::optional{of});
        } catch (...) {
            telling.clear();
            throw;
        }
        telling.clear();
    }
    Result<void> open(std::vector<std::string> const& names);
    Result<void> step();
    Result<void> take_apart();

    DownloadOptions options{};
    std::string what{};
    bool archive{false};
    std::unique_ptr<files::DownloadFolder> folder{};
    std::vector<std::unique_ptr<files::PartFile>> parts{};
    std::vector<std::string> names{};
    std::atomic<bool> stopped{false};
    std::atomic<std::int64_t> there{0};
    std::atomic<std::int64_t> total{-1};
    std::atomic_flag telling{};
    std::mutex mutex{};  // guards what follows
    std::map<std::size_t, FileDigest> digests{};
    // Of the end, step by step.
    std::unique_ptr<files::Extraction> extraction{};
    std::size_t checked{0};
    bool told_all{false};
    bool done{false};
    DownloadedCheckpoint result{};
};

Result<void> DownloadCall::Work::open(std::vector<std::string> const& wanted) {
    auto target = options.target;
    if (target.empty()) target = files::DownloadFolder::usual_target(what);
    auto made = files::DownloadFolder::open(target, what);
    if (!made) return made.error();
    folder = *std::move(made);
    result.folder = target;
    names = wanted;
    for (std::size_t i = 0; i < names.size(); ++i) {
        auto part = folder->part(i, names[i]);
        if (!part) return part.error();
        parts.push_back(*std::move(part));
        if (parts.back()->begun()) there += parts.back()->bytes_there();
    }
    return {};
}

/// A bit of what is to be done once all is there.
Result<void> DownloadCall::Work::step() {
    if (!told_all) {
        told_all = true;
        tell();
    }
    if (checked < parts.size()) {
        auto const index = checked++;
        auto const found = digests.find(index);
        if (found == digests.end()) return {};
        auto same = check_digest(parts[index]->path(), found->second);
        if (!same) folder->discard();
        return same;
    }
    if (archive) {
        if (auto taken = take_apart(); !taken) return taken;
        if (!done) return {};
    } else {
        for (std::size_t i = 0; i < names.size(); ++i) {
            result.files.push_back({names[i], parts[i]->mark().bytes});
        }
        done = true;
    }
    return folder->finish();
}

Result<void> DownloadCall::Work::take_apart() {
    if (!extraction) {
        // What an earlier process may have begun.
        std::error_code ignored;
        std::filesystem::remove_all(folder->files(), ignored);
        auto begun = files::Extraction::begin(
            folder->archive(), folder->files(),
            {.most_bytes = options.most_bytes, .most_entries = options.most_files});
        if (!begun) return begun.error();
        extraction = *std::move(begun);
    }
    auto const more = extraction->step();
    if (!more) {
        extraction.reset();
        // An archive that cannot be read is of no use; a disk that is full may be emptied.
        if (more.error().field() != "target") folder->discard();
        return more.error();
    }
    done = *more;
    if (!done) return {};
    for (auto const& [name, bytes] : extraction->written()) result.files.push_back({name, bytes});
    extraction.reset();
    return {};
}

struct DownloadCall::File {
    std::string name{};
    std::size_t index{0};
    files::PartFile* part{nullptr};
    /// Asked for by parts; false once the server has none to give of it.
    bool by_parts{true};
    bool done{false};
    /// What was fetched belongs to another version of the file.
    bool outdated{false};
    bool probing{false};
    /// How long it is, as the head of an answer says.
    std::optional<std::int64_t> announced{};
    /// Pieces that are being fetched.
    std::vector<std::size_t> fetched{};
    [[nodiscard]] bool idle() const noexcept { return !probing && fetched.empty(); }
    /// Whether there is something to ask for now.
    [[nodiscard]] bool wants() const {
        if (done || outdated || probing) return false;
        return !part->begun() || next_piece();
    }
    /// The first piece that is neither there nor being fetched.
    [[nodiscard]] std::optional<std::size_t> next_piece() const {
        for (std::size_t i = 0; i < part->pieces(); ++i) {
            bool const under_way = std::ranges::find(fetched, i) != fetched.end();
            if (!under_way && !part->has(i)) return i;
        }
        return std::nullopt;
    }
};

struct DownloadCall::Stream {
    std::shared_ptr<File> file{};
    std::shared_ptr<Work> work{};
    /// None: the first part, or all of it, as the server likes.
    std::optional<std::size_t> piece{};
    std::int64_t offset{0};
    /// How much was asked for; none: all there is.
    std::optional<std::int64_t> wanted{};
    /// Of the answer, before its first byte.
    int status{0};
    /// Which links it was started with.
    int links{0};
    /// For the handler.
    std::int64_t received{0};
    Future<void> told{};

    void take(std::span<char const> data);
    [[nodiscard]] Ended end(Result<HttpResponse> const& outcome);
    [[nodiscard]] Ended end_part(HttpResponse const& response);
    [[nodiscard]] Result<void> keep(ContentRange const& range, std::string validator);
    [[nodiscard]] Error too_large() const;
};

struct DownloadCall::Ended {
    enum class How : std::uint8_t { part, whole, outdated, no_parts, failed };
    How how{How::failed};
    std::optional<Error> error{};
};

void DownloadCall::Stream::take(std::span<char const> data) {
    if (work->stopped) return;
    if (piece && status != 206) bad_answer("the file has changed").raise();
    auto const size = static_cast<std::int64_t>(data.size());
    if (wanted && status == 206 && received + size > *wanted) {
        bad_answer("the server sent more than was asked for").raise();
    }
    if (offset + received > work->options.most_bytes - size) too_large().raise();
    if (auto wrote = file->part->write(data, offset + received); !wrote) wrote.error().raise();
    received += size;
    work->there += size;
    work->tell();
}

DownloadCall::Ended DownloadCall::Stream::end(Result<HttpResponse> const& outcome) {
    using How = Ended::How;
    auto ended = [&]() -> Ended {
        if (!outcome) {
            if (piece && status != 0 && status != 206) return {.how = How::outdated};
            // No part of an empty file can be had.
            if (outcome.error().http_status() == 416) {
                return {.how = piece ? How::outdated : How::no_parts};
            }
            return {.how = How::failed, .error = outcome.error()};
        }
        if (outcome->status == 206 && wanted) return end_part(*outcome);
        if (piece) return {.how = How::outdated};
        if (auto kept = file->part->finish_whole(received); !kept) {
            return {.how = How::failed, .error = kept.error()};
        }
        return {.how = How::whole};
    }();
    if (ended.how != How::part && ended.how != How::whole) {
        work->there -= received;
    } else if (auto digest = file_digest(outcome->headers, ended.how == How::whole)) {
        std::scoped_lock const lock{work->mutex};
        work->digests.insert_or_assign(file->index, *std::move(digest));
    }
    return ended;
}

DownloadCall::Ended DownloadCall::Stream::end_part(HttpResponse const& response) {
    using How = Ended::How;
    auto const* const line = response.headers.find("Content-Range");
    auto const range = line == nullptr ? std::nullopt : parse_content_range(*line);
    bool const fits = range && range->first == offset && range->last - range->first + 1 == received;
    if (!fits) {
        return {.how = How::failed,
                .error = bad_answer("the server sent another part of the file than was asked for")};
    }
    if (piece) {
        if (range->total != file->part->mark().bytes || received != *wanted) {
            return {.how = How::outdated};
        }
        if (auto kept = file->part->finish_piece(*piece); !kept) {
            return {.how = How::failed, .error = kept.error()};
        }
        return {.how = How::part};
    }
    if (received != std::min(*wanted, range->total)) return {.how = How::no_parts};
    if (auto kept = keep(*range, range_validator(response.headers)); !kept) {
        return {.how = How::failed, .error = kept.error()};
    }
    return {.how = How::part};
}

Error DownloadCall::Stream::too_large() const {
    return bad_answer("the file " + file->name + " is larger than DownloadOptions::most_bytes, " +
                      std::to_string(work->options.most_bytes));
}

Result<void> DownloadCall::Stream::keep(ContentRange const& range, std::string validator) {
    auto const most = std::min(work->options.most_bytes / work->options.piece_bytes + 1,
                               static_cast<std::int64_t>(files::PartFile::most_pieces));
    if (range.total > work->options.most_bytes || range.total / work->options.piece_bytes >= most) {
        return too_large();
    }
    auto begun = file->part->begin({.bytes = range.total, .validator = std::move(validator)},
                                   work->options.piece_bytes);
    return begun ? file->part->finish_piece(0) : begun;
}

// The call ----------------------------------------------------------------------------------------

DownloadCall::DownloadCall(Promise<DownloadedCheckpoint> promise, std::shared_ptr<ClientCore> core,
                           std::string name, Runtime const& runtime, DownloadOrder order)
    : PromiseCall{std::move(promise), std::move(core), nullptr, std::move(name)},
      runtime_{runtime.context()},
      order_{std::move(order)},
      work_{std::make_shared<Work>()} {
    work_->options = order_.options;
    work_->what = order_.what;
    work_->archive = order_.archive;
}

void DownloadCall::go() { ask_for_links(); }

void DownloadCall::ask_for_links() {
    asking_ = true;
    asked_at_ = scheduler().now();
    std::weak_ptr<DownloadCall> const weak =
        std::static_pointer_cast<DownloadCall>(shared_from_this());
    auto asked = order_.links();
    asked_ = asked.then_result([weak, &loop = scheduler()](Result<DownloadLinks> links) {
        loop.post([weak, links = std::move(links)]() mutable {
            auto const call = weak.lock();
            if (call && call->under_way()) call->got_links(std::move(links));
        });
    });
    look();
}

void DownloadCall::got_links(Result<DownloadLinks> links) {
    asking_ = false;
    if (!links) return fail(named(links.error()));
    links_ = *std::move(links);
    ++links_number_;
    if (links_.urls.empty()) {
        return fail(named(bad_answer("the server names no files; export the weights again")));
    }
    for (auto const& [name, url] : links_.urls) {
        if (auto const problem =
                name.empty() && order_.archive ? std::nullopt : files::name_problem(name)) {
            return fail(named(bad_answer("the server names a file \"" + name.substr(0, 200) +
                                         "\", which " + *problem + "; nothing was written")));
        }
        if (!is_absolute_url(url)) {
            return fail(named(bad_answer("the server gives no web address for " + name)));
        }
    }
    if (files_.empty()) return open_folder();
    for (auto const& file : files_) {
        if (!links_.urls.contains(file->name)) {
            return fail(named(bad_answer("the server has no " + file->name + " any more")));
        }
    }
    pump();
}

void DownloadCall::open_folder() {
    std::vector<std::string> names;
    for (auto const& [name, url] : links_.urls) {
        auto const file = std::make_shared<File>();
        file->name = name;
        file->index = names.size();
        files_.push_back(file);
        names.push_back(name);
    }
    elsewhere([work = work_, names = std::move(names)] { return work->open(names); },
              [this](Result<void> const& outcome) { opened(outcome); });
}

void DownloadCall::opened(Result<void> outcome) {
    if (!outcome) return fail(named(outcome.error()));
    for (auto const& file : files_) file->part = work_->parts[file->index].get();
    tell_total();
    pump();
}

void DownloadCall::tell_total() {
    std::int64_t total = 0;
    for (auto const& file : files_) {
        if (!file->part->begun() && !file->announced) return;
        total += file->part->begun() ? file->part->mark().bytes : *file->announced;
    }
    work_->total = total;
}

bool DownloadCall::links_expire() const {
    auto const now = scheduler().wall();
    return links_.expires.time - now < least_left && scheduler().now() - asked_at_ > between_links;
}

void DownloadCall::pump() {
    if (!under_way() || asking_ || finishing_) return;
    waits_for_.clear();
    auto const wants = [](std::shared_ptr<File> const& file) { return file->wants(); };
    if (links_expire() && std::ranges::any_of(files_, wants)) return ask_for_links();
    for (auto const& file : files_) {
        while (streams_.size() < static_cast<std::size_t>(order_.options.streams)) {
            if (!start_next(*file)) break;
        }
    }
    if (streams_.empty() && std::ranges::all_of(files_, &File::done)) return finish();
    look();
}

/// Asks for what comes next of a file; false if there is nothing that could be asked for now.
bool DownloadCall::start_next(File& file) {
    if (file.done || file.outdated || file.probing) return false;
    if (!file.part->begun()) {
        file.probing = true;
        start(file, std::nullopt);
        return true;
    }
    if (auto const piece = file.next_piece()) {
        file.fetched.push_back(*piece);
        start(file, *piece);
        return true;
    }
    file.done = file.fetched.empty();
    return false;
}

HttpOrder DownloadCall::order_for(File const& file, Stream const& stream) const {
    auto& http = core().http();
    auto const& config = http.config();
    auto const& url = links_.urls.at(file.name);
    HttpOrder order;
    // Without what it is signed with.
    order.operation = {.method = "GET", .path = url.substr(0, url.find('?'))};
    order.url = config.endpoint.url(url, {}, {});
    order.common_headers = http.foreign_headers();
    order.headers.add("Accept-Encoding", "identity");
    if (stream.wanted) {
        order.headers.add("Range", "bytes=" + std::to_string(stream.offset) + '-' +
                                       std::to_string(stream.offset + *stream.wanted - 1));
        auto const& validator = file.part->mark().validator;
        if (stream.piece && !validator.empty()) order.headers.add("If-Range", validator);
    }
    order.purpose = Purpose::rest;
    order.timeouts = config.timeouts;
    order.timeouts.connect = std::chrono::seconds{60};
    order.max_retries = config.max_retries;
    order.send_credential = false;
    order.max_response_bytes = std::numeric_limits<std::uint64_t>::max();
    return order;
}

void DownloadCall::start(File& file, std::optional<std::size_t> piece) {
    auto const stream = std::make_shared<Stream>();
    stream->file = files_[file.index];
    stream->work = work_;
    stream->piece = piece;
    stream->links = links_number_;
    if (piece) {
        stream->offset = file.part->piece_begin(*piece);
        stream->wanted = file.part->piece_size(*piece);
    } else if (file.by_parts) {
        stream->wanted = order_.options.piece_bytes;
    }
    Promise<HttpResponse> whole{runtime_};
    auto end = whole.get_future();
    auto const call = std::make_shared<HttpStreamCall>(
        core().http().shared_from_this(), nullptr, std::move(whole), order_for(file, *stream),
        [stream](std::span<char const> data) { stream->take(data); });
    std::weak_ptr<DownloadCall> const weak =
        std::static_pointer_cast<DownloadCall>(shared_from_this());
    call->on_head([weak, stream](Head const& head) {
        stream->status = head.status;
        auto const self = weak.lock();
        if (self && self->under_way() && !stream->piece) self->announce(*stream->file, head);
    });
    streams_.push_back(stream);
    call->launch();
    // The last piece has been written by then.
    stream->told =
        end.then_result([weak, stream, &loop = scheduler()](Result<HttpResponse> outcome) {
            if (stream->work->stopped) return;
            auto ended = std::make_shared<Ended>(stream->end(outcome));
            loop.post([weak, stream, ended] {
                auto const self = weak.lock();
                if (self && self->under_way()) self->on_end(stream, *ended);
            });
        });
}

/// A file begins to come: its length may be known before it is all there.
void DownloadCall::announce(File& file, Head const& head) {
    auto const* const range = head.headers.find("Content-Range");
    auto const* const length = head.headers.find("Content-Length");
    if (head.status == 206 && range != nullptr) {
        if (auto const part = parse_content_range(*range)) file.announced = part->total;
    } else if (head.status == 200 && length != nullptr) {
        std::int64_t bytes = 0;
        auto const* const end = length->data() + length->size();
        auto const read = std::from_chars(length->data(), end, bytes);
        if (read.ec == std::errc{} && read.ptr == end && bytes >= 0) file.announced = bytes;
    }
    tell_total();
}

void DownloadCall::on_end(std::shared_ptr<Stream> const& stream, Ended const& ended) {
    using How = Ended::How;
    auto const keep_alive = shared_from_this();
    std::erase(streams_, stream);
    auto& file = *stream->file;
    if (stream->piece) {
        std::erase(file.fetched, *stream->piece);
    } else {
        file.probing = false;
    }
    if (ended.how == How::part || ended.how == How::whole) {
        failures_ = 0;
        renewed_ = false;
        file.done = ended.how == How::whole;
        tell_total();
    } else {
        if (ended.how == How::no_parts) file.by_parts = false;
        if (ended.how == How::outdated) file.outdated = true;
        if (ended.how == How::failed) return on_failed(*stream, *ended.error);
    }
    if (file.outdated) return restart_if_idle(file);
    pump();
}

/// Begins a file anew once nobody writes to it any more.
void DownloadCall::restart_if_idle(File& file) {
    if (!file.idle()) return;
    if (++failures_ > most_failures) {
        return fail(named(bad_answer("the file " + file.name + " changes all the time")));
    }
    elsewhere(
        [work = work_, part = file.part] {
            work->there -= part->bytes_there();
            return part->restart();
        },
        [this, index = file.index](Result<void> const& outcome) {
            if (!outcome) return fail(named(outcome.error()));
            files_[index]->outdated = false;
            pump();
        });
}

void DownloadCall::on_failed(Stream const& stream, Error const& error) {
    if (may_be_expired(error) && (stream.links != links_number_ || asking_)) return pump();
    if (may_be_expired(error) && !renewed_) {
        renewed_ = true;
        return ask_for_links();
    }
    if (!may_heal(error) || ++failures_ > most_failures) return fail(named(error));
    auto& http = core().http();
    auto const delay = HttpRetry::backoff(failures_ - 1, http.chance());
    http.log(LogLevel::info, name() + ": " + error.what() + "; the rest is asked for again");
    waits_for_ = error.what();
    until_ = scheduler().now() + delay;
    scheduler().arm(again_, until_, Precision::exact);
    look();
}

void DownloadCall::finish() {
    finishing_ = true;
    finish_step();
    look();
}

void DownloadCall::finish_step() {
    elsewhere([work = work_] { return work->step(); },
              [this](Result<void> const& outcome) {
                  if (!outcome) return fail(named(outcome.error()));
                  if (!work_->done) return finish_step();
                  auto const keep_alive = shared_from_this();
                  keep(std::move(work_->result));
              });
}

void DownloadCall::elsewhere(std::function<Result<void>()> work,
                             std::function<void(Result<void>)> then) {
    auto const self = std::static_pointer_cast<DownloadCall>(shared_from_this());
    core().http().runtime().run_callback(
        [self, work = std::move(work), then = std::move(then)] {
            auto const outcome = std::make_shared<Result<void>>(work());
            self->scheduler().post([self, then, outcome] {
                if (self->under_way()) then(*outcome);
            });
        },
        [self](Error error) {
            if (self->under_way()) self->fail(self->named(error));
        });
}

void DownloadCall::drop() noexcept {
    work_->stopped = true;
    asked_.cancel();
    for (auto const& stream : streams_) stream->told.cancel();
    streams_.clear();
    scheduler().disarm(again_);
}

Stage DownloadCall::stage() const noexcept {
    if (finishing_) return Stage::decoding;
    if (asking_ || files_.empty()) return Stage::submitting;
    if (!waits_for_.empty()) return Stage::waiting_to_retry;
    return Stage::streaming;
}

void DownloadCall::describe(OperationStatus& status, TimePoint now) const {
    switch (status.stage) {
        case Stage::submitting:
            status.why = "the service has not said yet where the files are";
            break;
        case Stage::decoding:
            status.why = "what was fetched is checked and unpacked";
            break;
        case Stage::waiting_to_retry:
            status.why = waits_for_;
            status.ends_in = until_ - now;
            break;
        default: {
            auto const done = std::ranges::count_if(files_, &File::done);
            auto const total = work_->total.load();
            status.why = std::to_string(done) + " of " + std::to_string(files_.size()) +
                         " files are there, " + megabytes(work_->there);
            if (total >= 0) status.why += " of " + megabytes(total);
            break;
        }
    }
}

}  // namespace tinkxx::service
