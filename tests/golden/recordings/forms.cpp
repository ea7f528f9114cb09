#include "golden/recordings/forms.hpp"

#include <tinkxx/types/datum.hpp>

#include "wire/json/json.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>

namespace tinkxx::golden {

std::vector<value> answers_at(value const& recording, std::string_view path) {
    std::vector<value> out;
    for (auto const& rule : recording.at("answers").as_array()) {
        if (text(rule, "to") != path) continue;
        for (auto const& step : rule.at("then").as_array()) {
            out.insert(out.end(), value_to<std::size_t>(step.at("times")), step.at("answer"));
        }
    }
    return out;
}

namespace {

bool calls(value const& recording, std::string_view name) {
    auto const call = member<std::string>(recording, "call");
    return call && call->starts_with(name);
}

/// Whether one of the calls of a recording has such arguments.
template <class Test>
bool any_call(value const& recording, Test test) {
    auto const* args = find(recording, "args");
    if (args == nullptr) return false;
    auto const* several = find(*args, "calls");
    if (several == nullptr) return test(*args);
    return std::ranges::any_of(several->as_array(), test);
}

bool negative_seed(value const& recording) {
    return calls(recording, "SamplingClient.sample") && any_call(recording, [](value const& args) {
               auto const* params = find(args, "sampling_params");
               auto const* seed = params == nullptr ? nullptr : find(*params, "seed");
               return seed != nullptr && seed->is_int64() && seed->get_int64() < 0;
           });
}

bool empty_prompt(value const& recording) {
    return calls(recording, "SamplingClient.") && any_call(recording, [](value const& args) {
               auto const* prompt = find(args, "prompt");
               auto const* chunks = prompt == nullptr ? nullptr : find(*prompt, "chunks");
               return chunks != nullptr &&
                      std::ranges::all_of(chunks->as_array(), [](value const& chunk) {
                          auto const* tokens = find(chunk, "tokens");
                          return tokens != nullptr && tokens->as_array().empty();
                      });
           });
}

bool sampling_out_of_range(value const& recording) {
    return calls(recording, "SamplingClient.sample") && any_call(recording, [](value const& args) {
               auto const* params = find(args, "sampling_params");
               auto const number = [params](char const* name, double usual) {
                   auto const* given = params == nullptr ? nullptr : find(*params, name);
                   return given != nullptr && given->is_number() ? given->to_number<double>()
                                                                 : usual;
               };
               auto const top_p = number("top_p", 1);
               auto const top_k = number("top_k", -1);
               return number("temperature", 1) < 0 || top_p <= 0 || top_p > 1 || top_k < -1 ||
                      top_k == 0 || number("max_tokens", 1) < 1 ||
                      member<std::int64_t>(args, "num_samples").value_or(1) < 1;
           });
}

bool whoami_without_claims(value const& recording) {
    auto const* error = find(recording, "error");
    return calls(recording, "RestClient.whoami") && error != nullptr &&
           text(*error, "class") == "KeyError";
}

bool uploaded_loss(value const& recording) {
    auto const* flags = find(recording, "client_config");
    return calls(recording, "ServiceClient.create_custom_loss") && flags != nullptr &&
           member<bool>(*flags, "custom_loss_server_side").value_or(false);
}

/// Whether one of the loss inputs of a recorded call passes a test of its name and tensor.
template <class Test>
bool any_loss_input(value const& recording, Test test) {
    auto const* args = find(recording, "args");
    auto const* data = args == nullptr ? nullptr : find(*args, "data");
    if (data == nullptr || !data->is_array()) return false;
    return std::ranges::any_of(data->get_array(), [&test](value const& datum) {
        auto const* inputs = find(datum, "loss_fn_inputs");
        return inputs != nullptr && std::ranges::any_of(inputs->as_object(), [&](auto const& one) {
                   return test(std::string{one.key()}, one.value());
               });
    });
}

bool list_of_unknown_name(value const& recording) {
    auto const* error = find(recording, "error");
    return error != nullptr && text(*error, "class") == "KeyError" &&
           any_loss_input(recording, [](std::string const& name, value const& tensor) {
               return member<std::string>(tensor, "kind") == "list" && !loss_input_dtype(name);
           });
}

bool calls_pass(value const& recording) {
    return calls(recording, "TrainingClient.forward") &&
           !calls(recording, "TrainingClient.forward_backward_custom");
}

bool pass_without_data(value const& recording) {
    if (!calls_pass(recording) || find(recording, "result") == nullptr) return false;
    auto const& data = recording.at("args").at("data");
    return data.is_array() && data.get_array().empty();
}

bool refused_loss_name(value const& recording) {
    static std::set<std::string> const known{
        "cross_entropy", "importance_sampling", "ppo", "cispo", "dro", "gspo", "stable_reinforce"};
    return calls_pass(recording) && find(recording, "error") != nullptr &&
           text(recording, "sdk_version") == "0.7.0" &&
           !known.contains(text(recording.at("args"), "loss_fn"));
}

bool parameters_out_of_range(value const& recording) {
    auto const* args = find(recording, "args");
    if (!calls(recording, "TrainingClient.optim_step") || args == nullptr) return false;
    auto const* given = find(*args, "dimuon");
    bool const dimuon = given != nullptr;
    if (!dimuon) given = find(*args, "adam_params");
    if (given == nullptr) return false;
    return std::ranges::any_of(given->as_object(), [dimuon](auto const& entry) {
        auto const& number = entry.value();
        if (number.is_string()) return true;  // NaN and the infinities
        auto const size = number.template to_number<double>();
        if (entry.key().starts_with("beta")) return size < 0 || size >= 1;
        if (entry.key() == "eps") return size <= 0;
        return size < 0 && !(dimuon && entry.key() == "grad_clip_norm");
    });
}

bool time_to_live_of_nothing(value const& recording) {
    auto const* args = find(recording, "args");
    return calls(recording, "TrainingClient.save") && args != nullptr &&
           member<std::int64_t>(*args, "ttl_seconds").value_or(1) <= 0;
}

bool refused_loss_inputs(value const& recording) {
    return calls(recording, "TrainingClient.forward_backward_custom") &&
           find(recording, "error") != nullptr &&
           any_loss_input(recording, [](std::string const& name, value const&) {
               return name != "target_tokens" && name != "weights";
           });
}

bool answered_by_old_release_alone(value const& recording) {
    auto const* outcomes = find(recording, "outcomes");
    return outcomes != nullptr && outcomes->as_object().size() == 1 &&
           outcomes->as_object().contains("0.7.0");
}

bool metadata_to_old_release(value const& recording) {
    return answered_by_old_release_alone(recording) &&
           std::ranges::any_of(
               answers_at(recording, "/api/v1/retrieve_future"), [](value const& answer) {
                   boost::json::error_code failed;
                   auto const body = boost::json::parse(
                       member<std::string>(answer, "body_text").value_or(""), failed);
                   return !failed && member<std::string>(body, "status") == "complete_metadata";
               });
}

/// What became of a scripted pass in the newest release that was tried.
value const* outcome_of_pass(value const& recording) {
    auto const operation = member<std::string>(recording, "operation").value_or("");
    if (operation != "forward" && operation != "forward_backward") return nullptr;
    for (auto const* version : {"0.36.0", "0.25.0", "0.7.0"}) {
        if (auto const* outcome = find(recording.at("outcomes"), version)) return outcome;
    }
    return nullptr;
}

value const* error_of_pass(value const& recording) {
    auto const* outcome = outcome_of_pass(recording);
    return outcome == nullptr ? nullptr : find(*outcome, "error");
}

bool mean_of_nothing(value const& recording) {
    auto const* error = error_of_pass(recording);
    return error != nullptr && text(*error, "class") == "ZeroDivisionError";
}

/// Python splits the name of a metric in two, whether or not that can be done.
bool metric_without_reduction(value const& recording) {
    auto const* error = error_of_pass(recording);
    return error != nullptr && text(*error, "class") == "ValueError" &&
           text(*error, "message").find("values to unpack") != std::string::npos;
}

/// Later releases read such an answer, in protobuf.
bool refused_members(value const& recording) {
    if (!answered_by_old_release_alone(recording)) return false;
    auto const* error = error_of_pass(recording);
    auto const* cause = error == nullptr ? nullptr : find(*error, "cause");
    if (cause == nullptr || text(*cause, "class") != "ValidationError") return false;
    auto const message = text(*cause, "message");
    return message.find("\nmetrics\n  Field required") != std::string::npos ||
           message.find("Extra inputs are not permitted") != std::string::npos;
}

/// Whether a field of a decoded answer ends behind its own data.
bool ends_behind_data(value const& field) {
    auto const data = bytes_of(field, "data");
    auto const offsets = bytes_of(field, "offsets");
    for (std::size_t i = 0; i + 8 <= offsets.size(); i += 8) {
        std::int64_t offset = 0;
        std::memcpy(&offset, offsets.data() + i, sizeof offset);
        if (offset < 0 || static_cast<std::size_t>(offset) > data.size()) return true;
    }
    return false;
}

bool offsets_beyond_data(value const& recording) {
    auto const* outcome = outcome_of_pass(recording);
    auto const* answers = find(recording, "body_decoded");
    if (outcome == nullptr || find(*outcome, "result") == nullptr || answers == nullptr) {
        return false;
    }
    for (auto const& answer : answers->as_array()) {
        auto const* records = find(answer, "loss_fn_outputs");
        if (records == nullptr) continue;
        for (auto const& record : records->as_array()) {
            auto const* fields = find(record, "fields");
            if (fields == nullptr) continue;
            for (auto const& field : fields->as_object()) {
                if (find(field.value(), "data") == nullptr) continue;
                if (find(field.value(), "offsets") == nullptr) continue;
                if (ends_behind_data(field.value())) return true;
            }
        }
    }
    return false;
}

bool logprobs_not_answered(value const& recording) {
    if (member<std::string>(recording, "operation") != "compute_logprobs") return false;
    return std::ranges::any_of(recording.at("outcomes").as_object(), [](auto const& outcome) {
        auto const* result = outcome.value().as_object().if_contains("result");
        return result != nullptr && result->is_null();
    });
}

/// Python reads NaN and Infinity in JSON, which has no such words; later releases do not.
bool loose_json(value const& recording) {
    if (!answered_by_old_release_alone(recording)) return false;
    if (find(recording.at("outcomes").at("0.7.0"), "result") == nullptr) return false;
    return std::ranges::any_of(
        answers_at(recording, "/api/v1/retrieve_future"), [](value const& answer) {
            auto const body = member<std::string>(answer, "body_text").value_or("{}");
            bool const words =
                body.find("NaN") != std::string::npos || body.find("Infinity") != std::string::npos;
            return words && member<int>(answer, "status") == 200 && !wire::parse_json("", body);
        });
}

bool server_without_config(value const& recording) {
    if (find(recording, "answers") == nullptr) return false;
    auto const answers = answers_at(recording, "/api/v1/client/config");
    return !answers.empty() && member<int>(answers.front(), "status") == 404;
}

bool backpressure_without_retries(value const& recording) {
    auto const* config = find(recording, "retry_config");
    if (config == nullptr || member<bool>(*config, "enable_retry_logic").value_or(true)) {
        return false;
    }
    return std::ranges::any_of(answers_at(recording, "/api/v1/asample"), [](value const& answer) {
        return member<int>(answer, "status") == 429;
    });
}

/// The newest outcome of a scripted REST call that was tried.
value const* outcome_of_rest(value const& recording) {
    if (member<std::string>(recording, "operation") != "rest") return nullptr;
    for (auto const* version : {"0.36.0", "0.25.0", "0.7.0"}) {
        if (auto const* outcome = find(recording.at("outcomes"), version)) return outcome;
    }
    return nullptr;
}

/// Whether a name in an answer was refused since it was none of those that Python lists.
bool refused_name(value const& recording, std::string_view member_name) {
    auto const* outcome = outcome_of_rest(recording);
    auto const* error = outcome == nullptr ? nullptr : find(*outcome, "error");
    auto const* cause = error == nullptr ? nullptr : find(*error, "cause");
    if (cause == nullptr) return false;
    auto const message = text(*cause, "message");
    return message.find(member_name) != std::string::npos &&
           message.find("type=literal_error") != std::string::npos;
}

bool unknown_checkpoint_type(value const& recording) {
    return refused_name(recording, ".checkpoint_type\n");
}

bool unknown_kind_of_usage(value const& recording) {
    return refused_name(recording, ".event_info.");
}

/// Whether the URL of an archive was asked for again, since the server was still busy with it.
bool archive_being_built(value const& recording) {
    auto const busy = [](value const& answer) { return member<int>(answer, "status") == 503; };
    if (auto const* requests = find(recording, "requests")) {
        return calls(recording, "RestClient.get_checkpoint_archive_url") &&
               std::ranges::any_of(requests->as_array(), [&busy](value const& request) {
                   return busy(request.at("response"));
               });
    }
    auto const* answers = find(recording, "answers");
    if (outcome_of_rest(recording) == nullptr || answers == nullptr) return false;
    return std::ranges::any_of(answers->as_array(), [&](value const& rule) {
        auto const path = text(rule, "to");
        return path.ends_with("/archive") && std::ranges::any_of(answers_at(recording, path), busy);
    });
}

}  // namespace

bool has_form(std::string const& name, value const& recording) {
    static std::map<std::string, std::function<bool(value const&)>> const forms{
        {"a negative seed", negative_seed},
        {"an empty prompt", empty_prompt},
        {"parameters of sampling out of range", sampling_out_of_range},
        {"whoami with claims missing", whoami_without_claims},
        {"a loss that is uploaded", uploaded_loss},
        {"a plain list of an unknown name", list_of_unknown_name},
        {"a custom loss with inputs that were refused", refused_loss_inputs},
        {"a pass without data", pass_without_data},
        {"parameters of an optimizer out of range", parameters_out_of_range},
        {"a time to live of nothing", time_to_live_of_nothing},
        {"a loss whose name was refused", refused_loss_name},
        {"a mean over no data", mean_of_nothing},
        {"a metric that names no reduction", metric_without_reduction},
        {"a result with members that were refused", refused_members},
        {"offsets beyond the data", offsets_beyond_data},
        {"metadata for a release that does not ask for them", metadata_to_old_release},
        {"logprobs that were not answered", logprobs_not_answered},
        {"a result with numbers that JSON does not have", loose_json},
        {"a server without client/config", server_without_config},
        {"429 with retries off", backpressure_without_retries},
        {"a checkpoint of an unknown type", unknown_checkpoint_type},
        {"usage of an unknown kind", unknown_kind_of_usage},
        {"an archive that is being built", archive_being_built},
    };
    auto const found = forms.find(name);
    if (found == forms.end()) {
        throw std::runtime_error{"wire-not-applied.txt: nobody here knows the form \"" + name +
                                 '"'};
    }
    return found->second(recording);
}

}  // namespace tinkxx::golden
