#pragma once

#include <tinkxx/types/datum.hpp>

#include "base/common/entropy.hpp"

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tinkxx::local {

/// By which a repeated request is told from another one: 128 bits of its content. Not meant to
/// withstand somebody who looks for two requests with the same one.
class Fingerprint {
public:
    bool operator==(Fingerprint const&) const = default;

    Fingerprint& add(std::uint64_t number) {
        a_ = base::mix(a_ ^ number);
        b_ = base::mix(b_ + number * 0xff51afd7ed558ccdU);
        return *this;
    }
    Fingerprint& add(std::int64_t number) { return add(static_cast<std::uint64_t>(number)); }
    Fingerprint& add(bool truth) { return add(std::uint64_t{truth}); }
    Fingerprint& add(double number) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &number, sizeof bits);
        return add(bits);
    }
    Fingerprint& add(std::string_view bytes) {
        add(std::uint64_t{bytes.size()});
        while (bytes.size() >= 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes.data(), 8);
            add(word);
            bytes.remove_prefix(8);
        }
        if (bytes.empty()) return *this;
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data(), bytes.size());
        return add(word);
    }
    Fingerprint& add(char const* text) { return add(std::string_view{text}); }
    Fingerprint& add(std::string const& text) { return add(std::string_view{text}); }
    template <class T>
    Fingerprint& add(std::optional<T> const& value) {
        add(value.has_value());
        if (value) add(*value);
        return *this;
    }
    Fingerprint& add(std::map<std::string, std::string> const& texts) {
        add(std::uint64_t{texts.size()});
        for (auto const& [name, text] : texts) add(name).add(text);
        return *this;
    }
    Fingerprint& add(TensorView const& tensor) {
        add(std::uint64_t{tensor.data.index()});
        std::visit([this](auto const& numbers) { add_numbers(numbers); }, tensor.data);
        for (auto const& list :
             {tensor.shape, tensor.sparse_crow_indices, tensor.sparse_col_indices}) {
            add(list.has_value());
            if (list) add_numbers(*list);
        }
        return *this;
    }
    Fingerprint& add(ModelInput const& input) {
        add(std::uint64_t{input.chunks.size()});
        for (auto const& chunk : input.chunks) {
            if (auto const* text = std::get_if<EncodedTextChunk>(&chunk)) {
                add_numbers(std::span<Token const>{text->tokens});
            }
        }
        return *this;
    }
    Fingerprint& add(Datum const& datum) {
        add(datum.model_input);
        for (auto const& [name, input] : datum.loss_fn_inputs) add(name).add(input.view());
        return *this;
    }

private:
    template <class T>
    void add_numbers(std::span<T const> numbers) {
        add(std::string_view{reinterpret_cast<char const*>(numbers.data()), numbers.size_bytes()});
    }

    std::uint64_t a_{0x6a09e667f3bcc908U};
    std::uint64_t b_{0xbb67ae8584caa73bU};
};

}  // namespace tinkxx::local
