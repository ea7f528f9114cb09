// The home of a server: what it takes for its own, what it keeps, and what it removes.
#include <tinkxx/local/home.hpp>

#include "local/store/database.hpp"
#include "local/store/home.hpp"
#include "local/store/rows.hpp"
#include "unit/local/raw_fixture.hpp"

#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

namespace tinkxx::local {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string read_file(fs::path const& file) {
    std::ostringstream out;
    out << std::ifstream{file, std::ios::binary}.rdbuf();
    return out.str();
}

/// Every file below a folder and what is in it; folders end in a slash.
std::map<std::string, std::string> everything(fs::path const& folder) {
    std::map<std::string, std::string> all;
    for (auto const& entry : fs::recursive_directory_iterator{folder}) {
        auto const name = fs::relative(entry.path(), folder).string();
        if (entry.is_directory()) {
            all[name + "/"] = {};
        } else {
            all[name] = read_file(entry.path());
        }
    }
    return all;
}

class HomeOf : public RawTest {
protected:
    HomeOf() {
        server_options.log = [this](LogLevel level, std::string_view line) {
            if (level >= LogLevel::warning) warnings.emplace_back(line);
        };
    }

    [[nodiscard]] fs::path const& place() const { return server_options.home; }
    std::string id_of(HttpResponse const& response) { return text(json(response), "request_id"); }
    /// A checkpoint of each kind, and weights without a name. Its session stays active.
    void fill() {
        session = new_session();
        model = new_model(session);
        state = text(result(id_of(post("save_weights", save_body(model, 1, "state")))), "path");
        sampled =
            text(result(id_of(post("save_weights_for_sampler", save_body(model, 2, "sampled")))),
                 "path");
        (void)result(id_of(
            post("save_weights_for_sampler",
                 R"({"model_id":")" + model + R"(","seq_id":3,"sampling_session_seq_id":5})")));
        run();
    }
    /// Why the server does not start; empty if it does.
    std::string refusal() {
        try {
            (void)server();
            run();
            return {};
        } catch (Error const& error) {
            return error.what();
        }
    }
    std::vector<std::string> folders(std::string const& parent = "checkpoints") {
        std::vector<std::string> names;
        for (auto const& entry : fs::directory_iterator{place() / parent}) {
            names.push_back(entry.path().filename().string());
        }
        std::ranges::sort(names);
        return names;
    }
    std::size_t listed() {
        return json(call("GET", "checkpoints")).at("checkpoints").as_array().size();
    }
    void execute(std::string const& sql) {
        sqlite3* db = nullptr;
        ASSERT_EQ(sqlite3_open((place() / "tinkxx.sqlite").c_str(), &db), SQLITE_OK);
        char* why = nullptr;
        EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &why), SQLITE_OK) << why;
        sqlite3_close(db);
    }
    /// What comes of a sample from a checkpoint.
    boost::json::object sample_from(std::string const& path) {
        auto const owner = new_session();
        auto const made =
            post("create_sampling_session", R"({"session_id":")" + owner +
                                                R"(","sampling_session_seq_id":0,"model_path":")" +
                                                path + R"("})");
        if (made.status != 200) return {{"error", detail(made)}};
        auto const sampler = text(json(made), "sampling_session_id");
        return result(id_of(post("asample", sample_body(sampler, 0))));
    }
    boost::json::object load(std::string const& path) {
        auto const owner = new_session();
        return result(
            id_of(post("load_weights", R"({"session_id":")" + owner +
                                           R"(","model_seq_id":0,"optimizer":true,"path":")" +
                                           path + R"("})")));
    }

    std::vector<std::string> warnings{};
    std::string session{};
    std::string model{};
    std::string state{};
    std::string sampled{};
};

// What is a home --------------------------------------------------------------------------------

TEST_F(HomeOf, SomebodyElseIsRefusedAndLeftAsItIs) {
    fs::create_directories(place() / "checkpoints/epoch-3");
    std::ofstream{place() / "checkpoints/epoch-3/weights.pt"} << "months of work";
    fs::create_directories(place() / "ephemeral/cache");
    std::ofstream{place() / "train.py"} << "print()";
    auto const before = everything(place());
    EXPECT_THAT(refusal(), AllOf(HasSubstr("is not empty, and not a home of tinkxx"),
                                 HasSubstr("name an empty directory")));
    EXPECT_EQ(everything(place()), before);
}

TEST_F(HomeOf, AnEmptyFolderBecomesOneAndIsRecognised) {
    fs::create_directories(place() / "lost+found");  // as a new disk has it
    EXPECT_EQ(refusal(), "");
    EXPECT_TRUE(fs::exists(place() / home_marker));
    restart_server();
    EXPECT_EQ(refusal(), "");
    EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(HomeOf, AStartThatWasCutShortGoesOn) {
    // Killed before, within and after the writing of the marker.
    fs::create_directories(place());
    std::ofstream{place() / "lock"} << "7\n";
    std::ofstream{place() / "tinkxx-home.json.tmp-7-0"} << "{";
    EXPECT_EQ(refusal(), "");
    restart_server();
    fs::remove(place() / "tinkxx.sqlite");
    EXPECT_EQ(refusal(), "");
    EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(HomeOf, WithoutItsMarkerIsRefusedUntilItIsRepaired) {
    fill();
    restart_server();
    auto const id = look_at_home(place()).value().id;
    fs::remove(place() / home_marker);
    EXPECT_THAT(refusal(), HasSubstr("its marker tinkxx-home.json is missing"));
    EXPECT_FALSE(check_home(place(), {}).good());
    EXPECT_TRUE(check_home(place(), {.repair = true}).good());
    EXPECT_EQ(look_at_home(place()).value().id, id);
    EXPECT_EQ(refusal(), "");
    EXPECT_EQ(listed(), 2U);
}

TEST_F(HomeOf, ADatabaseOfAnotherHomeIsRefused) {
    fill();
    restart_server();
    execute("UPDATE meta SET value='another-home' WHERE key='home_id'");
    auto const before = folders();
    EXPECT_THAT(refusal(), AllOf(HasSubstr("belongs to another home"), HasSubstr("another-home")));
    EXPECT_EQ(folders(), before);
}

TEST_F(HomeOf, SymlinksWithinAreRefusedByName) {
    fill();
    restart_server();
    auto const elsewhere = home.path() / "elsewhere";
    fs::create_directories(elsewhere / "precious");
    auto const file = place() / "checkpoints" / folders().front() / "adapter_model.safetensors";
    fs::rename(file, elsewhere / "moved");
    fs::create_symlink(elsewhere / "moved", file);
    EXPECT_THAT(refusal(), AllOf(HasSubstr("adapter_model.safetensors is a symlink")));
    fs::remove(file);
    fs::rename(elsewhere / "moved", file);

    fs::create_directory_symlink(elsewhere / "precious", place() / "ephemeral/9");
    EXPECT_THAT(refusal(), HasSubstr("ephemeral/9 is a symlink"));
    fs::remove(place() / "ephemeral/9");

    fs::rename(place() / "checkpoints", elsewhere / "checkpoints");
    fs::create_directory_symlink(elsewhere / "checkpoints", place() / "checkpoints");
    EXPECT_THAT(refusal(), HasSubstr("checkpoints is a symlink"));
    fs::remove(place() / "checkpoints");
    fs::rename(elsewhere / "checkpoints", place() / "checkpoints");
    EXPECT_EQ(refusal(), "");
    EXPECT_EQ(listed(), 2U);
    EXPECT_TRUE(fs::exists(elsewhere / "precious"));
}

TEST_F(HomeOf, OnlyItsOwnerCanReadIt) {
    fs::create_directories(place());
    fs::permissions(place(), fs::perms::all);
    fill();
    restart_server();
    auto const mode = [&](fs::path const& path) {
        return fs::status(path).permissions() & (fs::perms::group_all | fs::perms::others_all);
    };
    EXPECT_EQ(mode(place()), fs::perms::none);
    EXPECT_EQ(mode(place() / "tinkxx.sqlite"), fs::perms::none);
    EXPECT_EQ(mode(place() / home_marker), fs::perms::none);
    // One that was open before is closed.
    fs::permissions(place(), fs::perms::all);
    fs::permissions(place() / "tinkxx.sqlite", fs::perms::all);
    EXPECT_EQ(refusal(), "");
    EXPECT_EQ(mode(place()), fs::perms::none);
    EXPECT_EQ(mode(place() / "tinkxx.sqlite"), fs::perms::none);
}

class InPlaceOfAFile : public HomeOf, public ::testing::WithParamInterface<char const*> {};
INSTANTIATE_TEST_SUITE_P(, InPlaceOfAFile,
                         ::testing::Values("lock", "tinkxx.sqlite", "tinkxx.sqlite-wal",
                                           "tinkxx-home.json", "checkpoints", "ephemeral"),
                         [](auto const& each) {
                             std::string name{each.param};
                             std::ranges::replace_if(
                                 name, [](char c) { return std::isalnum(c) == 0; }, '_');
                             return name;
                         });

TEST_P(InPlaceOfAFile, AFifoIsRefusedByName) {
    fill();
    restart_server();
    auto const file = place() / GetParam();
    fs::remove_all(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    EXPECT_THAT(refusal(), AllOf(HasSubstr(GetParam()), HasSubstr("a FIFO")));
}

// What is kept ----------------------------------------------------------------------------------

TEST_F(HomeOf, WhatTheDatabaseDoesNotKnowIsKeptAndToldInOneWarning) {
    fill();
    restart_server();
    fs::create_directories(place() / "checkpoints/99-mine");
    std::ofstream{place() / "checkpoints/99-mine/notes.txt"} << "keep me";
    std::ofstream{place() / "ephemeral/notes.txt"} << "me too";
    fs::create_directories(place() / "checkpoints/.tinkxx-00000000-saving-5-x");
    auto const before = everything(place() / "checkpoints");
    EXPECT_EQ(refusal(), "");
    clock->advance(10min);
    EXPECT_EQ(everything(place() / "checkpoints"), before);
    EXPECT_TRUE(fs::exists(place() / "ephemeral/notes.txt"));
    ASSERT_THAT(warnings, SizeIs(1));
    EXPECT_THAT(warnings[0], AllOf(HasSubstr("checkpoints/99-mine"), HasSubstr("3 things"),
                                   HasSubstr("tinkxx home check")));
    // Their numbers are not given to others.
    auto const other = new_model(new_session());
    (void)result(id_of(post("save_weights", save_body(other, 1, "next"))));
    EXPECT_THAT(folders(), Contains("100-next"));
}

struct Damage {
    char const* name;
    std::function<void(fs::path const& database)> damage;
};

class DamagedDatabase : public HomeOf, public ::testing::WithParamInterface<Damage> {};
INSTANTIATE_TEST_SUITE_P(
    , DamagedDatabase,
    ::testing::Values(Damage{"Missing", [](auto const& file) { fs::remove(file); }},
                      Damage{"Empty", [](auto const& file) { fs::resize_file(file, 0); }},
                      Damage{
                          "CutInHalf",
                          [](auto const& file) { fs::resize_file(file, fs::file_size(file) / 2); }},
                      Damage{"CutInAPage", [](auto const& file) { fs::resize_file(file, 5000); }},
                      Damage{"Noise",
                             [](auto const& file) {
                                 std::ofstream{file, std::ios::binary} << std::string(70'000, 'x');
                             }},
                      Damage{"WithoutATable",
                             [](auto const& file) {
                                 sqlite3* db = nullptr;
                                 sqlite3_open(file.c_str(), &db);
                                 sqlite3_exec(db, "DROP TABLE checkpoint; DROP TABLE session",
                                              nullptr, nullptr, nullptr);
                                 sqlite3_close(db);
                             }}),
    [](auto const& each) { return each.param.name; });

TEST_P(DamagedDatabase, CostsNoCheckpoint) {
    fill();
    restart_server();
    GetParam().damage(place() / "tinkxx.sqlite");
    auto const checkpoints = everything(place() / "checkpoints");
    auto const ephemeral = everything(place() / "ephemeral");
    // The server starts or says what to do; either way everything stays.
    if (auto const why = refusal(); !why.empty()) {
        EXPECT_THAT(why, HasSubstr("tinkxx.sqlite"));
    } else {
        clock->advance(10min);
    }
    restart_server();
    EXPECT_EQ(everything(place() / "checkpoints"), checkpoints);
    EXPECT_EQ(everything(place() / "ephemeral"), ephemeral);
    // Repaired, the same checkpoints are listed under the same paths, and load.
    auto const report = check_home(place(), {.repair = true});
    EXPECT_TRUE(report.good()) << report.findings.back().problem;
    EXPECT_EQ(refusal(), "");
    EXPECT_TRUE(sample_from(sampled).contains("sequences"));
    EXPECT_TRUE(load(state).contains("model_id"));
    restart_server();
    EXPECT_TRUE(check_home(place(), {}).good());
}

class DamagedIndex : public HomeOf, public ::testing::WithParamInterface<char const*> {
protected:
    std::int64_t number(std::string const& sql) {
        sqlite3* db = nullptr;
        EXPECT_EQ(sqlite3_open((place() / "tinkxx.sqlite").c_str(), &db), SQLITE_OK);
        std::int64_t found = -1;
        auto const take = [](void* into, int, char** values, char**) {
            *static_cast<std::int64_t*>(into) = std::atoll(values[0]);
            return 0;
        };
        EXPECT_EQ(sqlite3_exec(db, sql.c_str(), take, &found, nullptr), SQLITE_OK) << sql;
        sqlite3_close(db);
        return found;
    }
    std::vector<std::int64_t> counts() {
        std::vector<std::int64_t> all;
        for (auto const* table : {"session", "run", "sampler", "checkpoint", "request"}) {
            all.push_back(number("SELECT count(*) FROM " + std::string{table} + " NOT INDEXED"));
        }
        return all;
    }
};
INSTANTIATE_TEST_SUITE_P(, DamagedIndex, ::testing::Values("meta", "session", "checkpoint"),
                         [](auto const& each) { return std::string{each.param}; });

TEST_P(DamagedIndex, CostsNoRow) {
    fill();
    restart_server();
    auto const before = counts();
    auto const page = number("SELECT rootpage FROM sqlite_master WHERE name='sqlite_autoindex_" +
                             std::string{GetParam()} + "_1'");
    auto const size = number("PRAGMA page_size");
    {
        std::fstream file{place() / "tinkxx.sqlite",
                          std::ios::binary | std::ios::in | std::ios::out};
        file.seekp((page - 1) * size);
        file << std::string(static_cast<std::size_t>(size), 'x');
    }
    EXPECT_TRUE(check_home(place(), {.repair = true}).good());
    EXPECT_EQ(counts(), before);
    EXPECT_EQ(refusal(), "");
    EXPECT_TRUE(sample_from(sampled).contains("sequences"));
}

TEST_F(HomeOf, AnOlderCopyOfTheDatabaseCostsNoCheckpoint) {
    fill();
    restart_server();
    auto const copy = home.path() / "copy";
    fs::copy(place() / "tinkxx.sqlite", copy);
    auto const other = new_model(new_session());
    auto const late =
        text(result(id_of(post("save_weights", save_body(other, 1, "late")))), "path");
    restart_server();
    for (auto const* suffix : {"-wal", "-shm"})
        fs::remove(place() / ("tinkxx.sqlite" + std::string{suffix}));
    fs::copy_file(copy, place() / "tinkxx.sqlite", fs::copy_options::overwrite_existing);
    auto const before = everything(place() / "checkpoints");
    EXPECT_EQ(refusal(), "");
    EXPECT_EQ(everything(place() / "checkpoints"), before);
    ASSERT_THAT(warnings, SizeIs(1));
    EXPECT_THAT(warnings[0], HasSubstr("-late"));
    restart_server();
    EXPECT_TRUE(check_home(place(), {.repair = true}).good());
    EXPECT_TRUE(load(late).contains("model_id"));
}

TEST_F(HomeOf, ASaveWhoseRowIsSafeIsFinishedAfterARestart) {
    fill();
    restart_server();
    auto const id = look_at_home(place()).value().id.substr(0, 8);
    auto const names = folders();
    for (auto const& name : names) {
        fs::rename(place() / "checkpoints" / name,
                   place() / "checkpoints" / (".tinkxx-" + id + "-saving-" + name));
    }
    EXPECT_TRUE(sample_from(sampled).contains("sequences"));
    EXPECT_EQ(folders(), names);
    EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(HomeOf, FoldersToBeRemovedAreRemovedAfterARestart) {
    fill();
    restart_server();
    // As a server leaves it that was killed between the row and the folder.
    fs::create_directories(place() / "checkpoints/77-old");
    execute(
        "INSERT INTO meta VALUES('remove checkpoints/77-old', ''),"
        "('remove ../../etc', ''), ('remove checkpoints/" +
        folders().front() + "', '')");
    auto const before = folders();
    EXPECT_EQ(listed(), 2U);
    run();
    EXPECT_EQ(folders(), (std::vector{before[0], before[1]}));
    EXPECT_THAT(warnings, IsEmpty());
}

// Schemas ---------------------------------------------------------------------------------------

TEST_F(HomeOf, ANewerSchemaIsRefused) {
    fill();
    restart_server();
    execute("PRAGMA user_version=99");
    EXPECT_THAT(refusal(),
                AllOf(HasSubstr("schema 99 of a newer tinkxx"), HasSubstr("reads up to 2")));
}

class KeptHome : public HomeOf, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(, KeptHome, ::testing::Range(1, static_cast<int>(schema_version) + 1),
                         [](auto const& each) { return "Schema" + std::to_string(each.param); });

TEST_P(KeptHome, OfEachVersionOpens) {
    auto const name = "schema-" + std::to_string(GetParam());
    fs::path const kept = fs::path{TINKXX_SOURCE_DIR} / "tests/golden/homes";
    fs::copy(kept / name, place(), fs::copy_options::recursive);
    auto const expected = boost::json::parse(read_file(kept / (name + ".json"))).as_object();
    session = text(expected, "session");
    model = text(expected, "model");
    auto const path = "tinker://" + model + "/sampler_weights/sampler";

    EXPECT_EQ(refusal(), "");
    EXPECT_EQ(listed(), 2U);
    auto const run = json(call("GET", "training_runs/" + model));
    EXPECT_EQ(text(run, "base_model"), "test/bytes");
    // A result that nobody had collected.
    EXPECT_EQ(result(text(expected, "result")).at("sequences").at(0).at("tokens"),
              expected.at("tokens"));
    EXPECT_TRUE(load("tinker://" + model + "/weights/state").contains("model_id"));
    auto const tokens = [&](std::string const& sampler, int seq) {
        auto const asked =
            post("asample", sample_body(sampler, seq, R"({"max_tokens":4,"seed":5,"stop":[]})"));
        return result(id_of(asked)).at("sequences").at(0).at("tokens");
    };
    EXPECT_EQ(tokens(text(expected, "sampler"), 2), expected.at("tokens"));
    EXPECT_EQ(tokens(session + ":sample:7", 0), expected.at("tokens"));  // without a name
    restart_server();
    EXPECT_TRUE(check_home(place(), {.repair = true}).good());
    auto const again = check_home(place(), {});
    EXPECT_TRUE(again.findings.empty());
    EXPECT_EQ(again.schema, schema_version);
    EXPECT_EQ(again.checkpoints, 2U);
    if (GetParam() < schema_version) {
        EXPECT_TRUE(fs::exists(place() / "backups" / (name + ".sqlite")));
        auto const old = look_at_database(place() / "backups" / (name + ".sqlite"));
        EXPECT_EQ(old.value().version, GetParam());
    }
}

TEST_F(HomeOf, AMigrationThatWasCutShortIsDoneAgain) {
    fs::path const kept = fs::path{TINKXX_SOURCE_DIR} / "tests/golden/homes";
    fs::copy(kept / "schema-1", place(), fs::copy_options::recursive);
    // Killed after the marker, and after an earlier backup, whole or not.
    std::ofstream{place() / home_marker} << R"({"id":"0123456789abcdef"})";
    fs::create_directories(place() / "backups");
    std::ofstream{place() / "backups/schema-1.sqlite"} << "somebody's";
    std::ofstream{place() / "backups/schema-1-2.sqlite.tmp"} << "half";
    EXPECT_EQ(refusal(), "");
    EXPECT_EQ(listed(), 2U);
    EXPECT_EQ(read_file(place() / "backups/schema-1.sqlite"), "somebody's");
    EXPECT_EQ(look_at_database(place() / "backups/schema-1-2.sqlite").value().version, 1);
}

// Rows ------------------------------------------------------------------------------------------

TEST_F(HomeOf, ABadRowIsPutAsideAndTheServerGoesOn) {
    fill();
    restart_server();
    execute(
        "INSERT INTO usage VALUES('key', 'many'); INSERT INTO audit VALUES('first', '{}');"
        "INSERT INTO run VALUES('r', '{\"id\":3}'); INSERT INTO session VALUES('s', x'00ff');"
        "INSERT INTO checkpoint SELECT 'tinker://x/weights/y', value FROM checkpoint LIMIT 1;"
        "INSERT INTO checkpoint SELECT 'tinker://x/weights/z', replace(value, 'checkpoints/', "
        "'../checkpoints/') FROM checkpoint LIMIT 1");
    EXPECT_EQ(refusal(), "");
    EXPECT_EQ(listed(), 2U);
    ASSERT_THAT(warnings, SizeIs(1));
    EXPECT_THAT(warnings[0], AllOf(HasSubstr("6 rows"), HasSubstr("quarantine")));
    restart_server();
    warnings.clear();
    EXPECT_EQ(refusal(), "");
    EXPECT_THAT(warnings, IsEmpty());
    restart_server();
    auto const id = look_at_home(place()).value().id;
    auto database = Database::open(place() / "tinkxx.sqlite",
                                   {.durability = Durability::process, .home_id = id})
                        .value();
    EXPECT_THAT(database->all(Table::quarantine).value(),
                Contains(::testing::Pair("usage key", "many")));
}

// Files -----------------------------------------------------------------------------------------

TEST_F(HomeOf, AFlippedBitIsNoticedWhenTheCheckpointIsLoaded) {
    fill();
    for (auto const& name : folders()) {
        std::fstream file{place() / "checkpoints" / name / "adapter_model.safetensors",
                          std::ios::in | std::ios::out | std::ios::binary};
        file.seekg(-3, std::ios::end);
        auto const byte = file.get();
        file.seekp(-3, std::ios::end);
        file.put(static_cast<char>(byte ^ 1));
    }
    for (auto const& failed : {sample_from(sampled), load(state)}) {
        EXPECT_THAT(text(failed, "error"),
                    AllOf(HasSubstr("is damaged on the disk of the server"), HasSubstr("SHA-256"),
                          HasSubstr("adapter_model.safetensors")));
        EXPECT_EQ(text(failed, "category"), "server");
    }
    restart_server();
    auto const report = check_home(place(), {});
    EXPECT_THAT(report.findings, SizeIs(2));
    EXPECT_FALSE(report.good());
}

TEST_F(HomeOf, AMissingFileOfACheckpointIsNamed) {
    fill();
    for (auto const& name : folders())
        fs::remove(place() / "checkpoints" / name / "adapter_config.json");
    auto const failed = sample_from(sampled);
    EXPECT_THAT(text(failed, "error"), HasSubstr("adapter_config.json is missing"));
    EXPECT_EQ(text(failed, "category"), "server");
}

TEST_F(HomeOf, AFifoInACheckpointHoldsNobodyUp) {
    fill();
    auto const file = place() / "checkpoints" / folders().at(1) / "adapter_model.safetensors";
    fs::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    EXPECT_THAT(text(sample_from(sampled), "error"), HasSubstr("a FIFO"));
    auto const name = "training_runs/" + model + "/checkpoints/sampler_weights/sampled";
    EXPECT_EQ(call("GET", name + "/files/adapter_model.safetensors").status, 404);
    EXPECT_EQ(call("GET", "healthz").status, 200);
}

// home check ------------------------------------------------------------------------------------

TEST_F(HomeOf, CheckAdoptsCheckpointsThatTheDatabaseDoesNotKnow) {
    fill();
    restart_server();
    // Brought from elsewhere: another server's, and one that PEFT wrote.
    auto const names = folders();
    fs::copy(place() / "checkpoints" / names[1], place() / "checkpoints/theirs");
    fs::copy(place() / "checkpoints" / names[0], place() / "checkpoints/900-peft");
    fs::remove(place() / "checkpoints/900-peft/.tinkxx-checkpoint.json");
    std::ofstream{place() / "checkpoints/notes.txt"} << "mine";
    auto const first = check_home(place(), {});
    EXPECT_THAT(first.findings, SizeIs(3));
    EXPECT_FALSE(first.good());
    auto const repaired = check_home(place(), {.repair = true});
    EXPECT_FALSE(repaired.good());  // the notes are nobody's to take
    EXPECT_EQ(read_file(place() / "checkpoints/notes.txt"), "mine");
    EXPECT_EQ(repaired.checkpoints, 4U);
    EXPECT_TRUE(sample_from(sampled + "-2").contains("sequences"));
    EXPECT_TRUE(load("tinker://adopted:train:0/weights/peft").contains("model_id"));
    EXPECT_EQ(listed(), 4U);
    restart_server();
    EXPECT_TRUE(check_home(place(), {.remove = true}).good());
    EXPECT_FALSE(fs::exists(place() / "checkpoints/notes.txt"));
    EXPECT_TRUE(check_home(place(), {}).findings.empty());
}

TEST_F(HomeOf, CheckChangesNothingUnlessItIsAskedTo) {
    fill();
    restart_server();
    fs::create_directories(place() / "checkpoints/99-half");
    execute("INSERT INTO usage VALUES('key', 'many')");
    auto const before = everything(place());
    EXPECT_FALSE(check_home(place(), {}).good());
    auto after = everything(place());
    after["lock"] = before.at("lock");  // it has the process that looked
    EXPECT_EQ(after, before);
}

TEST_F(HomeOf, CheckRefusesWhatIsNoHomeOrInUse) {
    EXPECT_THROW((void)check_home(place(), {}), Error);
    fs::create_directories(place() / "checkpoints");
    std::ofstream{place() / "thesis.tex"} << "x";
    EXPECT_THROW((void)check_home(place(), {.repair = true, .remove = true}), Error);
    EXPECT_TRUE(fs::exists(place() / "thesis.tex"));
    fs::remove_all(place());
    fill();
    EXPECT_THROW((void)check_home(place(), {}), Error);
}

}  // namespace
}  // namespace tinkxx::local
