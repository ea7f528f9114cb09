#include "local/core/bodies.hpp"
#include "local/api/json.hpp"
#include "local/api/listing.hpp"
#include "local/api/sending.hpp"
#include "local/api/times.hpp"
#include "local/store/files.hpp"
#include "local/store/tar.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>

namespace tinkxx::local {

using wire::JsonOut;

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

void write(JsonOut& json, CheckpointRow const& row) {
    json.open_object();
    json.member("checkpoint_id", std::string{to_string(row.path.kind)} + "/" + row.path.name);
    json.member("checkpoint_type", checkpoint_type(row.path.kind));
    json.member("time", iso_time(row.created));
    json.member("tinker_path", row.path.text());
    json.member("size_bytes", row.size_bytes);
    json.member("public", row.is_public);
    nullable(json, "user_metadata", row.user_metadata.value_or(Texts{}));
    json.key("expires_at");
    if (row.expires) {
        json.value(iso_time(*row.expires));
    } else {
        json.null();
    }
    json.close_object();
}

/// What follows the rows of a list.
auto cursor_of(std::int64_t offset, std::int64_t limit) {
    return [offset, limit](JsonOut& json, auto const& page) {
        json.key("cursor");
        json.open_object();
        json.member("offset", offset);
        json.member("limit", limit);
        json.member("total_count", page.total);
        json.close_object();
    };
}

/// Clients before 0.28 cannot read a list with a kind that they do not know.
bool knows_external(Ask const& ask) {
    auto version = ask.header("X-Stainless-Package-Version");
    if (version.empty()) {
        constexpr std::string_view product = "AsyncTinker/Python ";
        auto const agent = ask.header("User-Agent");
        if (!agent.starts_with(product)) return true;
        version = agent.substr(product.size());
    }
    int major = 0;
    int minor = 0;
    auto const* const end = version.data() + version.size();
    auto const first = std::from_chars(version.data(), end, major);
    if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '.') return true;
    if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc{}) return true;
    return major > 0 || minor >= 28;
}

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

std::string Core::sign(std::string_view text) const {
    std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
    unsigned size = 0;
    HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
         reinterpret_cast<unsigned char const*>(text.data()), text.size(), mac.data(), &size);
    return hex({reinterpret_cast<char const*>(mac.data()), size});
}

std::string Core::signed_link(Ask const& ask, std::string const& path, WallTime until) const {
    auto const text = path + "?expires=" + std::to_string(to_micros(until) / 1'000'000);
    return base_url(ask) + text + "&signature=" + sign(text);
}

void Core::check_link(Ask const& ask) const {
    auto const path = ask.request.target.substr(0, ask.request.target.find('?'));
    auto const signature = ask.parameter("signature", "");
    if (signature.empty()) {
        if (auto const no = forbidden(access_, ask.request, true)) {
            throw Refused{no->status, no->detail};
        }
        return;
    }
    auto const expires = ask.number("expires", 0, 0, std::int64_t{1} << 40U);
    if (!equal_in_constant_time(signature, sign(path + "?expires=" + std::to_string(expires)))) {
        throw Refused{403, "download: the link is not one of this server; ask for a new one"};
    }
    if (from_micros(expires * 1'000'000) < scheduler_.wall()) {
        throw Refused{403, "download: the link has expired; ask for a new one"};
    }
}

CheckpointRow& Core::named_checkpoint(Ask const& ask) {
    auto const& run = ask.names.at(0);
    auto const& id = ask.names.at(1);
    auto const slash = id.find('/');
    auto const kind = parse_kind(id.substr(0, slash));
    if (slash == std::string::npos || !kind) {
        throw Refused{400, std::string{ask.operation} + ": the checkpoint " + id.substr(0, 200) +
                               " must be named with its kind: weights/, sampler_weights/ or "
                               "external_weights/ and its name"};
    }
    auto const found = checkpoints_.find(TinkerPath{run, *kind, id.substr(slash + 1)});
    if (found == checkpoints_.end() || find_checkpoint(found->first) == nullptr) {
        throw Refused{404, std::string{ask.operation} + ": there is no checkpoint tinker://" +
                               run.substr(0, 200) + "/" + id.substr(0, 200)};
    }
    return found->second;
}

void Core::write_run(JsonOut& json, RunRow const& run) const {
    CheckpointRow const* last = nullptr;
    CheckpointRow const* last_sampler = nullptr;
    auto const first = checkpoints_.lower_bound(TinkerPath{.run = run.id});
    for (auto at = first; at != checkpoints_.end() && at->first.run == run.id; ++at) {
        auto const& row = at->second;
        if (find_checkpoint(row.path) == nullptr) continue;
        auto*& slot = row.path.kind == Kind::sampler_weights ? last_sampler : last;
        if (row.path.kind == Kind::external_weights) continue;
        if (slot == nullptr || slot->ordinal < row.ordinal) slot = &row;
    }
    json.open_object();
    json.member("training_run_id", run.id);
    json.member("base_model", run.base_model);
    json.member("model_owner", "local");
    json.member("is_lora", run.training.rank > 0);
    json.member("corrupted", false);
    json.member("lora_rank", run.training.rank);
    json.member("last_request_time", iso_time(run.last_request));
    auto const member = [&json](std::string_view name, CheckpointRow const* row) {
        json.key(name);
        if (row != nullptr) {
            write(json, *row);
        } else {
            json.null();
        }
    };
    member("last_checkpoint", last);
    member("last_sampler_checkpoint", last_sampler);
    nullable(json, "user_metadata", run.user_metadata);
    json.close_object();
}

void Core::list_runs(Ask& ask) {
    auto const limit = ask.number("limit", 20, 0, 10'000);
    auto const offset = ask.number("offset", 0, 0, 1'000'000'000);
    auto const fits = [this, project = ask.parameter("project_id", "")](RunRow const& run) {
        if (project.empty()) return true;
        auto const owner = sessions_.find(run.session);
        return owner != sessions_.end() && owner->second.row.project_id == project;
    };
    send_list(lists_, ask.answer,
              Listing<std::map<std::string, RunRow>>{
                  .rows = runs_,
                  .name = "training_runs",
                  .fits = fits,
                  .rank = [](RunRow const& run) { return to_micros(run.created); },
                  .offset = offset,
                  .limit = limit,
                  .write = [this](JsonOut& json, RunRow const& run) { write_run(json, run); },
                  .finish = cursor_of(offset, limit)});
}

void Core::get_run(Ask& ask) {
    auto const found = runs_.find(ask.names.at(0));
    if (found == runs_.end()) {
        throw Refused{404, "training_runs: there is no run " + ask.names.at(0).substr(0, 200)};
    }
    std::string body;
    JsonOut json{body};
    write_run(json, found->second);
    send_json(*ask.answer, std::move(body));
}

void Core::send_checkpoints(Ask& ask, std::string run, std::int64_t offset, std::int64_t limit) {
    auto const fits = [this, external = knows_external(ask),
                       run = std::move(run)](CheckpointRow const& row) {
        return (run.empty() || row.path.run == run) && find_checkpoint(row.path) != nullptr &&
               (external || row.path.kind != Kind::external_weights);
    };
    send_list(lists_, ask.answer,
              Listing<std::map<TinkerPath, CheckpointRow>>{
                  .rows = checkpoints_,
                  .name = "checkpoints",
                  .fits = fits,
                  .rank = [](CheckpointRow const& row) { return row.ordinal; },
                  .offset = offset,
                  .limit = limit,
                  .write = [](JsonOut& json, CheckpointRow const& row) { write(json, row); },
                  .finish = cursor_of(offset, limit)});
}

void Core::list_run_checkpoints(Ask& ask) {
    auto const& run = ask.names.at(0);
    if (!runs_.contains(run)) {
        throw Refused{404, "checkpoints: there is no run " + run.substr(0, 200)};
    }
    std::int64_t all = 0;
    auto const first = checkpoints_.lower_bound(TinkerPath{.run = run});
    for (auto at = first; at != checkpoints_.end() && at->first.run == run; ++at) ++all;
    send_checkpoints(ask, run, 0, all);
}

void Core::list_checkpoints(Ask& ask) {
    auto const limit = ask.number("limit", 100, 0, 10'000);
    auto const offset = ask.number("offset", 0, 0, 1'000'000'000);
    send_checkpoints(ask, {}, offset, limit);
}

void Core::change_checkpoint(Ask& ask, std::string_view event,
                             tinkxx::detail::UniqueFunction<bool(CheckpointRow&)> change) {
    in_turn(ask, [this, event = std::string{event}, change = std::move(change)](
                     Ask& mine, std::shared_ptr<Turn> turn) mutable {
        auto row = named_checkpoint(mine);
        check_unreserved(mine.operation, row.path);
        if (!change(row)) return send_nothing(*mine.answer);
        std::vector<Change> changes{{Table::checkpoint, row.path.text(), encode(row)}};
        auto noted = note_event(changes, event, row.path.text());
        commit(mine.answer, mine.operation, std::move(changes),
               [this, row = std::move(row), turn = std::move(turn), noted = std::move(noted),
                answer = mine.answer]() mutable {
                   noted();
                   auto const still = checkpoints_.find(row.path);
                   // Another one of that name may have been saved meanwhile.
                   if (still != checkpoints_.end() && still->second.folder == row.folder) {
                       still->second = std::move(row);
                   }
                   send_nothing(*answer);
               });
    });
}

void Core::check_unreserved(std::string_view operation, TinkerPath const& path) const {
    if (!reserved_.contains(path)) return;
    throw Refused{409, std::string{operation} + ": " + path.text() + " is being saved; ask again",
                  500ms};
}

void Core::delete_checkpoint(Ask& ask) {
    in_turn(ask, [this](Ask& mine, std::shared_ptr<Turn> turn) {
        auto const path = named_checkpoint(mine).path;
        check_unreserved(mine.operation, path);
        forget_checkpoint(mine.answer, path, "checkpoint_deleted", std::move(turn));
    });
}

void Core::publish(Ask& ask) {
    change_checkpoint(ask, "checkpoint_published", [](CheckpointRow& row) {
        if (row.is_public) throw Refused{409, "publish: " + row.path.text() + " is public already"};
        return row.is_public = true;
    });
}

void Core::unpublish(Ask& ask) {
    change_checkpoint(ask, "checkpoint_unpublished", [](CheckpointRow& row) {
        if (!row.is_public) {
            throw Refused{409, "publish: " + row.path.text() + " is private already"};
        }
        row.is_public = false;
        return true;
    });
}

void Core::set_ttl(Ask& ask) {
    with_json(
        ask, [](std::string body) { return wire::server::decode_ttl(body); },
        [this](Ask& asked, wire::server::Ttl const& ttl) {
            auto const expires = expiry("ttl", ttl.seconds);
            change_checkpoint(asked, "checkpoint_ttl_set", [expires](CheckpointRow& row) {
                row.expires = expires;
                return true;
            });
        });
}

void Core::archive(Ask& ask) {
    // Clients that know the short form of sampler paths leave the kind out.
    if (ask.names.at(1).find('/') == std::string::npos) {
        ask.names[1] = "sampler_weights/" + ask.names[1];
    }
    auto const& row = named_checkpoint(ask);
    auto const until = scheduler_.wall() + 15min;
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
}

void Core::external_urls(Ask& ask) {
    auto const& row = named_checkpoint(ask);
    if (row.path.kind != Kind::external_weights) {
        throw Refused{400, "external_weights_urls: " + row.path.text() +
                               " was not saved for others; use save_weights_external"};
    }
    auto const until = scheduler_.wall() + 1h;
    auto const entries = std::make_shared<Result<std::vector<Entry>>>(std::vector<Entry>{});
    file_worker_->run(
        [entries, folder = home_->place(row.folder)] { *entries = list_folder(folder); },
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
}

void Core::download(Ask& ask) {
    class Archive final : public Sending {
    public:
        Archive(std::shared_ptr<Answer> answer, std::unique_ptr<TarStream> tar)
            : Sending{std::move(answer)}, tar_{std::move(tar)} {}
        Result<std::string> next() override { return tar_->next(); }

    private:
        std::unique_ptr<TarStream> tar_;
    };
    check_link(ask);
    auto const& row = named_checkpoint(ask);
    auto const tar = std::make_shared<std::optional<Result<std::unique_ptr<TarStream>>>>();
    file_worker_->run(
        [tar, folder = home_->place(row.folder), created = row.created] {
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
            std::make_shared<Archive>(answer, **std::move(*tar))->pump_from(*file_worker_, alive_);
        });
}

void Core::download_file(Ask& ask) {
    class File final : public Sending {
    public:
        File(std::shared_ptr<Answer> answer, Descriptor in, fs::path name)
            : Sending{std::move(answer)}, in_{std::move(in)}, name_{std::move(name)} {}
        Result<std::string> next() override { return read_piece(in_, name_); }

    private:
        Descriptor in_;
        fs::path name_;
    };
    check_link(ask);
    auto const& row = named_checkpoint(ask);
    auto const& name = ask.names.at(2);
    Refused const none{404, "download: " + row.path.text() + " has no file " + name.substr(0, 200)};
    if (!valid_name(name) || name.front() == own_file_prefix) throw Refused{none};
    auto const opened = std::make_shared<std::optional<Result<Descriptor>>>();
    auto const place = home_->place(row.folder) / name;
    file_worker_->run(
        [opened, place] { opened->emplace(open_regular(place)); },
        [this, opened, place, none, answer = ask.answer] {
            if (!**opened) return send_refusal(*answer, none);
            auto file = **std::move(*opened);
            answer->head(200, {{"Content-Type", "application/octet-stream"}}, file_bytes(file));
            std::make_shared<File>(answer, std::move(file), place)
                ->pump_from(*file_worker_, alive_);
        });
}

}  // namespace tinkxx::local
