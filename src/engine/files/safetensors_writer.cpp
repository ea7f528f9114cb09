#include "engine/files/safetensors_writer.hpp"

#include <boost/json.hpp>

#include <array>
#include <bit>

namespace tinkxx::engine {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie");

namespace {

/// Looks at the elements of one tensor as they pass, however they are cut into pieces.
class FiniteCheck {
public:
    explicit FiniteCheck(TensorOut const& tensor) : tensor_{tensor}, size_{size_of(tensor.dtype)} {}

    void feed(std::span<std::byte const> bytes) {
        while (held_ > 0 && !bytes.empty()) {
            partial_[held_++] = bytes.front();
            bytes = bytes.subspan(1);
            if (held_ < size_) continue;
            held_ = 0;
            look(std::span{partial_}.first(size_));
        }
        auto const whole = bytes.size() / size_ * size_;
        look(bytes.first(whole));
        for (auto const byte : bytes.subspan(whole)) partial_[held_++] = byte;
    }
    [[nodiscard]] Result<void> const& result() const noexcept { return result_; }

private:
    void look(std::span<std::byte const> bytes) {
        if (result_) {
            result_ = check_finite({.dtype = tensor_.dtype, .bytes = bytes}, tensor_.name);
        }
    }

    TensorOut const& tensor_;
    std::size_t size_;
    std::array<std::byte, 8> partial_{};
    std::size_t held_{0};
    Result<void> result_{};
};

}  // namespace

std::uint64_t TensorOut::size() const noexcept {
    if (!stream) return bytes.size();
    std::uint64_t count = size_of(dtype);
    for (auto const dimension : shape) count *= dimension;
    return count;
}

std::string safetensors_header(std::span<TensorOut const> tensors,
                               std::map<std::string, std::string> const& metadata) {
    boost::json::object root;
    if (!metadata.empty()) {
        auto& entry = root["__metadata__"].emplace_object();
        for (auto const& [key, value] : metadata) entry[key] = value;
    }
    std::uint64_t offset = 0;
    for (auto const& tensor : tensors) {
        auto& entry = root[tensor.name].emplace_object();
        entry["dtype"] = to_string(tensor.dtype);
        auto& shape = entry["shape"].emplace_array();
        for (auto const dimension : tensor.shape) shape.emplace_back(dimension);
        auto const end = offset + tensor.size();
        entry["data_offsets"] = boost::json::array{offset, end};
        offset = end;
    }
    auto text = boost::json::serialize(root);
    text.append((8 - text.size() % 8) % 8, ' ');  // so that the tensors start aligned
    std::string header;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        header.push_back(static_cast<char>(text.size() >> shift & 0xffU));
    }
    return header + text;
}

Result<void> write_safetensors(std::filesystem::path const& path,
                               std::span<TensorOut const> tensors,
                               std::map<std::string, std::string> const& metadata) {
    auto const header = safetensors_header(tensors, metadata);
    return write_file(path, [&](ByteSink const& sink) -> Result<void> {
        sink(std::as_bytes(std::span{header.data(), header.size()}));
        for (auto const& tensor : tensors) {
            FiniteCheck finite{tensor};
            ByteSink const checked = [&](std::span<std::byte const> bytes) {
                finite.feed(bytes);
                if (finite.result()) sink(bytes);
            };
            if (tensor.stream) {
                tensor.stream(checked);
            } else {
                checked(tensor.bytes);
            }
            if (!finite.result()) return finite.result();
        }
        return {};
    });
}

}  // namespace tinkxx::engine
