#include "commands/checkpoints/checkpoints.hpp"
#include "commands/manage/references.hpp"
#include "dialog/progress.hpp"
#include "frame/troubles.hpp"
#include "frame/values.hpp"
#include "output/json_writer.hpp"
#include "output/words.hpp"

#include <tinkxx/rest_client.hpp>
#include <tinkxx/service_client.hpp>
#include <tinkxx/training_client.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace tinkxx::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct DownloadArguments {
    std::string path{};
    std::string output{};
    bool force{false};
};

/// How long an export is kept, unless the download still goes on after half of that.
constexpr std::chrono::seconds export_ttl{3600};

fs::path target_of(DownloadArguments const& arguments, std::string const& path) {
    auto name = path.substr(std::string_view{"tinker://"}.size());
    std::ranges::replace(name, '/', '_');
    return arguments.output.empty() ? fs::path{name} : fs::path{arguments.output} / name;
}

void prepare(fs::path const& target, bool force) {
    std::error_code failed;
    if (!fs::exists(fs::symlink_status(target, failed))) return;
    if (!force) {
        throw BadUsage{target.string() + " is there already",
                       "--force replaces it, and --output names another place"};
    }
    // A link is removed, and not what it leads to.
    fs::remove_all(target, failed);
    if (failed) {
        Error{
            {.kind = ErrorKind::validation,
             .message = "download: " + target.string() + " cannot be removed: " + failed.message()}}
            .raise();
    }
}

DownloadedCheckpoint fetch(RestClient const& rest, std::string const& path,
                           DownloadOptions options) {
    auto pending = rest.download_checkpoint(path, std::move(options));
    return pending.get();
}

/// Weights to train on cannot be fetched: a model that has loaded them exports them.
class Export {
public:
    Export(ClientOptions options, std::string const& path)
        : service_{with_mark(std::move(options))}, rest_{service_.create_rest_client()} {
        auto made = service_.create_training_client_from_state(
            path,
            FromStateOptions{.user_metadata = {{"created_by", "tinkxx checkpoint download"}}});
        auto const trainer = made.get();
        auto saved =
            trainer.save_weights_external("download", ExternalSaveOptions{.ttl = export_ttl});
        path_ = saved.get().path;
    }

    [[nodiscard]] RestClient const& rest() const noexcept { return rest_; }
    [[nodiscard]] std::string const& path() const noexcept { return path_; }

    /// Ends the session. What goes wrong there is worth a warning only.
    void close(CloseReason reason, Terminal& terminal) {
        auto deleted = rest_.delete_checkpoint(path_);
        if (auto const done = deleted.result(); !done) {
            terminal.warn("the export " + path_ +
                          " could not be deleted, and expires in an hour: " + done.error().what());
        }
        auto closed = service_.close(reason);
        if (auto const done = closed.result(); !done) {
            terminal.warn(std::string{"the session could not be ended: "} + done.error().what());
        }
    }

private:
    static ClientOptions with_mark(ClientOptions options) {
        options.user_metadata["created_by"] = "tinkxx checkpoint download";
        return options;
    }

    ServiceClient service_;
    RestClient rest_;
    std::string path_{};
};

DownloadedCheckpoint fetch_by_export(std::string const& path, DownloadOptions options,
                                     Context& context) {
    context.terminal.note("a training session is started to export the weights");
    Export made{context.client_options(), path};
    auto renewed = context.now();
    options.on_progress = [&made, &context, renewed, show = std::move(options.on_progress)](
                              std::int64_t done, std::optional<std::int64_t> total) mutable {
        if (context.now() - renewed > export_ttl / 2) {
            renewed = context.now();
            (void)made.rest().set_checkpoint_ttl(made.path(), export_ttl);
        }
        if (show) show(done, total);
    };
    try {
        auto fetched = fetch(made.rest(), made.path(), std::move(options));
        made.close(CloseReason::success, context.terminal);
        return fetched;
    } catch (...) {
        made.close(CloseReason::errored, context.terminal);
        throw;
    }
}

Exit download(DownloadArguments const& arguments, Context& context) {
    // The limit of time is for requests, and a download is as long as it is.
    RestClient const rest{context.client_options()};
    auto const path = checkpoint_of(rest, arguments.path);
    auto const kind = parse_checkpoint_path(path)->kind;
    auto const target = target_of(arguments, path);
    prepare(target, arguments.force);
    Progress progress{context, "downloading", Progress::Unit::bytes};
    DownloadOptions options;
    options.target = target;
    options.on_progress = [&progress](std::int64_t done, std::optional<std::int64_t> total) {
        progress.show(done, total);
    };
    context.globals.timeout = 0;
    auto const fetched =
        kind == CheckpointKind::weights
            ? fetch_by_export(path, std::move(options), context)
            : fetch(RestClient{context.client_options()}, path, std::move(options));
    progress.clear();
    std::int64_t bytes = 0;
    for (auto const& file : fetched.files) bytes += file.bytes;
    if (!context.json()) {
        for (auto const& file : fetched.files) {
            context.out() << (fetched.folder / file.name).string() << '\n';
        }
        context.terminal.note(size_words(bytes) + " in " + fetched.folder.string());
        return Exit::success;
    }
    JsonWriter json{context.out()};
    json.begin_object();
    json.member("checkpoint_path", path);
    json.member("destination", fetched.folder.string());
    json.member("file_size_bytes", bytes);
    json.begin_list("files");
    for (auto const& file : fetched.files) {
        json.begin_object();
        json.member("name", file.name);
        json.member("bytes", file.bytes);
        json.end_object();
    }
    json.end_list();
    json.end_object();
    return Exit::success;
}

void add_download_options(CLI::App& app, DownloadArguments& arguments) {
    app.add_option("path", arguments.path, "The path of the checkpoint")
        ->type_name("PATH")
        ->required();
    app.add_option(
           "-o,--output", arguments.output,
           "The folder in which a folder for the checkpoint is made; by default the working "
           "directory")
        ->type_name("FOLDER")
        ->check(not_empty());
    app.add_flag("--force", arguments.force, "Replace what is there already");
}

}  // namespace

Command checkpoint_download_command() {
    return {.path = "checkpoint download",
            .summary = "Fetch the files of a checkpoint",
            .about =
                "Fetches the files of a checkpoint into a folder that is named for its path, "
                "and prints\ntheir names. A download that was interrupted goes on where it "
                "was.",
            .examples =
                std::string{
                    "Examples:\n"
                    "  tinkxx checkpoint download RUN/sampler_weights/final\n"
                    "  tinkxx checkpoint download @latest -o weights --force\n\n"
                    "Weights to train on (RUN/weights/NAME) are exported first, for which "
                    "a training\nsession is started.\n\n"
                    "With --json: {\"checkpoint_path\":\"...\",\"destination\":\"...\","
                    "\"file_size_bytes\":N,\n\"files\":[{\"name\":\"...\",\"bytes\":N}]}.\n\n"} +
                id_words,
            .takes = Takes::client,
            .declare = declare<DownloadArguments>(&add_download_options, &download)};
}

}  // namespace tinkxx::cli
