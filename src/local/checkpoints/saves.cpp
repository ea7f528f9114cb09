#include "local/api/json.hpp"
#include "local/api/times.hpp"
#include "local/core/bodies.hpp"
#include "local/training/data.hpp"

#include <filesystem>
#include <system_error>

namespace tinkxx::local {

using wire::JsonOut;
namespace ws = wire::server;
namespace fs = std::filesystem;

namespace {

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

std::string loaded_answer(std::string const& path, std::string const& model_id) {
    return json_object([&](JsonOut& json) {
        json.member("path", path);
        json.member("model_id", model_id);
        json.member("type", "load_weights");
    });
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
    FileMarks files{};
    /// The run as it was when the weights were saved.
    RunRow run{};
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
    with_step(
        ask, small_json,
        [kind](std::string_view body) { return ws::decode_save(save_type(kind), body); },
        [this, kind](Ask& asked, ws::Save request) {
            submit_save(asked, kind, std::move(request));
        });
}

void Core::submit_save(Ask& ask, Kind kind, ws::Save save) {
    auto const what = std::string{save_type(kind)} + ": ";
    auto job = std::make_shared<SaveJob>();
    job->kind = kind;
    job->request = std::move(save);
    auto& request = job->request;
    Fingerprint print;
    print.add(save_type(kind)).add(request.name).add(request.ttl_seconds).add(request.overwrite);
    // A client may number the sampling session anew when it sends a save again.
    print.add(request.user_metadata.has_value());
    if (request.user_metadata) print.add(*request.user_metadata);

    // What is wrong with it is told by its result, so that its number counts.
    auto const refuse = [&job](std::string why) {
        if (job->refusal.empty()) job->refusal = std::move(why);
    };
    try {
        job->expires = expiry(save_type(kind), request.ttl_seconds);
        check_metadata(save_type(kind), bytes_of(request.user_metadata.value_or(Texts{})));
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
        try {
            if (!repeated) count_samplers(save_type(kind), run->second.session);
        } catch (Refused const& refused) {
            refuse(refused.detail);
        }
    }
    accept_step(
        ask, request.model_id, request.seq_id, print, Form::json, 0,
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
            job->run = runs_.at(model_id);
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
                                                .folder = home_->place(home_->saving(job->folder)),
                                                .state = job->kind == Kind::weights
                                                             ? engine::OptimizerState::with
                                                             : engine::OptimizerState::without},
                            [this, job, request_id](Result<void> const& outcome) {
                                saved(job, request_id, outcome);
                            });
        });
}

// A folder is written under a temporary name, gets its checksums and the row that it will have,
// and its own name once that row is safe. A server that finds it under the temporary name knows by
// the row whether to finish or to remove it.

void Core::saved(std::shared_ptr<SaveJob> const& job, std::string const& request_id,
                 Result<void> const& outcome) {
    if (!outcome) return give_up_save(job, request_id, outcome.error());
    auto const marks = std::make_shared<std::optional<Result<FileMarks>>>();
    file_worker_->run(
        [marks, place = home_->place(home_->saving(job->folder))] {
            marks->emplace(mark_files(place));
        },
        [this, job, request_id, marks] {
            if (!**marks) return give_up_save(job, request_id, (*marks)->error());
            job->files = **std::move(*marks);
            keep_saved(job, request_id);
        });
}

void Core::give_up_save(std::shared_ptr<SaveJob> const& job, std::string const& request_id,
                        Error const& error) {
    if (job->path) reserved_.erase(*job->path);
    remove_temporary(home_->saving(job->folder));
    broken(job->request.model_id, request_id,
           std::string{save_type(job->kind)} + ": nothing was saved: " + error.what(),
           ErrorCategory::server);
}

void Core::keep_saved(std::shared_ptr<SaveJob> const& job, std::string const& request_id) {
    auto const& model_id = job->request.model_id;
    auto const& run = job->run;
    auto const type = save_type(job->kind);
    if (!job->path) {
        SamplerRow row{.id = job->sampler_id,
                       .session = run.session,
                       .base_model = run.base_model,
                       .folder = job->folder,
                       .training = run.training,
                       .created = scheduler_.wall(),
                       .files = job->files};
        std::vector<Change> changes{{Table::sampler, row.id, encode(row)}};
        store_->write(std::move(changes), [this, job, row, model_id, request_id,
                                           type](Result<void> const& written) {
            if (!written) return give_up_save(job, request_id, written.error());
            finish_folder(row.folder, [this, job, row, model_id, request_id,
                                       type](Result<void> const& finished) {
                if (!finished) {
                    store_->write({{Table::sampler, row.id, std::nullopt}});
                    return give_up_save(job, request_id, finished.error());
                }
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
        });
        return;
    }
    CheckpointRow row{.path = *job->path,
                      .folder = job->folder,
                      .base_model = run.base_model,
                      .training = run.training,
                      .created = scheduler_.wall(),
                      .ordinal = next_ordinal_++,
                      .user_metadata = job->request.user_metadata,
                      .expires = job->expires,
                      .files = job->files};
    for (auto const& [name, mark] : row.files) row.size_bytes += mark.bytes;
    keep_checkpoint(row, "checkpoint_created", {},
                    [this, job, row, model_id, request_id, type](Result<void> const& outcome) {
                        if (!outcome) return give_up_save(job, request_id, outcome.error());
                        reserved_.erase(row.path);
                        counters_.add("tinkxx_checkpoints_saved_total", {});
                        kept(model_id, request_id, json_object([&](JsonOut& json) {
                                 json.member("path", row.path.text());
                                 json.member("size_bytes", row.size_bytes);
                                 json.member("type", type);
                             }),
                             {});
                    });
}

void Core::keep_checkpoint(CheckpointRow const& row, std::string_view event,
                           std::vector<Change> more, Store::Written done) {
    // The row lies beside the files too, so that a checkpoint can be adopted by another database.
    auto const failed = std::make_shared<Result<void>>();
    file_worker_->run(
        [failed, file = home_->place(home_->saving(row.folder)) / checkpoint_note,
         text = encode(row)] { *failed = write_small_file(file, text); },
        [this, failed, row, event = std::string{event}, more = std::move(more),
         done = std::move(done)]() mutable {
            if (!*failed) return done(std::move(*failed));
            more.push_back({Table::checkpoint, row.path.text(), encode(row)});
            std::string given_up;
            if (auto const older = checkpoints_.find(row.path); older != checkpoints_.end()) {
                given_up = older->second.folder;
                more.push_back({Table::meta, removal_key(given_up), std::string{}});
            }
            auto noted = note_event(more, event, row.path.text());
            store_->write(std::move(more), [this, row, given_up, noted = std::move(noted),
                                            done = std::move(done)](Result<void> written) mutable {
                if (!written) return done(std::move(written));
                finish_folder(row.folder, [this, row, given_up, noted = std::move(noted),
                                           done = std::move(done)](Result<void> finished) mutable {
                    if (!finished) {
                        // As if it had never been: an older one of that name stays.
                        auto const stays = checkpoints_.find(row.path);
                        Change back{Table::checkpoint, row.path.text()};
                        std::vector<Change> changes;
                        if (stays != checkpoints_.end()) {
                            back.value = encode(stays->second);
                            changes.push_back({Table::meta, removal_key(stays->second.folder)});
                        }
                        changes.push_back(std::move(back));
                        store_->write(std::move(changes));
                        return done(std::move(finished));
                    }
                    noted();
                    auto const replaced = checkpoints_.find(row.path);
                    if (replaced != checkpoints_.end()) {
                        auto const folder = replaced->second.folder;
                        // Of another save under the same name, which ended meanwhile.
                        if (folder != given_up) {
                            store_->write({{Table::meta, removal_key(folder), std::string{}}});
                        }
                        retire_folder(folder);
                    }
                    checkpoints_[row.path] = row;
                    done({});
                });
            });
        });
}

void Core::finish_folder(std::string const& folder, Store::Written done) {
    auto const outcome = std::make_shared<Result<void>>();
    file_worker_->run([outcome, from = home_->place(home_->saving(folder)),
                       to = home_->place(folder)] { *outcome = rename_entry(from, to); },
                      [outcome, done = std::move(done)]() mutable { done(std::move(*outcome)); });
}

void Core::remove_folder(std::string const& folder) {
    // Rows lead here, and a row may be damaged.
    if (!valid_place(folder)) return;
    auto const removed = std::make_shared<bool>(false);
    file_worker_->run(
        [removed, place = home_->place(folder), gone = home_->place(home_->removing(folder))] {
            if (kind_of(place) == EntryKind::folder && !rename_entry(place, gone)) return;
            std::error_code error;
            fs::remove_all(gone, error);
            *removed = !error;
        },
        [this, removed, folder] {
            if (*removed) store_->write({{Table::meta, removal_key(folder), std::nullopt}});
        });
}

void Core::remove_temporary(std::string const& name) {
    file_worker_->run(
        [place = home_->place(name)] {
            std::error_code ignored;
            fs::remove_all(place, ignored);
        },
        [] {});
}

void Core::forget_checkpoint(std::shared_ptr<Answer> const& answer, TinkerPath const& path,
                             std::string_view event, std::shared_ptr<Turn> turn) {
    auto const folder = checkpoints_.at(path).folder;
    // Should the server end before the folder is gone, the next one knows that it may go.
    std::vector<Change> changes{{Table::checkpoint, path.text(), std::nullopt},
                                {Table::meta, removal_key(folder), std::string{}}};
    for (auto const& [key, copy] : copies_) {
        if (copy == path.text()) changes.push_back({Table::meta, "copy " + key, std::nullopt});
    }
    auto noted = note_event(changes, event, path.text());
    commit(answer, "delete", std::move(changes),
           [this, path, answer, turn = std::move(turn), noted = std::move(noted)]() mutable {
               noted();
               auto const found = checkpoints_.find(path);
               if (found != checkpoints_.end()) {
                   retire_folder(found->second.folder);
                   checkpoints_.erase(found);
               }
               std::erase_if(copies_, [&](auto const& copy) { return copy.second == path.text(); });
               if (answer) send_nothing(*answer);
           });
}

void Core::count_samplers(std::string_view operation, std::string const& session) {
    std::size_t have = 0;
    auto const first = samplers_.lower_bound(session + ":");
    for (auto at = first; at != samplers_.end() && at->first.starts_with(session + ":"); ++at) {
        ++have;
    }
    count_part(operation, session, "samplers", have);
    keep(operation, 0);
}

void Core::retire_folder(std::string const& folder) {
    auto const used = weights_.find(folder);
    if (used == weights_.end()) return remove_folder(folder);
    used->second.doomed = true;
    if (used->second.active == 0) drop_weights(folder);
}

void Core::load_adapter(engine::LoadAdapter job, std::string name, FileMarks files, Task submitted,
                        engine::Done<engine::AdapterInfo> done) {
    auto const damaged = [name](Error const& why) {
        return Error{ErrorDetails{.kind = ErrorKind::request_failed,
                                  .message = "the checkpoint " + name +
                                             " is damaged on the disk of the server: " +
                                             why.what() + "; save it again, or restore its folder",
                                  .category = ErrorCategory::server}};
    };
    auto go_on = [this, job, damaged, submitted = std::move(submitted),
                  done = std::move(done)](Result<void> const& whole) mutable {
        if (!whole) {
            done(damaged(whole.error()));
            return submitted();
        }
        engine_->submit(std::move(job), [damaged, done = std::move(done)](
                                            Result<engine::AdapterInfo> loaded) mutable {
            // Base model and kind were checked before; whatever is wrong now is wrong with files.
            if (!loaded && loaded.error().category() == ErrorCategory::user) {
                return done(damaged(loaded.error()));
            }
            done(std::move(loaded));
        });
        submitted();
    };
    // Of a version that took no checksums.
    if (files.empty()) return go_on({});
    auto const whole = std::make_shared<Result<void>>();
    file_worker_->run([whole, folder = job.folder,
                       files = std::move(files)] { *whole = check_files(folder, files); },
                      [whole, go_on = std::move(go_on)]() mutable { go_on(*whole); });
}

void Core::load_weights(Ask& ask) {
    with_step(
        ask, small_json, [](std::string_view body) { return ws::decode_load_weights(body); },
        [this](Ask& asked, ws::LoadWeights const& request) {
            Fingerprint print;
            print.add("load_weights").add(request.path).add(request.optimizer);
            print.add(request.base_model);
            if (request.model_id && request.session_id) {
                throw Refused{400,
                              "load_weights: give model_id and seq_id, or session_id and "
                              "model_seq_id, not both"};
            }
            if (request.model_id) return load_into_model(asked, request, print);
            if (!request.session_id || !request.model_seq_id) {
                throw Refused{400,
                              "load_weights: give model_id and seq_id, or session_id and "
                              "model_seq_id"};
            }
            load_new_model(asked, request, print);
        });
}

void Core::load_into_model(Ask& ask, ws::LoadWeights const& request, Fingerprint const& print) {
    auto const state =
        request.optimizer ? engine::OptimizerState::with : engine::OptimizerState::without;
    accept_step(
        ask, *request.model_id, request.seq_id, print, Form::json, 0,
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
                                           row.base_model + ", and the model to " + run.base_model};
                }
                load_model(model_id, row, state,
                           [this, model_id, request_id,
                            path = request.path](Result<engine::AdapterInfo> const& loaded) {
                               if (!loaded) return broken(model_id, request_id, loaded.error());
                               std::vector<Change> changes;
                               if (auto const here = runs_.find(model_id); here != runs_.end()) {
                                   here->second.training = to_training(loaded->config);
                                   changes.push_back({Table::run, model_id, encode(here->second)});
                               }
                               kept(model_id, request_id, loaded_answer(path, model_id),
                                    std::move(changes));
                           });
            } catch (Refused const& refused) {
                broken(model_id, request_id, refused.detail, ErrorCategory::user);
            }
        });
}

void Core::load_new_model(Ask& ask, ws::LoadWeights const& request, Fingerprint const& print) {
    if (!accepting()) throw Refused{503, "load_weights: the server is stopping"};
    auto& owner = session("load_weights", *request.session_id);
    auto const id = owner.row.id + ":train:" + std::to_string(*request.model_seq_id);
    if (auto const found = models_.find(id); found != models_.end()) {
        if (found->second.creation.fingerprint == print) {
            return send_request_id(ask, found->second.creation.request_id, id);
        }
        throw Refused{409, "load_weights: there is a model " + id + " already, made otherwise"};
    }
    if (runs_.contains(id)) {
        throw Refused{410, "load_weights: the model " + id +
                               " is gone: it was unloaded, or the server has started anew since; "
                               "use the next model_seq_id"};
    }
    check_new_run("load_weights", owner.row.id, request.user_metadata);
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
    results_->add(request_id, Form::json, id);
    auto const state =
        request.optimizer ? engine::OptimizerState::with : engine::OptimizerState::without;
    load_model(
        id, row, state,
        [this, id, request_id, path = request.path](Result<engine::AdapterInfo> const& loaded) {
            if (!loaded) {
                broken(id, request_id, loaded.error());
                if (auto const made = models_.find(id); made != models_.end()) {
                    made->second.held = false;
                }
                unload(id);
                runs_.erase(id);
                dirty_runs_.erase(id);
                return;
            }
            std::vector<Change> changes;
            if (auto const here = runs_.find(id); here != runs_.end()) {
                changes.push_back({Table::run, id, encode(here->second)});
            }
            kept(id, request_id, loaded_answer(path, id), std::move(changes));
        });
    send_request_id(ask, request_id, id);
}

void Core::load_model(std::string const& id, CheckpointRow const& row, engine::OptimizerState state,
                      engine::Done<engine::AdapterInfo> done) {
    // What is asked of it meanwhile comes after.
    models_.at(id).held = true;
    load_adapter(
        {.adapter = id,
         .model = runs_.at(id).base_model,
         .folder = home_->place(row.folder),
         .state = state},
        row.path.text(), row.files,
        [this, id] {
            auto const found = models_.find(id);
            if (found == models_.end()) return;
            found->second.held = false;
            run_steps(found->second);
            auto const still = models_.find(id);
            if (still != models_.end() && still->second.ending) unload(id);
        },
        std::move(done));
}

void Core::weights_info(Ask& ask) {
    with_json(
        ask, [](std::string body) { return ws::decode_text("weights_info", body, "tinker_path"); },
        [this](Ask& asked, std::string const& path) {
            auto const& row = checkpoint("weights_info", path);
            send_json(*asked.answer, json_object([&](JsonOut& json) {
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
        });
}

void Core::copy_weights(Ask& ask) {
    with_json(
        ask, [](std::string body) { return ws::decode_copy_weights(body); },
        [this](Ask& asked, ws::CopyWeights const& request) { make_copy(asked, request); });
}

void Core::make_copy(Ask& ask, ws::CopyWeights const& request) {
    std::string const key{ask.header("X-Idempotency-Key")};
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
    check_metadata("copy_weights", key.size() + request.destination_project_id.value_or("").size());
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
    if (!key.empty()) copying_.insert(key);
    auto const copied = std::make_shared<Result<void>>();
    file_worker_->run(
        [copied, from = home_->place(source.folder), to = home_->place(home_->saving(row.folder))] {
            *copied = link_files(from, to);
        },
        [this, copied, owner, run, row, key, reply, answer = ask.answer] {
            auto const give_up = [this, key, row, answer](Error const& why) {
                copying_.erase(key);
                remove_temporary(home_->saving(row.folder));
                send_refusal(*answer, not_written("copy_weights", why));
            };
            if (!*copied) return give_up(copied->error());
            std::vector<Change> changes{{Table::session, owner.id, encode(owner)},
                                        {Table::run, run.id, encode(run)}};
            auto const path = row.path.text();
            if (!key.empty()) changes.push_back({Table::meta, "copy " + key, path});
            keep_checkpoint(
                row, "checkpoint_copied", std::move(changes),
                [this, owner, run, key, path, reply, answer, give_up](Result<void> const& outcome) {
                    if (!outcome) return give_up(outcome.error());
                    copying_.erase(key);
                    sessions_[owner.id].row = owner;
                    runs_[run.id] = run;
                    if (!key.empty()) copies_[key] = path;
                    reply(*answer, path);
                });
        });
}

}  // namespace tinkxx::local
