#include "local/weights/folders.hpp"

#include "base/loop/loop_rule.hpp"
#include "local/store/stored.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

namespace tinkxx::local {

namespace {

namespace fs = std::filesystem;

Error damaged(std::string const& name, Error const& why) {
    return Error{ErrorDetails{.kind = ErrorKind::request_failed,
                              .message = "the checkpoint " + name +
                                         " is damaged on the disk of the server: " + why.what() +
                                         "; save it again, or restore its folder",
                              .category = ErrorCategory::server}};
}

}  // namespace

fs::path Folders::place(std::string const& folder) const { return services_.home->place(folder); }

fs::path Folders::saving_place(std::string const& folder) const {
    return services_.home->place(services_.home->saving(folder));
}

void Folders::finish(std::string const& folder, Store::Written done) {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    auto const outcome = std::make_shared<Result<void>>();
    services_.file_worker->run(
        [outcome, from = saving_place(folder), to = place(folder)] {
            *outcome = rename_entry(from, to);
        },
        [outcome, done = std::move(done)]() mutable { done(std::move(*outcome)); });
}

void Folders::remove(std::string const& folder) {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    // Rows lead here, and a row may be damaged.
    if (!valid_place(folder)) return;
    auto const removed = std::make_shared<bool>(false);
    services_.file_worker->run(
        [removed, from = place(folder),
         gone = services_.home->place(services_.home->removing(folder))] {
            if (kind_of(from) == EntryKind::folder && !rename_entry(from, gone)) return;
            std::error_code error;
            fs::remove_all(gone, error);
            *removed = !error;
        },
        [this, removed, folder] {
            if (!*removed) return;
            services_.store->write({{Table::meta, removal_key(folder), std::nullopt}});
        });
}

void Folders::remove_saving(std::string const& folder) {
    remove_temporary(services_.home->saving(folder));
}

void Folders::remove_temporary(std::string const& name) {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    services_.file_worker->run(
        [place = services_.home->place(name)] {
            std::error_code ignored;
            fs::remove_all(place, ignored);
        },
        [] {});
}

void Folders::load(engine::LoadAdapter job, std::string name, FileMarks files, Task submitted,
                   engine::Done<engine::AdapterInfo> done) {
    TINKXX_ASSERT_LOOP(services_.scheduler);
    auto go_on = [this, job, name = std::move(name), submitted = std::move(submitted),
                  done = std::move(done)](Result<void> const& whole) mutable {
        if (!whole) {
            done(damaged(name, whole.error()));
            return submitted();
        }
        services_.engine->submit(std::move(job), [name, done = std::move(done)](
                                                     Result<engine::AdapterInfo> loaded) mutable {
            // Base model and kind were checked before; whatever is wrong now is wrong with files.
            if (!loaded && loaded.error().category() == ErrorCategory::user) {
                return done(damaged(name, loaded.error()));
            }
            done(std::move(loaded));
        });
        submitted();
    };
    // Of a version that took no checksums.
    if (files.empty()) return go_on({});
    auto const whole = std::make_shared<Result<void>>();
    services_.file_worker->run([whole, folder = job.folder,
                                files = std::move(files)] { *whole = check_files(folder, files); },
                               [whole, go_on = std::move(go_on)]() mutable { go_on(*whole); });
}

}  // namespace tinkxx::local
