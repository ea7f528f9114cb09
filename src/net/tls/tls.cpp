#include "net/tls/tls.hpp"

#include "net/tls/tls_errors.hpp"

#include <tinkxx/error.hpp>

#include "base/loop/event_loop.hpp"
#include "base/loop/loop_rule.hpp"
#include "base/runtime/runtime_core.hpp"
#include "net/address/url.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <list>
#include <new>
#include <utility>

namespace tinkxx::net {
namespace {

constexpr std::size_t record_bytes = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr std::size_t tls_read_buffer_bytes = std::size_t{64} * 1024;
constexpr std::size_t most_sessions_per_peer = 8;
constexpr std::size_t most_peers = 64;

template <auto Free>
struct Deleter {
    template <class T>
    void operator()(T* object) const noexcept {
        Free(object);
    }
};
using SslPtr = std::unique_ptr<SSL, Deleter<SSL_free>>;
using ContextPtr = std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>>;
using SessionPtr = std::unique_ptr<SSL_SESSION, Deleter<SSL_SESSION_free>>;

/// The newest sessions of each peer.
class SessionStore {
public:
    void put(std::string const& peer, SessionPtr session) {
        auto entry = find(peer);
        if (entry == entries_.end()) {
            if (entries_.size() == most_peers) entries_.pop_front();
            entry = entries_.emplace(entries_.end(), peer);
        }
        entry->sessions.push_back(std::move(session));
        if (entry->sessions.size() > most_sessions_per_peer) entry->sessions.pop_front();
    }

    /// A session to offer, or null. Those of TLS 1.3 are given out once: reuse would let an
    /// onlooker link the connections (RFC 8446, C.4).
    SessionPtr take(std::string const& peer) {
        auto const entry = find(peer);
        if (entry == entries_.end() || entry->sessions.empty()) return nullptr;
        auto& newest = entry->sessions.back();
        if (::SSL_SESSION_get_protocol_version(newest.get()) < TLS1_3_VERSION) {
            ::SSL_SESSION_up_ref(newest.get());
            return SessionPtr{newest.get()};
        }
        auto session = std::move(newest);
        entry->sessions.pop_back();
        return session;
    }

private:
    struct Entry {
        explicit Entry(std::string peer_) : peer{std::move(peer_)} {}
        std::string peer;
        std::deque<SessionPtr> sessions;
    };
    std::list<Entry>::iterator find(std::string const& peer) {
        auto const entry = std::find_if(entries_.begin(), entries_.end(),
                                        [&](Entry const& e) { return e.peer == peer; });
        if (entry != entries_.end()) entries_.splice(entries_.end(), entries_, entry);
        return entry;
    }

    std::list<Entry> entries_;  // least recently used first
};

class TlsContextImpl;

class TlsStreamImpl final : public TlsStream, private StreamOwner, private Timer {
public:
    TlsStreamImpl(std::shared_ptr<TlsContextImpl> context, base::EventLoop& loop,
                  std::unique_ptr<Stream> lower, TlsPeer const& peer);
    ~TlsStreamImpl() override;

    Handshake handshake() override;
    bool permanent() const noexcept override { return permanent_; }
    void set_owner(StreamOwner* owner) noexcept override { owner_ = owner; }
    void want_read() override;
    void want_write() override;
    IoResult read(std::span<char> into) override;
    IoResult write(std::span<iovec const> pieces) override;
    std::string error_text() const override { return error_; }
    std::string_view alpn() const noexcept override;
    bool resumed() const noexcept override { return ::SSL_session_reused(ssl_.get()) == 1; }
    std::string_view peer() const noexcept override { return lower_->peer(); }

    static int on_verify(int accepted, X509_STORE_CTX* verification);
    static int on_session(SSL* ssl, SSL_SESSION* session);

private:
    static BIO_METHOD const* bio_method();
    static int bio_read(BIO* bio, char* data, int size);
    static int bio_write(BIO* bio, char const* data, int size);
    static long bio_control(BIO* bio, int command, long number, void* pointer);

    void on_readable() override;
    void on_writable() override;
    void on_time() override;

    void deliver_readable();
    void deliver_writable();
    /// What to encrypt next: of the first piece from `offset` on, and of those that follow it.
    std::span<char const> next_record(std::span<iovec const> pieces, std::size_t offset);
    /// Keeps the text of what SSL_get_error called `kind`.
    void explain(int kind);

    std::shared_ptr<TlsContextImpl> context_;
    base::EventLoop& loop_;
    std::unique_ptr<Stream> lower_;
    SslPtr ssl_;
    StreamOwner* owner_{nullptr};
    std::string host_;
    std::string session_key_;
    std::string refusal_;  // why the certificate was refused
    std::string error_;
    std::size_t retry_bytes_{0};  // of the write that OpenSSL wants to see again
    bool open_{false};            // the handshake is done
    bool permanent_{false};       // it failed, and will again
    bool read_failed_{false};
    bool write_failed_{false};
    bool wants_read_{false};  // the owner does
    bool wants_write_{false};
    bool read_needs_write_{false};  // e.g. to answer a key update
    bool write_needs_read_{false};
    bool drained_{false};      // OpenSSL has nothing more to give until the lower stream has
    bool lower_short_{false};  // within one call: the lower stream has nothing more
    bool lower_ended_{false};
};

class TlsContextImpl final : public TlsContext,
                             public std::enable_shared_from_this<TlsContextImpl> {
public:
    explicit TlsContextImpl(TlsOptions const& options);

    std::unique_ptr<TlsStream> wrap(base::EventLoop& loop, std::unique_ptr<Stream> lower,
                                    TlsPeer const& peer) override {
        return std::make_unique<TlsStreamImpl>(shared_from_this(), loop, std::move(lower), peer);
    }

    [[nodiscard]] SSL_CTX* native() const noexcept { return context_.get(); }
    SessionStore& sessions() noexcept { return sessions_; }
    /// Room to join the pieces of one record in; its content is not kept between calls.
    std::array<char, record_bytes>& scratch() noexcept { return scratch_; }

private:
    void load_client_certificate(TlsOptions const& options);

    ContextPtr context_;
    SessionStore sessions_;
    std::array<char, record_bytes> scratch_;
};

[[noreturn]] void refuse_file(char const* field, std::string const& path, std::string const& why) {
    throw ValidationError{
        ErrorDetails{.kind = ErrorKind::validation,
                     .message = "NetOptions::" + std::string{field} + ": '" + path + "': " + why,
                     .field = field,
                     .value = path}};
}

/// Without this OpenSSL asks at the terminal for the passphrase of an encrypted key.
int no_passphrase(char*, int, int, void*) { return 0; }

TlsContextImpl::TlsContextImpl(TlsOptions const& options)
    : context_{SSL_CTX_new(TLS_client_method())} {
    auto* const context = context_.get();
    if (context == nullptr) throw std::bad_alloc{};
    ::SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    ::SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    ::SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    // Many records per system call instead of two calls per record.
    ::SSL_CTX_set_read_ahead(context, 1);
    ::SSL_CTX_set_default_read_buffer_len(context, tls_read_buffer_bytes);
    ::SSL_CTX_set_default_passwd_cb(context, no_passphrase);
    ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, &TlsStreamImpl::on_verify);
    ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    ::SSL_CTX_sess_set_new_cb(context, &TlsStreamImpl::on_session);

    ::SSL_CTX_set_default_verify_paths(context);  // a missing system store trusts nobody
    ::ERR_clear_error();
    if (!options.ca_file.empty() &&
        ::SSL_CTX_load_verify_file(context, options.ca_file.c_str()) != 1) {
        refuse_file("tls.ca_file", options.ca_file,
                    "not a readable PEM file of certificates (" + last_openssl_error() + ")");
    }
    load_client_certificate(options);
}

void TlsContextImpl::load_client_certificate(TlsOptions const& options) {
    auto const& certificate = options.client_certificate_file;
    auto const& key = options.client_key_file;
    if (certificate.empty() && key.empty()) return;
    if (certificate.empty()) {
        refuse_file("tls.client_certificate_file", certificate, "missing; a key alone is no use");
    }
    if (key.empty()) {
        refuse_file("tls.client_key_file", key, "missing; a certificate needs its key");
    }
    if (::SSL_CTX_use_certificate_chain_file(context_.get(), certificate.c_str()) != 1) {
        refuse_file("tls.client_certificate_file", certificate,
                    "not a readable PEM file of certificates (" + last_openssl_error() + ")");
    }
    if (::SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM) != 1) {
        auto const error = ::ERR_peek_last_error();
        if (ERR_GET_LIB(error) == ERR_LIB_X509 &&
            (ERR_GET_REASON(error) == X509_R_KEY_VALUES_MISMATCH ||
             ERR_GET_REASON(error) == X509_R_KEY_TYPE_MISMATCH)) {
            ::ERR_clear_error();
            refuse_file("tls.client_key_file", key,
                        "not the key of the certificate in '" + certificate + "'");
        }
        refuse_file("tls.client_key_file", key,
                    "not a readable PEM key without a passphrase (" + last_openssl_error() + ")");
    }
    if (::SSL_CTX_check_private_key(context_.get()) != 1) {
        ::ERR_clear_error();
        refuse_file("tls.client_key_file", key,
                    "not the key of the certificate in '" + certificate + "'");
    }
}

/// ALPN's wire form: each name after a byte with its length.
std::string alpn_wire(std::span<std::string_view const> names) {
    std::string wire;
    for (auto const name : names) {
        wire += static_cast<char>(name.size());
        wire += name;
    }
    return wire;
}

TlsStreamImpl::TlsStreamImpl(std::shared_ptr<TlsContextImpl> context, base::EventLoop& loop,
                             std::unique_ptr<Stream> lower, TlsPeer const& peer)
    : context_{std::move(context)},
      loop_{loop},
      lower_{std::move(lower)},
      ssl_{SSL_new(context_->native())},
      host_{peer.host},
      session_key_{host_port(peer.host, peer.port) + ' ' + peer.via} {
    auto* const bio = ::BIO_new(bio_method());
    if (ssl_ == nullptr || bio == nullptr) {
        ::BIO_free(bio);
        throw std::bad_alloc{};
    }
    ::BIO_set_data(bio, this);
    ::BIO_set_init(bio, 1);
    ::SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_app_data(ssl_.get(), this);
    ::SSL_set_connect_state(ssl_.get());

    // A dot at the end only tells the resolver not to append domains.
    auto name = peer.host;
    if (name.ends_with('.')) name.pop_back();
    auto* const rules = ::SSL_get0_param(ssl_.get());
    ::X509_VERIFY_PARAM_set_hostflags(
        rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    bool verifiable = true;
    if (::X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str()) != 1) {
        verifiable = ::SSL_set1_host(ssl_.get(), name.c_str()) == 1 &&
                     SSL_set_tlsext_host_name(ssl_.get(), name.c_str()) == 1;
    }
    auto const alpn = alpn_wire(peer.alpn);
    verifiable = verifiable && ::SSL_set_alpn_protos(
                                   ssl_.get(), reinterpret_cast<unsigned char const*>(alpn.data()),
                                   static_cast<unsigned>(alpn.size())) == 0;
    ::ERR_clear_error();
    if (!verifiable) {
        // Never connect to a name that cannot be checked.
        read_failed_ = write_failed_ = permanent_ = true;
        error_ = "'" + host_ + "' cannot be checked against a certificate";
    } else if (auto const session = context_->sessions().take(session_key_)) {
        ::SSL_set_session(ssl_.get(), session.get());
    }
    lower_->set_owner(this);
}

TlsStreamImpl::~TlsStreamImpl() {
    ::ERR_clear_error();
    if (open_ && !read_failed_ && !write_failed_ && retry_bytes_ == 0) {
        ::SSL_shutdown(ssl_.get());
        ::ERR_clear_error();
    }
    // OpenSSL forbids the session of a connection that was not shut down to be resumed; a cut
    // connection says nothing against its session.
    ::SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

TlsStream::Handshake TlsStreamImpl::handshake() {
    TINKXX_ASSERT_LOOP(loop_);
    if (open_) return Handshake::done;
    if (read_failed_) return Handshake::failed;
    ::ERR_clear_error();
    lower_short_ = false;
    auto const result = ::SSL_do_handshake(ssl_.get());
    if (result == 1) {
        open_ = true;
        return Handshake::done;
    }
    switch (auto const kind = ::SSL_get_error(ssl_.get(), result)) {
        case SSL_ERROR_WANT_READ:
            lower_->want_read();
            return Handshake::pending;
        case SSL_ERROR_WANT_WRITE:
            lower_->want_write();
            return Handshake::pending;
        default:
            read_failed_ = write_failed_ = true;
            explain(kind);
            return Handshake::failed;
    }
}

void TlsStreamImpl::want_read() {
    wants_read_ = true;
    if (read_needs_write_) {
        lower_->want_write();
    } else if (read_failed_ || (::SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0 ||
               (!drained_ && ::SSL_has_pending(ssl_.get()) == 1)) {
        // What OpenSSL knows already the socket will not announce again.
        loop_.arm(*this, loop_.now(), Precision::exact);
    } else {
        lower_->want_read();
    }
}

void TlsStreamImpl::want_write() {
    wants_write_ = true;
    if (write_needs_read_) {
        lower_->want_read();
    } else {
        lower_->want_write();
    }
}

void TlsStreamImpl::on_readable() {
    drained_ = false;
    if (!open_) {
        if (owner_ != nullptr) owner_->on_readable();
        return;
    }
    if (wants_write_ && write_needs_read_) {
        // Either call may destroy this, so the other one comes by the timer.
        if (wants_read_) loop_.arm(*this, loop_.now(), Precision::exact);
        deliver_writable();
    } else {
        deliver_readable();
    }
}

void TlsStreamImpl::on_writable() {
    if (!open_) {
        if (owner_ != nullptr) owner_->on_writable();
        return;
    }
    if (wants_read_ && read_needs_write_) {
        if (!wants_write_) return deliver_readable();
        loop_.arm(*this, loop_.now(), Precision::exact);
    }
    deliver_writable();
}

void TlsStreamImpl::on_time() { deliver_readable(); }

void TlsStreamImpl::deliver_readable() {
    if (std::exchange(wants_read_, false) && owner_ != nullptr) owner_->on_readable();
}

void TlsStreamImpl::deliver_writable() {
    if (std::exchange(wants_write_, false) && owner_ != nullptr) owner_->on_writable();
}

IoResult TlsStreamImpl::read(std::span<char> into) {
    TINKXX_ASSERT_LOOP(loop_);
    if (read_failed_) return {.status = IoResult::Status::error};
    ::ERR_clear_error();
    lower_short_ = false;
    read_needs_write_ = false;
    std::size_t filled = 0;
    while (filled < into.size()) {
        std::size_t got = 0;
        auto const result =
            ::SSL_read_ex(ssl_.get(), into.data() + filled, into.size() - filled, &got);
        if (result == 1) {
            filled += got;
            continue;
        }
        auto const kind = ::SSL_get_error(ssl_.get(), result);
        if (kind == SSL_ERROR_WANT_READ) {
            drained_ = true;
            break;
        }
        if (kind == SSL_ERROR_WANT_WRITE) {
            read_needs_write_ = true;
            break;
        }
        if (kind == SSL_ERROR_ZERO_RETURN) {
            // After data, the next call comes here again.
            if (filled == 0) return {.status = IoResult::Status::closed};
            break;
        }
        read_failed_ = true;
        if (kind == SSL_ERROR_SSL) write_failed_ = true;
        explain(kind);
        if (filled == 0) return {.status = IoResult::Status::error};
        break;
    }
    if (filled == 0) return {.status = IoResult::Status::would_block};
    return {.bytes = filled};
}

std::span<char const> TlsStreamImpl::next_record(std::span<iovec const> pieces,
                                                 std::size_t offset) {
    // A write that OpenSSL did not finish must be repeated with the same bytes, no more: it
    // has encrypted them already.
    auto const wanted = retry_bytes_ != 0 ? retry_bytes_ : record_bytes;
    auto const* const data = static_cast<char const*>(pieces.front().iov_base) + offset;
    auto size = std::min(pieces.front().iov_len - offset, wanted);
    if (size == wanted || pieces.size() == 1) return {data, size};
    auto& scratch = context_->scratch();
    std::memcpy(scratch.data(), data, size);
    for (auto const& piece : pieces.subspan(1)) {
        auto const more = std::min(piece.iov_len, wanted - size);
        if (more != 0) std::memcpy(scratch.data() + size, piece.iov_base, more);
        size += more;
        if (size == wanted) break;
    }
    return {scratch.data(), size};
}

IoResult TlsStreamImpl::write(std::span<iovec const> pieces) {
    TINKXX_ASSERT_LOOP(loop_);
    if (write_failed_) return {.status = IoResult::Status::error};
    ::ERR_clear_error();
    lower_short_ = false;
    write_needs_read_ = false;
    std::size_t written = 0;
    std::size_t offset = 0;  // within the first piece
    auto const skip = [&](std::size_t bytes) {
        while (!pieces.empty() && pieces.front().iov_len - offset <= bytes) {
            bytes -= pieces.front().iov_len - offset;
            offset = 0;
            pieces = pieces.subspan(1);
        }
        offset += bytes;
    };
    for (skip(0); !pieces.empty();) {
        auto const record = next_record(pieces, offset);
        if (record.size() < retry_bytes_) {
            read_failed_ = write_failed_ = true;
            error_ = "a TLS write was not repeated as it began";
            return {.status = IoResult::Status::error};
        }
        std::size_t sent = 0;
        auto const result = ::SSL_write_ex(ssl_.get(), record.data(), record.size(), &sent);
        if (result == 1) {
            retry_bytes_ = 0;
            written += sent;
            skip(sent);
            continue;
        }
        auto const kind = ::SSL_get_error(ssl_.get(), result);
        if (kind == SSL_ERROR_WANT_WRITE || kind == SSL_ERROR_WANT_READ) {
            retry_bytes_ = record.size();
            write_needs_read_ = kind == SSL_ERROR_WANT_READ;
            break;
        }
        // The answer of a server that stopped listening may still be readable.
        write_failed_ = true;
        if (kind == SSL_ERROR_SSL) read_failed_ = true;
        explain(kind);
        if (written == 0) return {.status = IoResult::Status::error};
        break;
    }
    if (written == 0) return {.status = IoResult::Status::would_block};
    return {.bytes = written};
}

void TlsStreamImpl::explain(int kind) {
    if (!refusal_.empty()) {
        error_ = refusal_;
        permanent_ = true;
    } else if (auto const error = ::ERR_peek_error(); kind == SSL_ERROR_SSL && error != 0) {
        error_ = explain_tls_error(error, !open_);
        permanent_ = stays_broken(error);
    } else {
        error_ = lower_->error_text();
    }
    ::ERR_clear_error();
}

std::string_view TlsStreamImpl::alpn() const noexcept {
    unsigned char const* name = nullptr;
    unsigned size = 0;
    ::SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    return {reinterpret_cast<char const*>(name), size};
}

int TlsStreamImpl::on_verify(int accepted, X509_STORE_CTX* verification) {
    if (accepted == 1) return 1;
    auto* const ssl = static_cast<SSL*>(
        ::X509_STORE_CTX_get_ex_data(verification, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
    auto& self = *static_cast<TlsStreamImpl*>(SSL_get_app_data(ssl));
    self.refusal_ = explain_refusal(verification, self.host_);
    return 0;
}

int TlsStreamImpl::on_session(SSL* ssl, SSL_SESSION* session) {
    auto& self = *static_cast<TlsStreamImpl*>(SSL_get_app_data(ssl));
    if (::SSL_SESSION_is_resumable(session) != 1) return 0;
    self.context_->sessions().put(self.session_key_, SessionPtr{session});
    return 1;  // the reference is ours now
}

BIO_METHOD const* TlsStreamImpl::bio_method() {
    static BIO_METHOD const* const method = [] {
        auto* const made = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
        if (made == nullptr) throw std::bad_alloc{};
        ::BIO_meth_set_read(made, &TlsStreamImpl::bio_read);
        ::BIO_meth_set_write(made, &TlsStreamImpl::bio_write);
        ::BIO_meth_set_ctrl(made, &TlsStreamImpl::bio_control);
        return made;
    }();
    return method;
}

int TlsStreamImpl::bio_read(BIO* bio, char* data, int size) {
    auto& self = *static_cast<TlsStreamImpl*>(::BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (self.lower_short_) {
        BIO_set_retry_read(bio);
        return -1;
    }
    auto const result = self.lower_->read({data, static_cast<std::size_t>(size)});
    switch (result.status) {
        case IoResult::Status::ok:
            self.lower_short_ = result.bytes < static_cast<std::size_t>(size);
            return static_cast<int>(result.bytes);
        case IoResult::Status::would_block:
            BIO_set_retry_read(bio);
            return -1;
        case IoResult::Status::closed:
            self.lower_ended_ = true;
            return 0;
        case IoResult::Status::error:
            break;
    }
    return -1;
}

int TlsStreamImpl::bio_write(BIO* bio, char const* data, int size) {
    auto& self = *static_cast<TlsStreamImpl*>(::BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    // The lower stream does not write through iov_base.
    iovec const piece{.iov_base = const_cast<char*>(data),
                      .iov_len = static_cast<std::size_t>(size)};
    auto const result = self.lower_->write({&piece, 1});
    if (result.status == IoResult::Status::ok) return static_cast<int>(result.bytes);
    if (result.status == IoResult::Status::would_block) BIO_set_retry_write(bio);
    return -1;
}

long TlsStreamImpl::bio_control(BIO* bio, int command, long, void*) {
    auto const& self = *static_cast<TlsStreamImpl*>(::BIO_get_data(bio));
    switch (command) {
        case BIO_CTRL_EOF:
            return self.lower_ended_ ? 1 : 0;
        case BIO_CTRL_FLUSH:
            return 1;
        default:
            return 0;
    }
}

}  // namespace

std::shared_ptr<TlsContext> TlsContext::make(TlsOptions const& options) {
    auto made = std::make_shared<TlsContextImpl>(options);
    // OpenSSL cleans up with the process, and no thread may use it after that.
    static bool const at_exit = (detail::end_runtimes_with_process(), true);
    (void)at_exit;
    return made;
}

}  // namespace tinkxx::net
