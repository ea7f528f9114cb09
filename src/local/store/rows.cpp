#include "local/store/rows.hpp"

#include "local/common/times.hpp"
#include "local/store/home.hpp"
#include "wire/json/json.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tinkxx::local {

namespace {

using wire::JsonIn;
using wire::JsonOut;

constexpr std::array<std::string_view, 3> kind_names{"weights", "sampler_weights",
                                                     "external_weights"};
constexpr std::array<std::string_view, 3> type_names{"training", "sampler", "external"};
constexpr std::array<std::string_view, 3> status_names{"active", "finished", "expired"};

void write(JsonOut& json, std::string_view name, Texts const& texts) {
    json.key(name);
    json.open_object();
    for (auto const& [key, text] : texts) json.member(key, text);
    json.close_object();
}

void write(JsonOut& json, Training const& training) {
    json.key("training");
    json.open_object();
    json.member("rank", training.rank);
    json.member("seed", training.seed);
    json.member("attn", training.train_attn);
    json.member("mlp", training.train_mlp);
    json.member("unembed", training.train_unembed);
    json.close_object();
}

/// The object that `fill` writes the members of.
template <class Fill>
std::string object(Fill const& fill) {
    std::string text;
    JsonOut json{text};
    json.open_object();
    fill(json);
    json.close_object();
    return text;
}

WallTime time(JsonIn const& in, std::string_view name) {
    auto const micros = in.required<std::int64_t>(name);
    // A clock of nanoseconds has no more years; damage may say anything.
    constexpr std::int64_t year_2200 = 7'258'118'400'000'000;
    if (micros >= 0 && micros < year_2200) return from_micros(micros);
    in.fail("a row with a time from 1970 to 2200");
    return {};
}

/// A number that counts something.
std::int64_t count(JsonIn const& in, std::string_view name) {
    auto const value = in.required<std::int64_t>(name);
    if (value >= 0 && value < most_ordinals) return value;
    in.fail("a row with a count of at least 0");
    return 0;
}

void write(JsonOut& json, FileMarks const& files) {
    json.key("files");
    json.open_object();
    for (auto const& [name, mark] : files) {
        json.key(name);
        json.open_object();
        json.member("bytes", mark.bytes);
        json.member("sha256", mark.sha256);
        json.close_object();
    }
    json.close_object();
}

FileMarks read_files(JsonIn const& in) {
    FileMarks files;
    auto const object = in.optional<boost::json::object>("files");
    if (!object) return files;
    for (auto const& [name, value] : *object) {
        auto const* const mark = value.if_object();
        auto const* const bytes = mark == nullptr ? nullptr : mark->if_contains("bytes");
        auto const* const sum = mark == nullptr ? nullptr : mark->if_contains("sha256");
        if (bytes == nullptr || !bytes->is_int64() || sum == nullptr || !sum->is_string()) {
            in.fail("a row with bytes and sha256 of each file");
            return {};
        }
        files[std::string{name}] = {.bytes = bytes->get_int64(),
                                    .sha256 = std::string{sum->get_string()}};
    }
    return files;
}

struct TrainingIn {
    Training training{};
};
[[maybe_unused]] void read(JsonIn const& in, TrainingIn& out) {
    auto& training = out.training;
    training.rank = in.required<std::int64_t>("rank");
    if (training.rank < 0 || training.rank > 1024) in.fail("a rank from 0 to 1024");
    auto const seed = in.required<boost::json::value>("seed");
    training.seed = seed.is_uint64()
                        ? seed.get_uint64()
                        : static_cast<std::uint64_t>(in.required<std::int64_t>("seed"));
    training.train_attn = in.required<bool>("attn");
    training.train_mlp = in.required<bool>("mlp");
    training.train_unembed = in.required<bool>("unembed");
}

/// A row by `fill(JsonIn, Row&)`.
template <class Row, class Fill>
Result<Row> row(std::string_view what, std::string_view json, Fill const& fill) {
    auto const document = wire::parse_json(what, json);
    if (!document) return document.error();
    JsonIn::Failure failure;
    JsonIn const in{&*document, failure};
    Row out{};
    if (document->is_object()) {
        fill(in, out);
    } else {
        in.fail("an object");
    }
    if (failure.noted) return wire::json_error(what, failure);
    return out;
}

}  // namespace

std::size_t bytes_of(Texts const& texts) noexcept {
    std::size_t bytes = 0;
    for (auto const& [name, text] : texts) bytes += name.size() + text.size();
    return bytes;
}

std::string_view to_string(Kind kind) noexcept {
    return kind_names[static_cast<std::size_t>(kind)];
}

std::optional<Kind> parse_kind(std::string_view text) noexcept {
    auto const* const found = std::ranges::find(kind_names, text);
    if (found == kind_names.end()) return std::nullopt;
    return static_cast<Kind>(found - kind_names.begin());
}

std::string_view checkpoint_type(Kind kind) noexcept {
    return type_names[static_cast<std::size_t>(kind)];
}

std::string TinkerPath::text() const {
    return "tinker://" + run + "/" + std::string{to_string(kind)} + "/" + name;
}

std::optional<TinkerPath> parse_tinker_path(std::string_view text) {
    constexpr std::string_view scheme = "tinker://";
    if (!text.starts_with(scheme)) return std::nullopt;
    text.remove_prefix(scheme.size());
    auto const first = text.find('/');
    if (first == std::string_view::npos || first == 0) return std::nullopt;
    TinkerPath out{.run = std::string{text.substr(0, first)}};
    text.remove_prefix(first + 1);
    auto const second = text.find('/');
    if (second == std::string_view::npos) {
        // Some servers, and so some clients, leave the kind of sampler weights out.
        out.kind = Kind::sampler_weights;
        out.name = text;
    } else {
        auto const kind = parse_kind(text.substr(0, second));
        if (!kind) return std::nullopt;
        out.kind = *kind;
        out.name = text.substr(second + 1);
    }
    if (!valid_name(out.name)) return std::nullopt;
    return out;
}

bool valid_name(std::string_view name) noexcept {
    auto const fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
    };
    return !name.empty() && name.size() <= 200 && std::ranges::all_of(name, fits) &&
           name.find_first_not_of('.') != std::string_view::npos;
}

std::string encode(SessionRow const& row) {
    return object([&](JsonOut& json) {
        json.member("id", row.id);
        json.member("created", to_micros(row.created));
        json.key("tags");
        json.list(row.tags);
        write(json, "user_metadata", row.user_metadata);
        json.member("sdk_version", row.sdk_version);
        json.member("project_id", row.project_id);
        json.member("display_name", row.display_name);
        json.member("status", status_names[static_cast<std::size_t>(row.status)]);
        json.member("reason", row.reason);
        json.member("detail", row.detail);
    });
}

Result<SessionRow> decode_session_row(std::string_view json) {
    return row<SessionRow>("session", json, [](JsonIn const& in, SessionRow& out) {
        out.id = in.required<std::string>("id");
        out.created = time(in, "created");
        out.tags = in.required<std::vector<std::string>>("tags");
        out.user_metadata = in.required<Texts>("user_metadata");
        out.sdk_version = in.required<std::string>("sdk_version");
        out.project_id = in.optional<std::string>("project_id");
        out.display_name = in.optional<std::string>("display_name");
        auto const status = in.required<std::string>("status");
        auto const* const found = std::ranges::find(status_names, status);
        if (found == status_names.end()) return in.fail("a session with a status");
        out.status = static_cast<SessionPhase>(found - status_names.begin());
        out.reason = in.required<std::string>("reason");
        out.detail = in.optional<std::string>("detail");
    });
}

std::string encode(RunRow const& row) {
    return object([&](JsonOut& json) {
        json.member("id", row.id);
        json.member("session", row.session);
        json.member("base_model", row.base_model);
        write(json, row.training);
        write(json, "user_metadata", row.user_metadata);
        json.member("created", to_micros(row.created));
        json.member("last_request", to_micros(row.last_request));
    });
}

Result<RunRow> decode_run_row(std::string_view json) {
    return row<RunRow>("run", json, [](JsonIn const& in, RunRow& out) {
        out.id = in.required<std::string>("id");
        out.session = in.required<std::string>("session");
        out.base_model = in.required<std::string>("base_model");
        out.training = in.required<TrainingIn>("training").training;
        out.user_metadata = in.required<Texts>("user_metadata");
        out.created = time(in, "created");
        out.last_request = time(in, "last_request");
    });
}

std::string encode(SamplerRow const& row) {
    return object([&](JsonOut& json) {
        json.member("id", row.id);
        json.member("session", row.session);
        json.member("base_model", row.base_model);
        json.member("model_path", row.model_path);
        json.member("folder", row.folder);
        write(json, row.training);
        json.member("created", to_micros(row.created));
        json.member("clones", row.clones);
        if (!row.files.empty()) write(json, row.files);
    });
}

Result<SamplerRow> decode_sampler_row(std::string_view json) {
    return row<SamplerRow>("sampler", json, [](JsonIn const& in, SamplerRow& out) {
        out.id = in.required<std::string>("id");
        out.session = in.required<std::string>("session");
        out.base_model = in.required<std::string>("base_model");
        out.model_path = in.optional<std::string>("model_path");
        out.folder = in.required<std::string>("folder");
        out.training = in.required<TrainingIn>("training").training;
        out.created = time(in, "created");
        out.clones = count(in, "clones");
        out.files = read_files(in);
        if (out.folder.empty()) return;
        if (!valid_place(out.folder) || !out.folder.starts_with("ephemeral/")) {
            in.fail("a sampler with a folder of this home");
        }
    });
}

std::string encode(CheckpointRow const& row) {
    return object([&](JsonOut& json) {
        json.member("path", row.path.text());
        json.member("folder", row.folder);
        json.member("base_model", row.base_model);
        write(json, row.training);
        json.member("created", to_micros(row.created));
        json.member("ordinal", row.ordinal);
        json.member("size_bytes", row.size_bytes);
        json.member("public", row.is_public);
        if (row.user_metadata) write(json, "user_metadata", *row.user_metadata);
        if (row.expires) json.member("expires", to_micros(*row.expires));
        if (!row.files.empty()) write(json, row.files);
    });
}

Result<CheckpointRow> decode_checkpoint_row(std::string_view json) {
    return row<CheckpointRow>("checkpoint", json, [](JsonIn const& in, CheckpointRow& out) {
        auto const path = parse_tinker_path(in.required<std::string>("path"));
        if (!path) return in.fail("a checkpoint with a path");
        out.path = *path;
        out.folder = in.required<std::string>("folder");
        out.base_model = in.required<std::string>("base_model");
        out.training = in.required<TrainingIn>("training").training;
        out.created = time(in, "created");
        out.ordinal = count(in, "ordinal");
        out.size_bytes = count(in, "size_bytes");
        out.is_public = in.required<bool>("public");
        out.user_metadata = in.optional<Texts>("user_metadata");
        if (in.optional<std::int64_t>("expires")) out.expires = time(in, "expires");
        out.files = read_files(in);
        if (!valid_place(out.folder) || !out.folder.starts_with("checkpoints/")) {
            in.fail("a checkpoint with a folder of this home");
        }
    });
}

std::string encode(RequestRow const& row) {
    return object([&](JsonOut& json) {
        json.member("id", row.id);
        json.member("owner", row.owner);
        json.member("form", row.form);
        json.member("state", row.state);
        json.member("error", row.error);
        json.member("category", row.category);
        json.member("size", row.size);
        json.member("at", to_micros(row.at));
        json.member("body", row.body);
    });
}

Result<RequestRow> decode_request_row(std::string_view json) {
    return row<RequestRow>("request", json, [](JsonIn const& in, RequestRow& out) {
        out.id = in.required<std::string>("id");
        out.owner = in.required<std::string>("owner");
        out.form = in.required<std::string>("form");
        out.state = in.required<std::string>("state");
        out.error = in.required<std::string>("error");
        out.category = in.required<std::string>("category");
        out.size = count(in, "size");
        out.at = time(in, "at");
        out.body = in.required<std::string>("body");
    });
}

}  // namespace tinkxx::local
