#include <tinkxx/error.hpp>
#include <tinkxx/regularizers.hpp>

#include "math/check.hpp"
#include "math/loss_listener.hpp"
#include "math/loss_values.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <set>
#include <thread>
#include <utility>

namespace tinkxx {

namespace {

[[noreturn]] void refuse(std::string field, std::string const& why) {
    math::refuse_loss("with_regularizers", std::move(field), why);
}

double norm(std::vector<std::vector<float>> const& gradient) {
    double sum = 0;
    for (auto const& part : gradient) {
        for (auto const x : part) sum += static_cast<double>(x) * static_cast<double>(x);
    }
    return std::sqrt(sum);
}

void add(std::vector<std::vector<float>>& to, double weight,
         std::vector<std::vector<float>> const& gradient) {
    for (std::size_t i = 0; i < to.size(); ++i) {
        for (std::size_t t = 0; t < to[i].size(); ++t) {
            to[i][t] += static_cast<float>(weight * static_cast<double>(gradient[i][t]));
        }
    }
}

Error as_error(std::exception_ptr const& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (Error const& error) {
        return error;
    } catch (std::exception const& e) {
        return Error{{.kind = ErrorKind::callback, .message = e.what(), .exception = failure}};
    } catch (...) {
        return Error{{.kind = ErrorKind::callback,
                      .message = "something that is no exception was thrown",
                      .exception = failure}};
    }
}

// Runs the penalties of one loss, several at a time.
class Run {
public:
    Run(std::vector<RegularizerSpec> const& specs, RegularizerOptions const& options,
        std::span<Datum const> data, std::span<TensorData const> logprobs)
        : specs_{&specs},
          options_{&options},
          data_{data},
          logprobs_{logprobs},
          outcomes_(specs.size()) {}

    // Their values, in order; throws what the first of them failed with.
    std::vector<CustomLossValue> values() {
        auto const cores = std::max(1U, std::thread::hardware_concurrency());
        auto const limit = options_->parallel == 0 ? cores : options_->parallel;
        auto const async = static_cast<std::size_t>(
            std::ranges::count_if(*specs_, [](auto const& spec) { return spec.async; }));
        auto const helpers = std::min<std::size_t>(limit, async) - (async == 0 ? 0 : 1);
        for (auto const& spec : *specs_) tell({.regularizer = spec.name});
        {
            std::vector<std::jthread> threads;
            threads.reserve(helpers);
            for (std::size_t i = 0; i < helpers; ++i)
                threads.emplace_back([this] { take_async(); });
            for (std::size_t i = 0; i < specs_->size(); ++i) {
                if (!(*specs_)[i].async) one(i);
            }
            take_async();
        }
        for (std::size_t i = 0; i < outcomes_.size(); ++i) {
            auto const& outcome = outcomes_[i];
            LossEvent event;
            event.kind = outcome.failure ? LossEvent::Kind::exception : LossEvent::Kind::stop;
            event.regularizer = (*specs_)[i].name;
            event.duration = outcome.took;
            if (outcome.failure) event.error = as_error(outcome.failure);
            tell(std::move(event));
        }
        std::vector<CustomLossValue> out;
        for (auto& outcome : outcomes_) {
            if (outcome.failure) std::rethrow_exception(outcome.failure);
            out.push_back(std::move(outcome.value));
        }
        return out;
    }

private:
    struct Outcome {
        CustomLossValue value{};
        std::exception_ptr failure{};
        std::chrono::nanoseconds took{0};
    };

    // On the thread that the loss was called on, on which whoever listens has left word.
    static void tell(LossEvent event) {
        auto* const listener = math::LossListener::here();
        if (listener != nullptr) listener->on_regularizer(std::move(event));
    }

    [[nodiscard]] std::chrono::nanoseconds now() const {
        if (options_->now) return options_->now();
        return std::chrono::steady_clock::now().time_since_epoch();
    }

    void take_async() {
        for (;;) {
            auto const i = next_.fetch_add(1);
            if (i >= specs_->size()) return;
            if ((*specs_)[i].async) one(i);
        }
    }

    void one(std::size_t i) {
        auto const& spec = (*specs_)[i];
        auto& took = outcomes_[i].took;
        auto const begun = now();
        try {
            outcomes_[i].value = spec.fn(data_, logprobs_, stop_.get_token());
            took = now() - begun;
            if (took > options_->time_limit) {
                auto const ms = [](auto time) {
                    return std::to_string(
                        std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
                };
                ErrorDetails details;
                details.kind = ErrorKind::timeout;
                details.field = spec.name;
                details.message = "with_regularizers: " + spec.name + " took " + ms(took) +
                                  " ms; RegularizerOptions::time_limit is " +
                                  ms(options_->time_limit) + " ms";
                throw TimeoutError{std::move(details)};
            }
            if (auto problem = math::custom_value_problem("with_regularizers: " + spec.name,
                                                          outcomes_[i].value, logprobs_)) {
                throw ValidationError{std::move(*problem)};
            }
        } catch (...) {
            took = now() - begun;
            outcomes_[i].failure = std::current_exception();
            stop_.request_stop();
        }
    }

    std::vector<RegularizerSpec> const* specs_;
    RegularizerOptions const* options_;
    std::span<Datum const> data_;
    std::span<TensorData const> logprobs_;
    // Each is written by one thread and read when all have ended.
    std::vector<Outcome> outcomes_;
    std::atomic<std::size_t> next_{0};
    std::stop_source stop_{};
};

}  // namespace

CustomLoss with_regularizers(CustomLoss base, std::vector<RegularizerSpec> specs,
                             RegularizerOptions options) {
    if (!base) refuse("base", "there is no base loss");
    std::set<std::string> names;
    for (std::size_t i = 0; i < specs.size(); ++i) {
        auto const place = "specs/" + std::to_string(i);
        auto const& spec = specs[i];
        if (spec.name.empty()) {
            refuse(place + "/name", "regularizer " + std::to_string(i) + " has no name");
        }
        if (!names.insert(spec.name).second) {
            refuse(place + "/name", "two regularizers have the name " + spec.name);
        }
        if (!std::isfinite(spec.weight) || spec.weight < 0) {
            refuse(place + "/weight", "the weight of " + spec.name + " is " +
                                          std::to_string(spec.weight) + "; it must be 0 or more");
        }
        if (!spec.fn) refuse(place + "/fn", spec.name + " has no function");
    }
    if (options.time_limit <= std::chrono::milliseconds{0}) {
        refuse("time_limit", "time_limit must be more than 0");
    }
    return [base = std::move(base), specs = std::move(specs), options = std::move(options)](
               std::span<Datum const> data, std::span<TensorData const> logprobs) {
        auto out = base(data, logprobs);
        if (auto problem = math::custom_value_problem("with_regularizers", out, logprobs)) {
            throw ValidationError{std::move(*problem)};
        }
        auto const base_loss = out.loss;
        double total = 0;
        auto const values = Run{specs, options, data, logprobs}.values();
        for (std::size_t i = 0; i < specs.size(); ++i) {
            auto const& [name, weight, fn, async] = specs[i];
            auto const& value = values[i];
            total += weight * value.loss;
            add(out.gradient, weight, value.gradient);
            out.metrics[name + "/value"] = value.loss;
            out.metrics[name + "/weight"] = weight;
            out.metrics[name + "/contribution"] = weight * value.loss;
            if (options.grad_norms) {
                auto const size = norm(value.gradient);
                out.metrics[name + "/grad_norm"] = size;
                out.metrics[name + "/grad_norm_weighted"] = weight * size;
            }
            for (auto const& [metric, number] : value.metrics) {
                out.metrics[std::string{name}.append("/").append(metric)] = number;
            }
        }
        out.loss = base_loss + total;
        out.metrics["loss_total"] = out.loss;
        out.metrics["base_loss"] = base_loss;
        out.metrics["regularizer_total"] = total;
        if (options.grad_norms) out.metrics["total_grad_norm"] = norm(out.gradient);
        return out;
    };
}

}  // namespace tinkxx
