#pragma once

#include <tinkxx/error.hpp>

#include "wire/training/training.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tinkxx::service {

/// Which encoding of forward and backward requests the server at one endpoint takes: nothing
/// announces it, so it is found by trying (R-WIRE-10). Any thread.
class EncodingChoice {
public:
    EncodingChoice() noexcept = default;
    /// Of somebody who knows better; never changes.
    explicit EncodingChoice(wire::Encoding fixed) noexcept
        : known_{fixed == wire::Encoding::json ? Known::json : Known::protobuf}, fixed_{true} {}

    /// What to send: what is known to work, or what is tried first.
    [[nodiscard]] wire::Encoding current() const noexcept {
        auto const known = known_.load();
        return known == Known::json || known == Known::assumed_json ? wire::Encoding::json
                                                                    : wire::Encoding::protobuf;
    }
    [[nodiscard]] bool decided() const noexcept {
        auto const known = known_.load();
        return known == Known::protobuf || known == Known::json;
    }
    /// Whether the server was found to speak the old protocol only, by which a repeated step runs
    /// twice (C-59).
    [[nodiscard]] bool old_server() const noexcept {
        return !fixed_ && current() == wire::Encoding::json;
    }

    /// The server took a request. True if that is news.
    bool accepted(wire::Encoding encoding) noexcept;
    /// The server has no configuration to give, so it is old, unless it is known better. True if
    /// that is news.
    bool assume_old() noexcept;
    /// A request was refused. What to try in its place, if this can be a matter of the encoding.
    [[nodiscard]] std::optional<wire::Encoding> refused(wire::Encoding encoding,
                                                        Error const& error) const;

private:
    enum class Known : std::uint8_t { nothing, assumed_json, protobuf, json };
    std::atomic<Known> known_{Known::nothing};
    bool fixed_{false};
};

/// What is known about the endpoints of one runtime. Loop thread only.
class EncodingChoices {
public:
    [[nodiscard]] std::shared_ptr<EncodingChoice> get(std::string const& endpoint) {
        auto& choice = choices_[endpoint];
        if (!choice) choice = std::make_shared<EncodingChoice>();
        return choice;
    }

private:
    std::map<std::string, std::shared_ptr<EncodingChoice>> choices_{};
};

}  // namespace tinkxx::service
