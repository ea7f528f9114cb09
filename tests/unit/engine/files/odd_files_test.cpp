#include "engine/files/atomic_write.hpp"
#include "engine/files/mapped_file.hpp"
#include "engine/files/safetensors.hpp"
#include "engine/files/token_bytes.hpp"
#include "engine/model/checkpoint.hpp"
#include "support/tiny_models.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tinkxx::engine {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

void make_socket(fs::path const& path) {
    int const fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_GE(fd, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    // The path of a socket is short; it is moved to its place.
    auto const name = fs::path("/tmp") / ("tinkxx-odd-" + std::to_string(::getpid()));
    std::strncpy(address.sun_path, name.c_str(), sizeof address.sun_path - 1);
    ::unlink(name.c_str());
    ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::close(fd);
    fs::rename(name, path);
}

/// Something that stands where a file is expected, and what a refusal calls it.
struct Odd {
    char const* name;
    char const* called;
    void (*make)(fs::path const& path);
};

constexpr Odd odds[] = {
    {"fifo", "a FIFO", [](fs::path const& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0644), 0); }},
    {"directory", "a directory", [](fs::path const& path) { fs::create_directory(path); }},
    {"socket", "a socket", make_socket},
    {"null", "a device", [](fs::path const& path) { fs::create_symlink("/dev/null", path); }},
    {"zero", "a device", [](fs::path const& path) { fs::create_symlink("/dev/zero", path); }},
    {"link to a fifo", "a FIFO",
     [](fs::path const& path) {
         auto const other = path.string() + ".pipe";
         fs::remove(other);
         ASSERT_EQ(::mkfifo(other.c_str(), 0644), 0);
         fs::create_symlink(other, path);
     }},
};

/// Takes away the rights of root, who may read everything.
class AsNobody {
public:
    AsNobody() { (void)::seteuid(root_ ? 65534 : ::geteuid()); }
    ~AsNobody() { (void)::seteuid(root_ ? 0 : ::geteuid()); }
    AsNobody(AsNobody const&) = delete;
    AsNobody& operator=(AsNobody const&) = delete;

private:
    bool root_{::geteuid() == 0};
};

class OddFiles : public testing::Test {
protected:
    OddFiles() {
        fs::remove_all(folder);
        fs::create_directories(folder);
    }
    ~OddFiles() override { fs::remove_all(folder); }

    /// What `act` says with each odd thing in place of `file`.
    template <class Act>
    void expect_refusals(fs::path const& file, Act const& act) {
        for (auto const& odd : odds) {
            fs::remove_all(file);
            odd.make(file);
            EXPECT_THAT(act(), AllOf(HasSubstr(file.string()), HasSubstr(odd.called),
                                     HasSubstr("not a regular file")))
                << odd.name;
        }
        fs::remove_all(file);
        fs::create_symlink("nowhere", file);
        EXPECT_THAT(act(), AllOf(HasSubstr(file.string()), HasSubstr("No such file")));
        fs::remove(file);
        ASSERT_TRUE(write_file(file, ""));
        EXPECT_NE(act(), "accepted") << "empty";
        fs::permissions(file, fs::perms::none);
        {
            AsNobody const limited;
            EXPECT_THAT(act(), AllOf(HasSubstr(file.string()), HasSubstr("Permission denied")));
        }
        fs::remove(file);
    }

    template <class T>
    static std::string said(Result<T> const& result) {
        return result ? "accepted" : result.error().what();
    }

    fs::path folder =
        fs::path(testing::TempDir()) /
        (std::string("odd_files_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::shared_ptr<Model const> model =
        support::random_model(support::tiny_configs()[0].second, 3);
};

TEST_F(OddFiles, AreRefusedByNameAndKind) {
    auto const file = folder / "file";
    for (auto const access : {Access::map, Access::read}) {
        for (auto const& odd : odds) {
            fs::remove_all(file);
            odd.make(file);
            EXPECT_THAT(said(MappedFile::open(file, access)),
                        AllOf(HasSubstr(file.string()), HasSubstr(odd.called)))
                << odd.name;
        }
        fs::remove_all(file);
        EXPECT_THAT(said(MappedFile::open(file, access)), HasSubstr("No such file"));
        ASSERT_TRUE(write_file(file, ""));
        EXPECT_TRUE(MappedFile::open(file, access).value().bytes().empty());
        fs::remove(file);
    }
}

TEST_F(OddFiles, MayBeSymbolicLinksToRegularFiles) {
    ASSERT_TRUE(write_file(folder / "blob", "text"));
    fs::create_symlink("blob", folder / "link");
    EXPECT_EQ(read_text(folder / "link", 100).value(), "text");
}

TEST_F(OddFiles, ThatAreReadDoNotChangeWithTheFileOnTheDisk) {
    ASSERT_TRUE(write_file(folder / "file", "before"));
    auto const file = MappedFile::open(folder / "file", Access::read).value();
    fs::resize_file(folder / "file", 0);
    EXPECT_EQ(std::memcmp(file.bytes().data(), "before", 6), 0);
}

TEST_F(OddFiles, LongerThanTheLimitAreNotRead) {
    ASSERT_TRUE(write_file(folder / "file", "1234"));
    EXPECT_EQ(read_text(folder / "file", 4).value(), "1234");
    EXPECT_THAT(said(read_text(folder / "file", 3)), HasSubstr("4 bytes; at most 3"));
    // Claims a terabyte, and takes no memory for it.
    fs::resize_file(folder / "file", std::uintmax_t{1} << 40U);
    EXPECT_THAT(said(read_text(folder / "file", 3)), HasSubstr("at most 3"));
}

TEST_F(OddFiles, InModelFoldersAreRefused) {
    for (auto const* name : {"config.json", "generation_config.json",
                             "model.safetensors.index.json", "model.safetensors"}) {
        auto const act = [&] { return said(Model::load(folder)); };
        ASSERT_TRUE(save_model(folder, model->config(), model->weights(), ElementType::f32));
        ASSERT_EQ(act(), "accepted");
        expect_refusals(folder / name, act);
    }
}

TEST_F(OddFiles, BesideTheWeightsOfAModelAreNotOpened) {
    ASSERT_TRUE(save_model(folder, model->config(), model->weights(), ElementType::f32));
    ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0644), 0);
    EXPECT_EQ(said(Model::load(folder)), "accepted");
}

TEST_F(OddFiles, InPlaceOfTheBytesOfTokensAreRefused) {
    expect_refusals(folder / "tinkxx.json", [&] { return said(read_token_bytes(folder)); });
}

TEST_F(OddFiles, InAdapterFoldersAreRefused) {
    for (auto const& [rank, name] :
         {std::pair{4, "adapter_config.json"}, std::pair{4, "adapter_model.safetensors"},
          std::pair{4, "optimizer.safetensors"}, std::pair{0, "config.json"},
          std::pair{0, "model.safetensors"}, std::pair{0, "optimizer.safetensors"}}) {
        auto const adapter = Adapter::create(model, {.rank = rank}).value();
        auto const act = [&] {
            return said(load_adapter(model, folder / "a", OptimizerState::with));
        };
        ASSERT_TRUE(save_adapter(folder / "a", *adapter, "base", OptimizerState::with));
        ASSERT_EQ(act(), "accepted");
        expect_refusals(folder / "a" / name, act);
    }
}

TEST_F(OddFiles, InPlaceOfAFolderAreRefused) {
    auto const at = folder / "a";
    auto const both = [&] {
        return std::vector{said(Model::load(at)), said(TensorFolder::open(at)),
                           said(load_adapter(model, at, OptimizerState::without))};
    };
    for (auto const& text : both()) {
        EXPECT_EQ(text, "cannot read folder " + at.string() + ": it does not exist");
    }
    ASSERT_EQ(::mkfifo(at.c_str(), 0644), 0);
    for (auto const& text : both()) {
        EXPECT_EQ(text, "cannot read folder " + at.string() + ": it is a FIFO, not a directory");
    }
}

TEST_F(OddFiles, AdaptersThatLackAFileNameIt) {
    auto const adapter = Adapter::create(model, {.rank = 4}).value();
    auto const load = [&] {
        return said(load_adapter(model, folder / "a", OptimizerState::without));
    };
    for (auto const* name : {"adapter_config.json", "adapter_model.safetensors"}) {
        ASSERT_TRUE(save_adapter(folder / "a", *adapter, "base", OptimizerState::without));
        fs::remove(folder / "a" / name);
        EXPECT_EQ(load(),
                  "cannot read " + (folder / "a" / name).string() + ": No such file or directory");
    }
    fs::remove_all(folder / "a");
    fs::create_directory(folder / "a");
    EXPECT_THAT(load(), AllOf(HasSubstr((folder / "a").string()),
                              HasSubstr("neither adapter_config.json nor config.json")));
}

}  // namespace
}  // namespace tinkxx::engine
