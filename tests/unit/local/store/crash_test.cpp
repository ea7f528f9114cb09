// A server is killed in the middle of its work, again and again; what it had acknowledged is there.
#include "unit/local/raw_fixture.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace tinkxx::local {
namespace {

class Crash : public RawTest {
protected:
    /// Runs the child until it has said `lines` things, kills it, and gives what it said.
    std::vector<std::string> kill_after(int round, std::size_t lines) {
        int ends[2] = {-1, -1};
        if (::pipe(ends) != 0) ADD_FAILURE() << "no pipe";
        auto const child = ::fork();
        if (child == 0) {
            ::dup2(ends[1], STDOUT_FILENO);
            ::close(ends[0]);
            ::close(ends[1]);
            auto const place = server_options.home.string();
            auto const model = byte_model().string();
            auto const number = std::to_string(round);
            ::execl(TINKXX_CRASH_CHILD, TINKXX_CRASH_CHILD, place.c_str(), model.c_str(),
                    number.c_str(), nullptr);
            ::_exit(127);
        }
        ::close(ends[1]);
        std::vector<std::string> said;
        auto* const in = ::fdopen(ends[0], "r");
        std::string line;
        for (int c = std::fgetc(in); c != EOF; c = std::fgetc(in)) {
            if (c != '\n') {
                line += static_cast<char>(c);
                continue;
            }
            said.push_back(std::exchange(line, {}));
            if (said.size() == lines) ::kill(child, SIGKILL);
        }
        std::fclose(in);
        int status = 0;
        ::waitpid(child, &status, 0);
        EXPECT_TRUE(WIFSIGNALED(status)) << (said.empty() ? "it said nothing" : said.back());
        return said;
    }
};

#ifdef TINKXX_SANITIZED
constexpr int usual_rounds = 3;  // a sanitizer takes long to start
#else
constexpr int usual_rounds = 8;
#endif

TEST_F(Crash, LosesNothingThatWasAcknowledged) {
    auto const* const told = std::getenv("TINKXX_CRASHES");
    int const rounds = told != nullptr ? std::atoi(told) : usual_rounds;
    std::set<std::string> saved;
    for (int round = 0; round < rounds; ++round) {
        std::set<std::string> promised;
        for (auto const& line : kill_after(round, 1 + static_cast<std::size_t>(round * 5 % 11))) {
            auto const blank = line.find(' ');
            auto const what = line.substr(0, blank);
            ASSERT_NE(what, "failed") << line;
            (what == "saved" ? saved : promised).insert(line.substr(blank + 1));
        }
        // What was promised is computed, and every checkpoint is listed and loads.
        for (auto const& id : promised) {
            auto const drawn = result(id);
            ASSERT_TRUE(drawn.contains("sequences")) << id;
        }
        std::set<std::string> listed;
        auto const answer = json(call("GET", "checkpoints?limit=10000"));
        for (auto const& one : answer.at("checkpoints").as_array()) {
            listed.insert(std::string{one.at("tinker_path").as_string()});
        }
        for (auto const& path : saved) EXPECT_TRUE(listed.contains(path)) << path;
        for (auto const& path : listed) {
            auto const session = new_session();
            auto const made =
                post("create_sampling_session",
                     R"({"session_id":")" + session +
                         R"(","sampling_session_seq_id":0,"model_path":")" + path + R"("})");
            ASSERT_EQ(made.status, 200) << made.body;
            auto const sampler = text(json(made), "sampling_session_id");
            (void)post("asample", sample_body(sampler, 0));
            EXPECT_TRUE(result(sampler + ":0").contains("sequences")) << path;
        }
        restart_server();
    }
    EXPECT_FALSE(saved.empty());
}

}  // namespace
}  // namespace tinkxx::local
