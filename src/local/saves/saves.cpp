#include "local/saves/saves.hpp"

#include "base/loop/loop_rule.hpp"
#include "local/api/json.hpp"

#include <optional>
#include <utility>

namespace tinkxx::local {

using wire::JsonOut;
namespace ws = wire::server;

/// A save on its way.
struct Saves::Save {
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
    MaybeRefused refused{};
};

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

Refused refuse(Kind kind, std::string const& why) {
    return {400, std::string{save_type(kind)} + ": " + why};
}

Fingerprint print_of(Kind kind, ws::Save const& request) {
    Fingerprint print;
    print.add(save_type(kind)).add(request.name).add(request.ttl_seconds).add(request.overwrite);
    // A client may number the sampling session anew when it sends a save again.
    print.add(request.user_metadata.has_value());
    if (request.user_metadata) print.add(*request.user_metadata);
    return print;
}

}  // namespace

MaybeRefused Saves::read(Ask& ask, Kind kind) {
    return uses_.models.read_step(
        ask, Bodies::small_json,
        [kind](std::string_view body) { return ws::decode_save(save_type(kind), body); },
        [this, kind](Ask& asked, ws::Save request) {
            return submit(asked, kind, std::move(request));
        });
}

MaybeRefused Saves::submit(Ask& ask, Kind kind, ws::Save request) {
    TINKXX_ASSERT_LOOP(uses_.services.scheduler);
    auto const job = std::make_shared<Save>(Save{.request = std::move(request), .kind = kind});
    // What is wrong with it is told by its result, so that its number counts.
    job->refused = check(*job);
    StepRequest const step{.model_id = job->request.model_id,
                           .seq_id = job->request.seq_id,
                           .print = print_of(kind, job->request)};
    return uses_.models.accept(
        ask, step, [this, job](std::string const& request_id) { begin(job, request_id); });
}

MaybeRefused Saves::check(Save& save) const {
    auto const type = save_type(save.kind);
    auto const& request = save.request;
    auto const expires = uses_.checkpoints.expiry(type, request.ttl_seconds);
    auto named = check_name(save);
    if (!expires) return expires.refused();
    save.expires = *expires;
    auto const metadata = bytes_of(request.user_metadata.value_or(Texts{}));
    if (auto no = uses_.sessions.check_metadata(type, metadata)) return no;
    if (!request.age_recipients.empty()) {
        return refuse(save.kind,
                      "files are not encrypted by a local server; leave "
                      "age_encryption_recipients out");
    }
    return named;
}

MaybeRefused Saves::check_name(Save& save) const {
    auto const& request = save.request;
    if (request.name) {
        if (!valid_name(*request.name)) {
            return refuse(save.kind, "the name " + request.name->substr(0, 200) +
                                         " cannot be used; use up to 200 letters, digits, dots, "
                                         "dashes and underscores");
        }
        save.path = TinkerPath{request.model_id, save.kind, *request.name};
        return {};
    }
    if (save.kind != Kind::sampler_weights || !request.sampling_session_seq_id) {
        return refuse(save.kind, "there is no path, which names the checkpoint");
    }
    auto const* const run = uses_.runs.find(request.model_id);
    if (run == nullptr) return {};
    save.sampler_id = run->session + ":sample:" + std::to_string(*request.sampling_session_seq_id);
    // A repeat has the sampler that it made.
    if (uses_.models.seen(request.model_id, request.seq_id)) return {};
    auto counted = uses_.samplers.check_new(save_type(save.kind), run->session);
    if (uses_.samplers.find(save.sampler_id) != nullptr) {
        return refuse(save.kind, "there is a sampler " + save.sampler_id + " already");
    }
    return counted;
}

MaybeRefused Saves::check_taken(Save const& save) const {
    if (!save.path || !uses_.checkpoints.taken(*save.path)) return {};
    if (save.kind == Kind::weights && save.request.overwrite) return {};
    return refuse(save.kind, "there is a checkpoint " + save.path->text() +
                                 " already (ResourceAlreadyExists); choose another name, delete "
                                 "it, or overwrite it");
}

void Saves::begin(Job const& job, std::string const& request_id) {
    auto const& model_id = job->request.model_id;
    if (!job->refused) job->refused = check_taken(*job);
    if (job->refused) {
        return uses_.models.fail(model_id, request_id, job->refused->detail, ErrorCategory::user);
    }
    job->run = *uses_.runs.find(model_id);
    // A folder of its own for each, so that an older one stays whole until this one is known.
    auto const number = std::to_string(uses_.folders.next_number());
    if (job->path) {
        uses_.checkpoints.reserve(*job->path);
        job->folder = "checkpoints/" + number + "-" + job->path->name;
    } else {
        job->folder = "ephemeral/" + number;
    }
    uses_.services.engine->submit(
        engine::SaveAdapter{.adapter = model_id,
                            .folder = uses_.folders.saving_place(job->folder),
                            .state = job->kind == Kind::weights ? engine::OptimizerState::with
                                                                : engine::OptimizerState::without},
        [this, job, request_id](Result<void> const& outcome) {
            if (!outcome) return give_up(job, request_id, outcome.error());
            mark(job, request_id);
        });
}

void Saves::mark(Job const& job, std::string const& request_id) {
    auto const marks = std::make_shared<std::optional<Result<FileMarks>>>();
    uses_.services.file_worker->run(
        [marks, place = uses_.folders.saving_place(job->folder)] {
            marks->emplace(mark_files(place));
        },
        [this, job, request_id, marks] {
            if (!**marks) return give_up(job, request_id, (*marks)->error());
            job->files = **std::move(*marks);
            if (job->path) return keep_checkpoint(job, request_id);
            keep_sampler(job, request_id);
        });
}

void Saves::give_up(Job const& job, std::string const& request_id, Error const& error) {
    if (job->path) uses_.checkpoints.release(*job->path);
    uses_.folders.remove_saving(job->folder);
    uses_.models.fail(job->request.model_id, request_id,
                      std::string{save_type(job->kind)} + ": nothing was saved: " + error.what(),
                      ErrorCategory::server);
}

void Saves::keep_sampler(Job const& job, std::string const& request_id) {
    auto const& run = job->run;
    SamplerRow const row{.id = job->sampler_id,
                         .session = run.session,
                         .base_model = run.base_model,
                         .folder = job->folder,
                         .training = run.training,
                         .created = uses_.services.scheduler.wall(),
                         .files = job->files};
    auto& store = *uses_.services.store;
    store.write({{Table::sampler, row.id, encode(row)}},
                [this, job, row, request_id, &store](Result<void> const& written) {
                    if (!written) return give_up(job, request_id, written.error());
                    uses_.folders.finish(row.folder, [this, job, row, request_id,
                                                      &store](Result<void> const& finished) {
                        if (finished) return sampler_written(job, request_id, row);
                        store.write({{Table::sampler, row.id, std::nullopt}});
                        give_up(job, request_id, finished.error());
                    });
                });
}

void Saves::sampler_written(Job const& job, std::string const& request_id, SamplerRow const& row) {
    uses_.samplers.add(row);
    uses_.models.complete(job->request.model_id, request_id, json_object([&](JsonOut& json) {
                              json.key("path");
                              json.null();
                              json.member("sampling_session_id", row.id);
                              json.member("type", save_type(job->kind));
                          }),
                          {});
    // The session may have ended meanwhile.
    if (!uses_.sessions.is_active(row.session)) uses_.folders.remove(row.folder);
}

void Saves::keep_checkpoint(Job const& job, std::string const& request_id) {
    CheckpointRow row{.path = *job->path,
                      .folder = job->folder,
                      .base_model = job->run.base_model,
                      .training = job->run.training,
                      .created = uses_.services.scheduler.wall(),
                      .ordinal = uses_.folders.next_number(),
                      .user_metadata = job->request.user_metadata,
                      .expires = job->expires,
                      .files = job->files};
    for (auto const& [name, mark] : row.files) row.size_bytes += mark.bytes;
    uses_.checkpoints.keep(row, "checkpoint_created", {},
                           [this, job, row, request_id](Result<void> const& outcome) {
                               if (!outcome) return give_up(job, request_id, outcome.error());
                               uses_.checkpoints.release(row.path);
                               uses_.services.counters.add("tinkxx_checkpoints_saved_total", {});
                               uses_.models.complete(job->request.model_id, request_id,
                                                     json_object([&](JsonOut& json) {
                                                         json.member("path", row.path.text());
                                                         json.member("size_bytes", row.size_bytes);
                                                         json.member("type", save_type(job->kind));
                                                     }),
                                                     {});
                           });
}

}  // namespace tinkxx::local
