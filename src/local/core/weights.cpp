#include "local/core/core.hpp"
#include "local/core/data.hpp"
#include "local/core/json.hpp"
#include "local/core/times.hpp"

#include <filesystem>
#include <system_error>

namespace tinkxx::local {

using wire::JsonOut;
namespace ws = wire::server;
namespace fs = std::filesystem;

namespace {

std::int64_t folder_bytes(fs::path const& folder) {
    std::int64_t total = 0;
    std::error_code error;
    for (auto const& entry : fs::directory_iterator{folder, error}) {
        std::error_code unknown;
        auto const size = entry.file_size(unknown);
        if (!unknown) total += static_cast<std::int64_t>(size);
    }
    return total;
}

std::string_view save_type(Kind kind) {
    switch (kind) {
        case Kind::weights:
            return "save_weights";
        case Kind::sampler_weights:
            return "save_weights_for_sampler";
        case Kind::external_weights:
            break;
    }
    return "save_weights_external";
}

}  // namespace

/// A save on its way.
struct Core::SaveJob {
    ws::Save request{};
    Kind kind{Kind::weights};
    std::optional<WallTime> expires{};
    /// With a name, the checkpoint that it becomes; without, the sampler.
    std::optional<TinkerPath> path{};
    std::string sampler_id{};
    std::string folder{};
    /// Why it cannot be done.
    std::string refusal{};
};

std::optional<WallTime> Core::expiry(std::string_view operation,
                                     std::optional<std::int64_t> ttl) const {
    if (!ttl) return std::nullopt;
    constexpr std::int64_t ten_years = std::int64_t{10} * 366 * 24 * 3600;
    if (*ttl < 1 || *ttl > ten_years) {
        throw Refused{400, std::string{operation} + ": ttl_seconds is " + std::to_string(*ttl) +
                               "; it must be from 1 to " + std::to_string(ten_years) +
                               ", or null for ever"};
    }
    return scheduler_.wall() + std::chrono::seconds{*ttl};
}

CheckpointRow const* Core::find_checkpoint(TinkerPath const& path) const {
    auto const found = checkpoints_.find(path);
    if (found == checkpoints_.end()) return nullptr;
    auto const& row = found->second;
    if (row.expires && *row.expires <= scheduler_.wall()) return nullptr;
    return &row;
}

CheckpointRow const& Core::checkpoint(std::string_view operation, std::string const& path) const {
    auto const parsed = parse_tinker_path(path);
    if (!parsed) {
        throw Refused{400, std::string{operation} + ": Invalid checkpoint tinker path " +
                               path.substr(0, 200) +
                               "; it must look like tinker://<run>/weights/<name> or "
                               "tinker://<run>/sampler_weights/<name>"};
    }
    auto const* const row = find_checkpoint(*parsed);
    if (row == nullptr) {
        throw Refused{404, std::string{operation} + ": there is no checkpoint " +
                               path.substr(0, 300) +
                               "; it was never saved, has expired or was "
                               "deleted"};
    }
    return *row;
}

void Core::save_weights(Ask& ask) { save(ask, Kind::weights); }
void Core::save_weights_for_sampler(Ask& ask) { save(ask, Kind::sampler_weights); }
void Core::save_weights_external(Ask& ask) { save(ask, Kind::external_weights); }

void Core::save(Ask& ask, Kind kind) {
    auto const what = std::string{save_type(kind)} + ": ";
    auto const body = body_of(ask);
    auto job = std::make_shared<SaveJob>();
    job->kind = kind;
    job->request = read_step(
        ask, body, [&](std::string const& text) { return ws::decode_save(save_type(kind), text); });
    auto& request = job->request;
    Fingerprint print;
    print.add(save_type(kind)).add(request.name).add(request.ttl_seconds).add(request.overwrite);
    // A client may number the sampling session anew when it sends a save again.
    print.add(request.user_metadata.has_value());
    if (request.user_metadata) print.add(*request.user_metadata);

    // What is wrong with it is told by its promise, so that its number counts.
    auto const refuse = [&job](std::string why) {
        if (job->refusal.empty()) job->refusal = std::move(why);
    };
    try {
        job->expires = expiry(save_type(kind), request.ttl_seconds);
    } catch (Refused const& refused) {
        refuse(refused.detail);
    }
    if (!request.age_recipients.empty()) {
        refuse(what +
               "files are not encrypted by a local server; leave "
               "age_encryption_recipients out");
    }
    auto const known = models_.find(request.model_id);
    bool const repeated =
        known != models_.end() && request.seq_id && known->second.seen.contains(*request.seq_id);
    if (request.name) {
        if (!valid_name(*request.name)) {
            refuse(what + "the name " + request.name->substr(0, 200) +
                   " cannot be used; use up to 200 letters, digits, dots, dashes and underscores");
        } else {
            job->path = TinkerPath{request.model_id, kind, *request.name};
        }
    } else if (kind != Kind::sampler_weights || !request.sampling_session_seq_id) {
        refuse(what + "there is no path, which names the checkpoint");
    } else if (auto const run = runs_.find(request.model_id); run != runs_.end()) {
        job->sampler_id =
            run->second.session + ":sample:" + std::to_string(*request.sampling_session_seq_id);
        if (samplers_.contains(job->sampler_id) && !repeated) {
            refuse(what + "there is a sampler " + job->sampler_id + " already");
        }
    }
    accept_step(
        ask, request.model_id, request.seq_id, print, Form::json,
        [this, job, what](std::string const& request_id) {
            auto const& model_id = job->request.model_id;
            if (job->path && job->refusal.empty()) {
                bool const taken =
                    find_checkpoint(*job->path) != nullptr || reserved_.contains(*job->path);
                if (taken && !(job->kind == Kind::weights && job->request.overwrite)) {
                    job->refusal = what + "there is a checkpoint " + job->path->text() +
                                   " already (ResourceAlreadyExists); choose another name, delete "
                                   "it, or overwrite it";
                }
            }
            if (!job->refusal.empty()) {
                return broken(model_id, request_id, job->refusal, ErrorCategory::user);
            }
            // A folder of its own for each, so that an older one stays whole until this one is
            // known.
            auto const ordinal = std::to_string(next_ordinal_++);
            if (job->path) {
                reserved_.insert(*job->path);
                job->folder = "checkpoints/" + ordinal + "-" + job->path->name;
            } else {
                job->folder = "ephemeral/" + ordinal;
            }
            engine_->submit(engine::SaveAdapter{.adapter = model_id,
                                                .folder = home_->place(job->folder),
                                                .state = job->kind == Kind::weights
                                                             ? engine::OptimizerState::with
                                                             : engine::OptimizerState::without},
                            [this, job, request_id](Result<void> const& outcome) {
                                saved(job, request_id, outcome);
                            });
        });
}

void Core::saved(std::shared_ptr<SaveJob> const& job, std::string const& request_id,
                 Result<void> const& outcome) {
    auto const& model_id = job->request.model_id;
    auto const& run = runs_.at(model_id);
    auto const type = save_type(job->kind);
    auto const give_up = [this, job, model_id, request_id](Error const& error) {
        if (job->path) reserved_.erase(*job->path);
        remove_folder(job->folder);
        broken(model_id, request_id, error);
    };
    if (!outcome) return give_up(outcome.error());
    std::vector<Change> changes;
    if (!job->path) {
        SamplerRow row{.id = job->sampler_id,
                       .session = run.session,
                       .base_model = run.base_model,
                       .folder = job->folder,
                       .training = run.training,
                       .created = scheduler_.wall()};
        changes.push_back({Table::sampler, row.id, encode(row)});
        store_->write(std::move(changes), [this, job, row, model_id, request_id, type,
                                           give_up](Result<void> const& written) {
            if (!written) return give_up(written.error());
            samplers_[row.id] = row;
            kept(model_id, request_id, json_object([&](JsonOut& json) {
                     json.key("path");
                     json.null();
                     json.member("sampling_session_id", row.id);
                     json.member("type", type);
                 }),
                 {});
            // The session may have ended meanwhile.
            auto const owner = sessions_.find(row.session);
            if (owner == sessions_.end() || owner->second.row.status != SessionStatus::active) {
                remove_folder(row.folder);
            }
        });
        return;
    }
    CheckpointRow row{.path = *job->path,
                      .folder = job->folder,
                      .base_model = run.base_model,
                      .training = run.training,
                      .created = scheduler_.wall(),
                      .ordinal = next_ordinal_++,
                      .size_bytes = folder_bytes(home_->place(job->folder)),
                      .user_metadata = job->request.user_metadata,
                      .expires = job->expires};
    changes.push_back({Table::checkpoint, row.path.text(), encode(row)});
    note_event(changes, "checkpoint_created", row.path.text());
    // Known once it is safe, and not before.
    store_->write(std::move(changes), [this, job, row, model_id, request_id, type,
                                       give_up](Result<void> const& written) {
        if (!written) return give_up(written.error());
        reserved_.erase(row.path);
        auto const older = checkpoints_.find(row.path);
        if (older != checkpoints_.end()) retire_folder(older->second.folder);
        checkpoints_[row.path] = row;
        counters_.add("tinkxx_checkpoints_saved_total", {});
        kept(model_id, request_id, json_object([&](JsonOut& json) {
                 json.member("path", row.path.text());
                 json.member("size_bytes", row.size_bytes);
                 json.member("type", type);
             }),
             {});
    });
}

void Core::remove_folder(std::string const& folder) {
    if (folder.empty()) return;
    worker_->run(
        [place = home_->place(folder)] {
            std::error_code ignored;
            fs::remove_all(place, ignored);
        },
        [] {});
}

void Core::forget_checkpoint(TinkerPath const& path, std::string_view event) {
    auto const found = checkpoints_.find(path);
    if (found == checkpoints_.end()) return;
    auto const folder = found->second.folder;
    checkpoints_.erase(found);
    std::vector<Change> changes{{Table::checkpoint, path.text(), std::nullopt}};
    note_event(changes, event, path.text());
    // The row first: a folder that nobody knows does no harm.
    store_->write(std::move(changes),
                  [this, folder](Result<void> const& /*written*/) { retire_folder(folder); });
}

void Core::retire_folder(std::string const& folder) {
    auto const used = drawn_.find(folder);
    if (used == drawn_.end()) return remove_folder(folder);
    used->second.doomed = true;
    if (used->second.active == 0) drop_drawn(folder);
}

void Core::load_weights(Ask& ask) {
    auto const body = body_of(ask);
    auto const request = read_step(ask, body, ws::decode_load_weights);
    Fingerprint print;
    print.add("load_weights").add(request.path).add(request.optimizer).add(request.base_model);
    auto const state =
        request.optimizer ? engine::OptimizerState::with : engine::OptimizerState::without;
    if (request.model_id && request.session_id) {
        throw Refused{400,
                      "load_weights: give model_id and seq_id, or session_id and "
                      "model_seq_id, not both"};
    }
    if (request.model_id) {
        return accept_step(
            ask, *request.model_id, request.seq_id, print, Form::json,
            [this, request, state](std::string const& request_id) {
                auto const& model_id = *request.model_id;
                try {
                    auto const row = checkpoint("load_weights", request.path);
                    auto const& run = runs_.at(model_id);
                    if (row.path.kind != Kind::weights && request.optimizer) {
                        throw Refused{400, "load_weights: " + request.path +
                                               " has no state of the optimizer; load its weights "
                                               "only, or a checkpoint of kind weights"};
                    }
                    if (row.base_model != run.base_model) {
                        throw Refused{400, "load_weights: " + request.path + " belongs to " +
                                               row.base_model + ", and the model to " +
                                               run.base_model};
                    }
                    engine_->submit(engine::LoadAdapter{.adapter = model_id,
                                                        .model = row.base_model,
                                                        .folder = home_->place(row.folder),
                                                        .state = state},
                                    [this, model_id, request_id,
                                     path = request.path](Result<engine::AdapterInfo> loaded) {
                                        if (!loaded)
                                            return broken(model_id, request_id, loaded.error());
                                        auto& here = runs_.at(model_id);
                                        here.training = to_training(loaded->config);
                                        kept(model_id, request_id, json_object([&](JsonOut& json) {
                                                 json.member("path", path);
                                                 json.member("model_id", model_id);
                                                 json.member("type", "load_weights");
                                             }),
                                             {{Table::run, model_id, encode(here)}});
                                    });
                } catch (Refused const& refused) {
                    broken(model_id, request_id, refused.detail, ErrorCategory::user);
                }
            });
    }
    if (!request.session_id || !request.model_seq_id) {
        throw Refused{400,
                      "load_weights: give model_id and seq_id, or session_id and "
                      "model_seq_id"};
    }
    // A new model as the checkpoint has it.
    if (!accepting()) throw Refused{503, "load_weights: the server is stopping"};
    auto& owner = session("load_weights", *request.session_id);
    auto const id = owner.row.id + ":train:" + std::to_string(*request.model_seq_id);
    if (auto const found = models_.find(id); found != models_.end()) {
        if (found->second.creation.fingerprint == print) {
            return promise(ask, found->second.creation.request_id, id);
        }
        throw Refused{409, "load_weights: there is a model " + id + " already, made otherwise"};
    }
    if (runs_.contains(id)) {
        throw Refused{410, "load_weights: the model " + id +
                               " is gone: it was unloaded, or the server has started anew since; "
                               "use the next model_seq_id"};
    }
    auto const row = checkpoint("load_weights", request.path);
    if (row.path.kind != Kind::weights && request.optimizer) {
        throw Refused{400, "load_weights: " + request.path +
                               " has no state of the optimizer; load its weights only"};
    }
    if (request.optimizer_family != "adamw") {
        throw Refused{400, "load_weights: the optimizer " + request.optimizer_family.substr(0, 64) +
                               " is not known here; use adamw"};
    }
    auto const& base = this->base("load_weights", request.base_model.value_or(row.base_model));
    auto const bytes = trained_bytes(base, row.training);
    need_memory("load_weights", bytes);
    auto const request_id = id + ":0";
    auto& model = models_[id];
    model.id = id;
    model.bytes = bytes;
    model.creation = {print, request_id};
    model.pending = 1;
    model_bytes_ += bytes;
    runs_[id] = {.id = id,
                 .session = owner.row.id,
                 .base_model = base.source.name,
                 .training = row.training,
                 .user_metadata = request.user_metadata,
                 .created = scheduler_.wall(),
                 .last_request = scheduler_.wall()};
    futures_->add(request_id, Form::json, id);
    engine_->submit(
        engine::LoadAdapter{.adapter = id,
                            .model = base.source.name,
                            .folder = home_->place(row.folder),
                            .state = state},
        [this, id, request_id, path = request.path](Result<engine::AdapterInfo> const& loaded) {
            if (!loaded) {
                broken(id, request_id, loaded.error());
                unload(id);
                runs_.erase(id);
                dirty_runs_.erase(id);
                return;
            }
            kept(id, request_id, json_object([&](JsonOut& json) {
                     json.member("path", path);
                     json.member("model_id", id);
                     json.member("type", "load_weights");
                 }),
                 {{Table::run, id, encode(runs_.at(id))}});
        });
    promise(ask, request_id, id);
}

void Core::weights_info(Ask& ask) {
    auto const path = good(ws::decode_text("weights_info", body_of(ask), "tinker_path"), 422);
    auto const& row = checkpoint("weights_info", path);
    send_json(*ask.answer, json_object([&](JsonOut& json) {
        json.member("base_model", row.base_model);
        json.member("is_lora", row.training.rank > 0);
        json.member("lora_rank", row.training.rank);
        json.member("train_unembed", row.training.train_unembed);
        json.member("train_mlp", row.training.train_mlp);
        json.member("train_attn", row.training.train_attn);
        json.key("optimizer_config");
        json.open_object();
        json.member("type", "adamw");
        json.close_object();
    }));
}

void Core::copy_weights(Ask& ask) {
    std::string const key{ask.header("X-Idempotency-Key")};
    auto const request = good(ws::decode_copy_weights(body_of(ask)), 422);
    auto const reply = [](Answer& answer, std::string const& path) {
        send_json(answer, json_object([&](JsonOut& json) { json.member("tinker_path", path); }));
    };
    if (auto const known = copies_.find(key); !key.empty() && known != copies_.end()) {
        return reply(*ask.answer, known->second);
    }
    if (!key.empty() && copying_.contains(key)) {
        throw Refused{409, "copy_weights: this copy is being made; ask again",
                      std::chrono::milliseconds{500}};
    }
    auto const source = checkpoint("copy_weights", request.source_path);
    auto const expires = expiry("copy_weights", request.ttl_seconds);
    // A run of its own in a session of its own, neither of which can be trained.
    auto id = fresh_id();
    while (sessions_.contains(id)) id = fresh_id();
    SessionRow owner{.id = id,
                     .created = scheduler_.wall(),
                     .project_id = request.destination_project_id,
                     .status = SessionStatus::finished,
                     .reason = "success",
                     .detail = "holds a copy of " + source.path.text()};
    RunRow run{.id = id + ":train:0",
               .session = id,
               .base_model = source.base_model,
               .training = source.training,
               .created = scheduler_.wall(),
               .last_request = scheduler_.wall()};
    auto row = source;
    row.path.run = run.id;
    row.ordinal = next_ordinal_++;
    row.folder = "checkpoints/" + std::to_string(next_ordinal_++) + "-" + row.path.name;
    row.created = scheduler_.wall();
    row.is_public = false;
    row.expires = expires;
    auto const path = row.path.text();
    copying_.insert(key);
    auto const failed = std::make_shared<std::string>();
    worker_->run(
        [from = home_->place(source.folder), to = home_->place(row.folder), failed] {
            // Files of checkpoints never change, so that both can have the same ones.
            std::error_code error;
            fs::create_directories(to, error);
            for (auto const& entry : fs::directory_iterator{from, error}) {
                if (error) break;
                fs::create_hard_link(entry.path(), to / entry.path().filename(), error);
                if (error) fs::copy_file(entry.path(), to / entry.path().filename(), error);
            }
            if (error) *failed = error.message();
        },
        [this, failed, owner, run, row, key, path, reply, answer = ask.answer] {
            if (!failed->empty()) {
                copying_.erase(key);
                remove_folder(row.folder);
                return send_refusal(*answer, {500, "copy_weights: " + *failed});
            }
            std::vector<Change> changes{{Table::session, owner.id, encode(owner)},
                                        {Table::run, run.id, encode(run)},
                                        {Table::checkpoint, path, encode(row)}};
            if (!key.empty()) changes.push_back({Table::meta, "copy " + key, path});
            note_event(changes, "checkpoint_copied", path);
            store_->write(std::move(changes), [this, owner, run, row, key, path, reply,
                                               answer](Result<void> const& written) {
                copying_.erase(key);
                if (!written) {
                    remove_folder(row.folder);
                    return send_refusal(
                        *answer, {500, std::string{"copy_weights: "} + written.error().what()});
                }
                sessions_[owner.id].row = owner;
                runs_[run.id] = run;
                checkpoints_[row.path] = row;
                if (!key.empty()) copies_[key] = path;
                reply(*answer, path);
            });
        });
}

}  // namespace tinkxx::local
