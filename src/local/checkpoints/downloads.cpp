#include "local/checkpoints/downloads.hpp"

#include "local/api/json.hpp"
#include "local/api/sending.hpp"
#include "local/checkpoints/tar.hpp"
#include "local/common/times.hpp"
#include "local/store/files.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

namespace tinkxx::local {

using wire::JsonOut;

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Archive final : public Sending {
public:
    Archive(std::shared_ptr<Answer> answer, std::unique_ptr<TarStream> tar)
        : Sending{std::move(answer)}, tar_{std::move(tar)} {}
    Result<std::string> next() override { return tar_->next(); }

private:
    std::unique_ptr<TarStream> tar_;
};

class File final : public Sending {
public:
    File(std::shared_ptr<Answer> answer, Descriptor in, fs::path name)
        : Sending{std::move(answer)}, in_{std::move(in)}, name_{std::move(name)} {}
    Result<std::string> next() override { return read_piece(in_, name_); }

private:
    Descriptor in_;
    fs::path name_;
};

std::string hex(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    for (auto const c : bytes) {
        out += digits[static_cast<unsigned char>(c) >> 4U];
        out += digits[static_cast<unsigned char>(c) & 15U];
    }
    return out;
}

std::string folder_path(TinkerPath const& path) {
    return "/api/v1/training_runs/" + path.run + "/checkpoints/" +
           std::string{to_string(path.kind)} + "/" + path.name;
}

}  // namespace

std::string Downloads::sign(std::string_view text) const {
    std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
    unsigned size = 0;
    HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
         reinterpret_cast<unsigned char const*>(text.data()), text.size(), mac.data(), &size);
    return hex({reinterpret_cast<char const*>(mac.data()), size});
}

std::string Downloads::signed_link(Ask const& ask, std::string const& path, WallTime until) const {
    auto const text = path + "?expires=" + std::to_string(to_micros(until) / 1'000'000);
    return ask.base_url() + text + "&signature=" + sign(text);
}

MaybeRefused Downloads::check_link(Ask const& ask) const {
    auto const path = ask.request.target.substr(0, ask.request.target.find('?'));
    auto const signature = ask.parameter("signature", "");
    if (signature.empty()) {
        if (auto const no = forbidden(access_, ask.request, true)) {
            return Refused{no->status, no->detail};
        }
        return {};
    }
    auto const expires = ask.number("expires", 0, 0, std::int64_t{1} << 40U);
    if (!expires) return expires.refused();
    if (!equal_in_constant_time(signature, sign(path + "?expires=" + std::to_string(*expires)))) {
        return Refused{403, "download: the link is not one of this server; ask for a new one"};
    }
    if (from_micros(*expires * 1'000'000) < uses_.services.scheduler.wall()) {
        return Refused{403, "download: the link has expired; ask for a new one"};
    }
    return {};
}

MaybeRefused Downloads::archive(Ask& ask) {
    // Clients that know the short form of sampler paths leave the kind out.
    if (ask.names.at(1).find('/') == std::string::npos) {
        ask.names[1] = "sampler_weights/" + ask.names[1];
    }
    auto const found = uses_.checkpoints.named(ask);
    if (!found) return found.refused();
    auto const& row = **found;
    auto const until = uses_.services.scheduler.wall() + 15min;
    auto body = json_object([&](JsonOut& json) {
        json.member("url", signed_link(ask, folder_path(row.path) + "/download", until));
        json.member("expires", iso_time(until));
    });
    ask.answer->head(302,
                     {{"Location", signed_link(ask, folder_path(row.path) + "/download", until)},
                      {"Expires", http_date(until)},
                      {"Content-Type", "application/json"}},
                     body.size());
    ask.answer->data(std::move(body));
    ask.answer->done();
    return {};
}

MaybeRefused Downloads::external_urls(Ask& ask) {
    auto const found = uses_.checkpoints.named(ask);
    if (!found) return found.refused();
    auto const& row = **found;
    if (row.path.kind != Kind::external_weights) {
        return Refused{400, "external_weights_urls: " + row.path.text() +
                                " was not saved for others; use save_weights_external"};
    }
    auto const until = uses_.services.scheduler.wall() + 1h;
    auto const entries = std::make_shared<Result<std::vector<Entry>>>(std::vector<Entry>{});
    uses_.services.file_worker->run(
        [entries, folder = uses_.folders.place(row.folder)] { *entries = list_folder(folder); },
        [this, entries, until, path = row.path, asked = std::move(ask)] {
            if (!*entries) {
                return send_refusal(*asked.answer, {500, std::string{"external_weights_urls: "} +
                                                             entries->error().what()});
            }
            send_json(*asked.answer, json_object([&](JsonOut& json) {
                json.key("urls");
                json.open_object();
                for (auto const& [name, kind] : **entries) {
                    if (name.front() == own_file_prefix) continue;
                    json.member(name,
                                signed_link(asked, folder_path(path) + "/files/" + name, until));
                }
                json.close_object();
                json.member("expires", iso_time(until));
            }));
        });
    return {};
}

MaybeRefused Downloads::download(Ask& ask) {
    if (auto no = check_link(ask)) return no;
    auto const found = uses_.checkpoints.named(ask);
    if (!found) return found.refused();
    auto const& row = **found;
    auto const tar = std::make_shared<std::optional<Result<std::unique_ptr<TarStream>>>>();
    uses_.services.file_worker->run(
        [tar, folder = uses_.folders.place(row.folder), created = row.created] {
            tar->emplace(TarStream::open(folder, {"checkpoint_complete"}, created));
        },
        [this, tar, name = row.path.name, answer = ask.answer] {
            if (!**tar) {
                return send_refusal(*answer,
                                    {500, std::string{"download: "} + (*tar)->error().what()});
            }
            answer->head(200,
                         {{"Content-Type", "application/x-tar"},
                          {"Content-Disposition", "attachment; filename=\"" + name + ".tar\""}},
                         std::nullopt);
            std::make_shared<Archive>(answer, **std::move(*tar))
                ->pump_from(*uses_.services.file_worker, uses_.services.alive);
        });
    return {};
}

MaybeRefused Downloads::download_file(Ask& ask) {
    if (auto no = check_link(ask)) return no;
    auto const found = uses_.checkpoints.named(ask);
    if (!found) return found.refused();
    auto const& row = **found;
    auto const& name = ask.names.at(2);
    Refused const none{404, "download: " + row.path.text() + " has no file " + name.substr(0, 200)};
    if (!valid_name(name) || name.front() == own_file_prefix) return none;
    auto const opened = std::make_shared<std::optional<Result<Descriptor>>>();
    auto const place = uses_.folders.place(row.folder) / name;
    uses_.services.file_worker->run(
        [opened, place] { opened->emplace(open_regular(place)); },
        [this, opened, place, none, answer = ask.answer] {
            if (!**opened) return send_refusal(*answer, none);
            auto file = **std::move(*opened);
            answer->head(200, {{"Content-Type", "application/octet-stream"}}, file_bytes(file));
            std::make_shared<File>(answer, std::move(file), place)
                ->pump_from(*uses_.services.file_worker, uses_.services.alive);
        });
    return {};
}

}  // namespace tinkxx::local
