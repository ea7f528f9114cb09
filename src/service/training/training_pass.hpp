#pragma once

#include <tinkxx/call_options.hpp>
#include <tinkxx/future.hpp>
#include <tinkxx/result.hpp>
#include <tinkxx/runtime.hpp>
#include <tinkxx/types/training.hpp>

#include "service/passes/chunking.hpp"
#include "service/passes/pass.hpp"
#include "service/training/model.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tinkxx::service {

/// Whether a forward pass alone, or a backward pass too.
enum class Direction : std::uint8_t { forward, both };

/// How data travel: cut for an encoding, which they all can be written in.
struct Cut {
    std::vector<Chunk> chunks{};
    wire::Encoding encoding{};
};
/// Cuts data for the encoding in use; or says what it has no words for. Any thread.
[[nodiscard]] Result<Cut> cut(TrainingModel const& model, std::span<Datum const> data,
                              Loss const& loss, Direction direction);

/// Writes a pass, on the thread that calls this, with the numbers that are foreseen; all but its
/// turn. While it is not known how the server wants it written a copy of the data is kept.
[[nodiscard]] Result<PassPlan> write_pass(TrainingModel const& model, std::string_view name,
                                          std::span<Datum const> data, Loss const& loss,
                                          Direction direction, Cut const& cut,
                                          std::int64_t first_seq_id);

/// Has the data checked, cut and written, and starts the call that sends them. `name` stays. Any
/// thread.
[[nodiscard]] Future<ForwardBackwardOutput> start_pass(Runtime const& runtime,
                                                       std::shared_ptr<TrainingModel> const& model,
                                                       std::string_view name, CallOptions call,
                                                       std::span<Datum const> data,
                                                       Loss const& loss, Direction direction);

/// Reads the results of a pass, and puts them together. Any thread.
[[nodiscard]] Result<ForwardBackwardOutput> read_pass(TrainingModel const& model,
                                                      std::string_view name,
                                                      std::vector<RetrievedResult> const& results);

/// A submit with a JSON body, and no number.
[[nodiscard]] SubmitOrder json_submit(std::string_view path, std::string_view request_type,
                                      std::string body);
/// A submit with a JSON body, which `encode` writes for a number: the one that is foreseen, and
/// again if it comes to be another.
[[nodiscard]] SubmitOrder numbered_submit(std::string_view path, std::string_view request_type,
                                          Ticket const& ticket,
                                          std::function<std::string(std::int64_t seq_id)> encode);
/// A pass of one such submit.
[[nodiscard]] PassPlan one_submit(TrainingModel const& model, std::string_view name, Ticket ticket,
                                  SubmitOrder order);

}  // namespace tinkxx::service
