#include "local/saves/loads.hpp"

#include "base/loop/loop_rule.hpp"
#include "local/api/json.hpp"
#include "local/weights/adapter_config.hpp"

#include <utility>

namespace tinkxx::local {

using wire::JsonOut;
namespace ws = wire::server;

namespace {

std::string loaded_answer(std::string const& path, std::string const& model_id) {
    return json_object([&](JsonOut& json) {
        json.member("path", path);
        json.member("model_id", model_id);
        json.member("type", "load_weights");
    });
}

engine::OptimizerState state_of(ws::LoadWeights const& request) {
    return request.optimizer ? engine::OptimizerState::with : engine::OptimizerState::without;
}

}  // namespace

MaybeRefused Loads::load_weights(Ask& ask) {
    return uses_.models.read_step(
        ask, Bodies::small_json,
        [](std::string_view body) { return ws::decode_load_weights(body); },
        [this](Ask& asked, ws::LoadWeights const& request) -> MaybeRefused {
            Fingerprint print;
            print.add("load_weights").add(request.path).add(request.optimizer);
            print.add(request.base_model);
            if (request.model_id && request.session_id) {
                return Refused{400,
                               "load_weights: give model_id and seq_id, or session_id and "
                               "model_seq_id, not both"};
            }
            if (request.model_id) return into_model(asked, request, print);
            if (!request.session_id || !request.model_seq_id) {
                return Refused{400,
                               "load_weights: give model_id and seq_id, or session_id and "
                               "model_seq_id"};
            }
            return as_new_model(asked, request, print);
        });
}

MaybeRefused Loads::into_model(Ask& ask, ws::LoadWeights const& request, Fingerprint const& print) {
    StepRequest const step{.model_id = *request.model_id, .seq_id = request.seq_id, .print = print};
    return uses_.models.accept(ask, step, [this, request](std::string const& request_id) {
        auto const no = begin(request, request_id);
        if (!no) return;
        uses_.models.fail(*request.model_id, request_id, no->detail, ErrorCategory::user);
    });
}

MaybeRefused Loads::begin(ws::LoadWeights const& request, std::string const& request_id) {
    TINKXX_ASSERT_LOOP(uses_.services.scheduler);
    auto const& model_id = *request.model_id;
    auto const found = uses_.checkpoints.find("load_weights", request.path);
    if (!found) return found.refused();
    auto const& row = **found;
    auto const& base_model = uses_.runs.find(model_id)->base_model;
    if (row.path.kind != Kind::weights && request.optimizer) {
        return Refused{400, "load_weights: " + request.path +
                                " has no state of the optimizer; load its weights "
                                "only, or a checkpoint of kind weights"};
    }
    if (row.base_model != base_model) {
        return Refused{400, "load_weights: " + request.path + " belongs to " + row.base_model +
                                ", and the model to " + base_model};
    }
    uses_.models.load(model_id, row, state_of(request),
                      [this, model_id, request_id,
                       path = request.path](Result<engine::AdapterInfo> const& loaded) {
                          if (!loaded)
                              return uses_.models.fail(model_id, request_id, loaded.error());
                          uses_.runs.set_training(model_id, to_training(loaded->config));
                          std::vector<Change> changes;
                          if (auto const* const run = uses_.runs.find(model_id)) {
                              changes.push_back({Table::run, model_id, encode(*run)});
                          }
                          uses_.models.complete(model_id, request_id, loaded_answer(path, model_id),
                                                std::move(changes));
                      });
    return {};
}

MaybeRefused Loads::as_new_model(Ask& ask, ws::LoadWeights const& request,
                                 Fingerprint const& print) {
    auto const place =
        uses_.models.place("load_weights", *request.session_id, *request.model_seq_id, print);
    if (!place) return place.refused();
    if (!place->made_by.empty()) {
        send_request_id(ask, place->made_by, place->id);
        return {};
    }
    if (auto no = uses_.runs.check_new("load_weights", place->session, request.user_metadata)) {
        return no;
    }
    auto const found = uses_.checkpoints.find("load_weights", request.path);
    if (!found) return found.refused();
    auto const row = **found;
    if (row.path.kind != Kind::weights && request.optimizer) {
        return Refused{400, "load_weights: " + request.path +
                                " has no state of the optimizer; load its weights only"};
    }
    if (request.optimizer_family != "adamw") {
        return Refused{400, "load_weights: the optimizer " +
                                request.optimizer_family.substr(0, 64) +
                                " is not known here; use adamw"};
    }
    auto const base = uses_.bases.find("load_weights", request.base_model.value_or(row.base_model));
    if (!base) return base.refused();
    auto const request_id =
        uses_.models.add("load_weights", *place, **base, row.training, request.user_metadata);
    if (!request_id) return request_id.refused();
    load_new(*place, *request_id, request, row);
    send_request_id(ask, *request_id, place->id);
    return {};
}

void Loads::load_new(ModelPlace const& place, std::string const& request_id,
                     ws::LoadWeights const& request, CheckpointRow const& row) {
    uses_.models.load(place.id, row, state_of(request),
                      [this, id = place.id, request_id,
                       path = request.path](Result<engine::AdapterInfo> const& loaded) {
                          if (!loaded) return uses_.models.discard(id, request_id, loaded.error());
                          std::vector<Change> changes;
                          if (auto const* const run = uses_.runs.find(id)) {
                              changes.push_back({Table::run, id, encode(*run)});
                          }
                          uses_.models.complete(id, request_id, loaded_answer(path, id),
                                                std::move(changes));
                      });
}

}  // namespace tinkxx::local
